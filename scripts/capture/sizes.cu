// Every function of the runtime and the driver that takes sizes or pitches, called with hostile
// ones: each argument alone, and in pairs. A line: the call, its arguments in hexadecimal, its
// status, and that of the synchronization behind it. The process is started again behind a call that
// ends it. nvcc -arch=sm_90 -std=c++17 sizes.cu -lcuda; ./a.out > FILE, of which
// tests/validate/sizes.json is the short form: a letter for each line, by calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime.h>

typedef size_t Z;
static const Z ROOM = 1 << 20;
static char *d, *d2, *h, *pinned, *managed;
static cudaArray_t array, array1;
static CUarray driver_array, driver_array1;
static cudaGraph_t graph;
static cudaMemPool_t pool;
static cudaStream_t stream;
static CUfunction function;
static cudaMemLocation here = {cudaMemLocationTypeDevice, {0}};
static CUmemLocation there = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
__device__ char symbol[4096];
__constant__ char constant[4096];
__global__ void nothing(int *) {}

struct Call {
    const char *name;
    Z usual[10];
    int arguments;
    int (*run)(const Z *);
};

static int given(int status, void *pointer)
{
    if (!status && pointer)
        cudaFree(pointer);
    return status;
}

static int given_host(int status, void *pointer)
{
    if (!status && pointer)
        cudaFreeHost(pointer);
    return status;
}

static cudaMemcpy3DParms box(const Z *v, int to_array, int from_array)
{
    cudaMemcpy3DParms p = {};
    p.extent = make_cudaExtent(v[0], v[1], v[2]);
    if (to_array) p.dstArray = array; else p.dstPtr = make_cudaPitchedPtr(d, v[3], 64, v[4]);
    p.dstPos = make_cudaPos(v[7], v[8], v[9]);
    if (from_array) p.srcArray = array; else p.srcPtr = make_cudaPitchedPtr(h, v[5], 64, v[6]);
    p.kind = to_array && from_array ? cudaMemcpyDeviceToDevice : from_array ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    return p;
}

static CUDA_MEMCPY2D flat_box(const Z *v)
{
    CUDA_MEMCPY2D p = {};
    p.WidthInBytes = v[0]; p.Height = v[1];
    p.dstMemoryType = CU_MEMORYTYPE_DEVICE; p.dstDevice = (CUdeviceptr)d; p.dstPitch = v[2];
    p.srcMemoryType = CU_MEMORYTYPE_HOST; p.srcHost = h; p.srcPitch = v[3];
    p.dstXInBytes = v[4]; p.dstY = v[5]; p.srcXInBytes = v[6]; p.srcY = v[7];
    return p;
}

static CUDA_MEMCPY3D deep_box(const Z *v)
{
    CUDA_MEMCPY3D p = {};
    p.WidthInBytes = v[0]; p.Height = v[1]; p.Depth = v[2];
    p.dstMemoryType = CU_MEMORYTYPE_DEVICE; p.dstDevice = (CUdeviceptr)d; p.dstPitch = v[3]; p.dstHeight = v[4];
    p.srcMemoryType = CU_MEMORYTYPE_HOST; p.srcHost = h; p.srcPitch = v[5]; p.srcHeight = v[6];
    p.dstXInBytes = v[7]; p.dstY = v[8]; p.dstZ = v[9];
    return p;
}

static int texture(const Z *v, int is_pitched)
{
    cudaResourceDesc r = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t made;
    if (is_pitched) {
        r.resType = cudaResourceTypePitch2D;
        r.res.pitch2D.devPtr = d; r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
        r.res.pitch2D.width = v[0]; r.res.pitch2D.height = v[1]; r.res.pitch2D.pitchInBytes = v[2];
    } else {
        r.resType = cudaResourceTypeLinear;
        r.res.linear.devPtr = d; r.res.linear.desc = cudaCreateChannelDesc<float>();
        r.res.linear.sizeInBytes = v[0];
    }
    int status = cudaCreateTextureObject(&made, &r, &t, NULL);
    if (!status) cudaDestroyTextureObject(made);
    return status;
}

static int driver_texture(const Z *v, int is_pitched)
{
    CUDA_RESOURCE_DESC r = {};
    CUDA_TEXTURE_DESC t = {};
    CUtexObject made;
    if (is_pitched) {
        r.resType = CU_RESOURCE_TYPE_PITCH2D;
        r.res.pitch2D.devPtr = (CUdeviceptr)d; r.res.pitch2D.format = CU_AD_FORMAT_FLOAT; r.res.pitch2D.numChannels = 1;
        r.res.pitch2D.width = v[0]; r.res.pitch2D.height = v[1]; r.res.pitch2D.pitchInBytes = v[2];
    } else {
        r.resType = CU_RESOURCE_TYPE_LINEAR;
        r.res.linear.devPtr = (CUdeviceptr)d; r.res.linear.format = CU_AD_FORMAT_FLOAT; r.res.linear.numChannels = 1;
        r.res.linear.sizeInBytes = v[0];
    }
    int status = cuTexObjectCreate(&made, &r, &t, NULL);
    if (!status) cuTexObjectDestroy(made);
    return status;
}

static int make_array(Z width, Z height, Z depth, unsigned flags, int is_flat)
{
    cudaArray_t made;
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    int status = is_flat ? cudaMallocArray(&made, &f, width, height) : cudaMalloc3DArray(&made, &f, make_cudaExtent(width, height, depth), flags);
    if (!status) cudaFreeArray(made);
    return status;
}

static int make_driver_array(Z width, Z height, Z depth, int is_flat)
{
    CUarray made;
    CUDA_ARRAY_DESCRIPTOR a = {width, height, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR b = {width, height, depth, CU_AD_FORMAT_FLOAT, 1, 0};
    int status = is_flat ? cuArrayCreate(&made, &a) : cuArray3DCreate(&made, &b);
    if (!status) cuArrayDestroy(made);
    return status;
}

static int add_set(const Z *v, unsigned element)
{
    cudaGraphNode_t node;
    cudaMemsetParams p = {};
    p.dst = d; p.pitch = v[0]; p.value = 1; p.elementSize = element; p.width = v[1]; p.height = v[2];
    return cudaGraphAddMemsetNode(&node, graph, NULL, 0, &p);
}

#define CALL(name, expression, ...) \
    {name, {__VA_ARGS__}, sizeof((const Z[]){__VA_ARGS__}) / sizeof(Z), \
     [](const Z *v) -> int { return expression; }},
#define D(p) ((CUdeviceptr)(p))
static Call calls[] = {
    CALL("cudaMalloc 0", ({ void *p = 0; given(cudaMalloc(&p, v[0]), p); }), 64)
    CALL("cudaMallocManaged 0", ({ void *p = 0; given(cudaMallocManaged(&p, v[0]), p); }), 64)
    CALL("cudaMallocHost 0", ({ void *p = 0; given_host(cudaMallocHost(&p, v[0]), p); }), 64)
    CALL("cudaHostAlloc 0", ({ void *p = 0; given_host(cudaHostAlloc(&p, v[0], 0), p); }), 64)
    CALL("cudaMallocPitch 0", ({ void *p = 0; Z pitch; given(cudaMallocPitch(&p, &pitch, v[0], v[1]), p); }), 64, 4)
    CALL("cudaMalloc3D 0", ({ cudaPitchedPtr p = {}; given(cudaMalloc3D(&p, make_cudaExtent(v[0], v[1], v[2])), p.ptr); }), 64, 4, 2)
    CALL("cudaMallocAsync 0", ({ void *p = 0; given(cudaMallocAsync(&p, v[0], stream), p); }), 64)
    CALL("cudaMallocFromPoolAsync 0", ({ void *p = 0; given(cudaMallocFromPoolAsync(&p, v[0], pool, stream), p); }), 64)
    CALL("cudaMallocArray 0", make_array(v[0], v[1], 0, 0, 1), 64, 4)
    CALL("cudaMalloc3DArray 0", make_array(v[0], v[1], v[2], 0, 0), 64, 4, 2)
    CALL("cudaMalloc3DArray layered 0", make_array(v[0], v[1], v[2], cudaArrayLayered, 0), 64, 4, 2)
    CALL("cudaMallocMipmappedArray 0", ({ cudaMipmappedArray_t m; cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(); int s = cudaMallocMipmappedArray(&m, &f, make_cudaExtent(v[0], v[1], v[2]), (unsigned)v[3], 0); if (!s) cudaFreeMipmappedArray(m); s; }), 64, 4, 0, 1)
    CALL("cudaHostRegister 0", ({ int s = cudaHostRegister(h, v[0], 0); if (!s) cudaHostUnregister(h); s; }), 4096)
    CALL("cudaMemcpy H2D", cudaMemcpy(d, h, v[0], cudaMemcpyHostToDevice), 64)
    CALL("cudaMemcpy D2H", cudaMemcpy(h, d, v[0], cudaMemcpyDeviceToHost), 64)
    CALL("cudaMemcpy D2D", cudaMemcpy(d2, d, v[0], cudaMemcpyDeviceToDevice), 64)
    CALL("cudaMemcpy default", cudaMemcpy(d, h, v[0], cudaMemcpyDefault), 64)
    CALL("cudaMemcpy pinned", cudaMemcpy(pinned, d, v[0], cudaMemcpyDefault), 64)
    CALL("cudaMemcpy managed", cudaMemcpy(managed, d, v[0], cudaMemcpyDefault), 64)
    CALL("cudaMemcpyAsync H2D", cudaMemcpyAsync(d, h, v[0], cudaMemcpyHostToDevice, stream), 64)
    CALL("cudaMemcpyAsync D2D", cudaMemcpyAsync(d2, d, v[0], cudaMemcpyDeviceToDevice, stream), 64)
    CALL("cudaMemcpyPeer 0", cudaMemcpyPeer(d2, 0, d, 0, v[0]), 64)
    CALL("cudaMemcpyPeerAsync 0", cudaMemcpyPeerAsync(d2, 0, d, 0, v[0], stream), 64)
    CALL("cudaMemcpy2D H2D", cudaMemcpy2D(d, v[0], h, v[1], v[2], v[3], cudaMemcpyHostToDevice), 64, 64, 32, 3)
    CALL("cudaMemcpy2D D2H", cudaMemcpy2D(h, v[0], d, v[1], v[2], v[3], cudaMemcpyDeviceToHost), 64, 64, 32, 3)
    CALL("cudaMemcpy2D D2D", cudaMemcpy2D(d2, v[0], d, v[1], v[2], v[3], cudaMemcpyDeviceToDevice), 64, 64, 32, 3)
    CALL("cudaMemcpy2DAsync H2D", cudaMemcpy2DAsync(d, v[0], h, v[1], v[2], v[3], cudaMemcpyHostToDevice, stream), 64, 64, 32, 3)
    CALL("cudaMemcpy2DToArray 0", cudaMemcpy2DToArray(array1, v[0], v[1], h, v[2], v[3], v[4], cudaMemcpyHostToDevice), 0, 0, 64, 32, 3)
    CALL("cudaMemcpy2DFromArray 0", cudaMemcpy2DFromArray(h, v[2], array1, v[0], v[1], v[3], v[4], cudaMemcpyDeviceToHost), 0, 0, 64, 32, 3)
    CALL("cudaMemcpy2DArrayToArray 0", cudaMemcpy2DArrayToArray(array1, v[0], v[1], array1, v[2], v[3], v[4], v[5], cudaMemcpyDeviceToDevice), 0, 0, 0, 8, 32, 3)
    CALL("cudaMemcpyToArray 0", cudaMemcpyToArray(array1, v[0], v[1], h, v[2], cudaMemcpyHostToDevice), 0, 0, 32)
    CALL("cudaMemcpyFromArray 0", cudaMemcpyFromArray(h, array1, v[0], v[1], v[2], cudaMemcpyDeviceToHost), 0, 0, 32)
    CALL("cudaMemcpy3D H2D", ({ cudaMemcpy3DParms p = box(v, 0, 0); cudaMemcpy3D(&p); }), 32, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cudaMemcpy3D to array", ({ cudaMemcpy3DParms p = box(v, 1, 0); cudaMemcpy3D(&p); }), 8, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cudaMemcpy3DAsync H2D", ({ cudaMemcpy3DParms p = box(v, 0, 0); cudaMemcpy3DAsync(&p, stream); }), 32, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cudaMemcpyToSymbol 0", cudaMemcpyToSymbol(symbol, h, v[0], v[1]), 64, 0)
    CALL("cudaMemcpyToSymbol constant", cudaMemcpyToSymbol(constant, h, v[0], v[1]), 64, 0)
    CALL("cudaMemcpyFromSymbol 0", cudaMemcpyFromSymbol(h, symbol, v[0], v[1]), 64, 0)
    CALL("cudaMemcpyToSymbolAsync 0", cudaMemcpyToSymbolAsync(symbol, h, v[0], v[1], cudaMemcpyHostToDevice, stream), 64, 0)
    CALL("cudaMemcpyFromSymbolAsync 0", cudaMemcpyFromSymbolAsync(h, symbol, v[0], v[1], cudaMemcpyDeviceToHost, stream), 64, 0)
    CALL("cudaMemset 0", cudaMemset(d, 1, v[0]), 64)
    CALL("cudaMemset pinned", cudaMemset(pinned, 1, v[0]), 64)
    CALL("cudaMemset managed", cudaMemset(managed, 1, v[0]), 64)
    CALL("cudaMemset host", cudaMemset(h, 1, v[0]), 64)
    CALL("cudaMemsetAsync 0", cudaMemsetAsync(d, 1, v[0], stream), 64)
    CALL("cudaMemset2D 0", cudaMemset2D(d, v[0], 1, v[1], v[2]), 64, 32, 3)
    CALL("cudaMemset2DAsync 0", cudaMemset2DAsync(d, v[0], 1, v[1], v[2], stream), 64, 32, 3)
    CALL("cudaMemset3D 0", cudaMemset3D(make_cudaPitchedPtr(d, v[0], 64, v[1]), 1, make_cudaExtent(v[2], v[3], v[4])), 64, 4, 32, 3, 2)
    CALL("cudaMemset3DAsync 0", cudaMemset3DAsync(make_cudaPitchedPtr(d, v[0], 64, v[1]), 1, make_cudaExtent(v[2], v[3], v[4]), stream), 64, 4, 32, 3, 2)
    CALL("cudaMemAdvise device", cudaMemAdvise(d, v[0], cudaMemAdviseSetReadMostly, here), 64)
    CALL("cudaMemAdvise managed", cudaMemAdvise(managed, v[0], cudaMemAdviseSetReadMostly, here), 64)
    CALL("cudaMemPrefetchAsync managed", cudaMemPrefetchAsync(managed, v[0], here, 0, stream), 64)
    CALL("cudaMemPrefetchAsync device", cudaMemPrefetchAsync(d, v[0], here, 0, stream), 64)
    CALL("cudaMemRangeGetAttribute 0", ({ int value[4]; cudaMemRangeGetAttribute(value, v[0] > 16 && v[0] < ROOM ? 16 : v[0], cudaMemRangeAttributeReadMostly, managed, v[1]); }), 4, 64)
    CALL("cudaStreamAttachMemAsync 0", cudaStreamAttachMemAsync(stream, managed, v[0], cudaMemAttachGlobal), 0)
    CALL("cudaMemPoolTrimTo 0", cudaMemPoolTrimTo(pool, v[0]), 64)
    CALL("cudaDeviceSetLimit stack", ({ int s = cudaDeviceSetLimit(cudaLimitStackSize, v[0]); cudaDeviceSetLimit(cudaLimitStackSize, 1024); s; }), 1024)
    CALL("cudaDeviceSetLimit fifo", ({ int s = cudaDeviceSetLimit(cudaLimitPrintfFifoSize, v[0]); cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1048576); s; }), 1048576)
    CALL("cudaDeviceSetLimit heap", ({ int s = cudaDeviceSetLimit(cudaLimitMallocHeapSize, v[0]); cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8388608); s; }), 8388608)
    CALL("cudaDeviceSetLimit depth", ({ int s = cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, v[0]); cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 2); s; }), 2)
    CALL("cudaDeviceSetLimit pending", ({ int s = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, v[0]); cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048); s; }), 2048)
    CALL("cudaDeviceSetLimit granularity", ({ int s = cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, v[0]); cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 64); s; }), 64)
    CALL("cudaDeviceSetLimit persisting", ({ int s = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, v[0]); cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 64); s; }), 64)
    CALL("cudaCreateTextureObject linear", texture(v, 0), 64)
    CALL("cudaCreateTextureObject pitched", texture(v, 1), 32, 3, 512)
    CALL("cudaLaunchKernel 0", ({ int *p = 0; void *a[] = {&p}; cudaLaunchKernel((void *)nothing, dim3(1), dim3(32), a, v[0], stream); }), 64)
    CALL("cudaLaunchKernel dimensions", ({ int *p = 0; void *a[] = {&p}; cudaLaunchKernel((void *)nothing, dim3((unsigned)v[0], (unsigned)v[1], (unsigned)v[2]), dim3((unsigned)v[3], (unsigned)v[4], (unsigned)v[5]), a, 0, stream); }), 1, 1, 1, 32, 1, 1)
    CALL("cudaLaunchCooperativeKernel 0", ({ int *p = 0; void *a[] = {&p}; cudaLaunchCooperativeKernel((void *)nothing, dim3(1), dim3(32), a, v[0], stream); }), 64)
    CALL("cudaLaunchKernelExC 0", ({ int *p = 0; void *a[] = {&p}; cudaLaunchConfig_t c = {}; c.gridDim = dim3(1); c.blockDim = dim3(32); c.dynamicSmemBytes = v[0]; cudaLaunchKernelExC(&c, (void *)nothing, a); }), 64)
    CALL("cudaFuncSetAttribute shared", cudaFuncSetAttribute((void *)nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)v[0]), 64)
    CALL("cudaFuncSetAttribute carveout", cudaFuncSetAttribute((void *)nothing, cudaFuncAttributePreferredSharedMemoryCarveout, (int)v[0]), 64)
    CALL("cudaOccupancyMaxActiveBlocksPerMultiprocessor 0", ({ int n; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, nothing, (int)v[0], v[1]); }), 32, 64)
    CALL("cudaOccupancyAvailableDynamicSMemPerBlock 0", ({ Z n; cudaOccupancyAvailableDynamicSMemPerBlock(&n, nothing, (int)v[0], (int)v[1]); }), 1, 32)
    CALL("cudaGraphAddMemcpyNode1D 0", ({ cudaGraphNode_t n; cudaGraphAddMemcpyNode1D(&n, graph, NULL, 0, d, h, v[0], cudaMemcpyHostToDevice); }), 64)
    CALL("cudaGraphAddMemcpyNode 0", ({ cudaGraphNode_t n; cudaMemcpy3DParms p = box(v, 0, 0); cudaGraphAddMemcpyNode(&n, graph, NULL, 0, &p); }), 32, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cudaGraphAddMemsetNode 1", add_set(v, 1), 64, 32, 3)
    CALL("cudaGraphAddMemsetNode 4", add_set(v, 4), 64, 8, 3)
    CALL("cudaGraphAddMemAllocNode 0", ({ cudaGraphNode_t n; cudaMemAllocNodeParams p = {}; p.poolProps.allocType = cudaMemAllocationTypePinned; p.poolProps.location.type = cudaMemLocationTypeDevice; p.bytesize = v[0]; cudaGraphAddMemAllocNode(&n, graph, NULL, 0, &p); }), 64)
    CALL("cuMemAlloc 0", ({ CUdeviceptr p = 0; given(cuMemAlloc(&p, v[0]), (void *)p); }), 64)
    CALL("cuMemAllocManaged 0", ({ CUdeviceptr p = 0; given(cuMemAllocManaged(&p, v[0], CU_MEM_ATTACH_GLOBAL), (void *)p); }), 64)
    CALL("cuMemAllocHost 0", ({ void *p = 0; given_host(cuMemAllocHost(&p, v[0]), p); }), 64)
    CALL("cuMemHostAlloc 0", ({ void *p = 0; given_host(cuMemHostAlloc(&p, v[0], 0), p); }), 64)
    CALL("cuMemAllocPitch 0", ({ CUdeviceptr p = 0; Z pitch; given(cuMemAllocPitch(&p, &pitch, v[0], v[1], (unsigned)v[2]), (void *)p); }), 64, 4, 4)
    CALL("cuMemAllocAsync 0", ({ CUdeviceptr p = 0; given(cuMemAllocAsync(&p, v[0], stream), (void *)p); }), 64)
    CALL("cuMemAllocFromPoolAsync 0", ({ CUdeviceptr p = 0; given(cuMemAllocFromPoolAsync(&p, v[0], pool, stream), (void *)p); }), 64)
    CALL("cuMemHostRegister 0", ({ int s = cuMemHostRegister(h, v[0], 0); if (!s) cuMemHostUnregister(h); s; }), 4096)
    CALL("cuArrayCreate 0", make_driver_array(v[0], v[1], 0, 1), 64, 4)
    CALL("cuArray3DCreate 0", make_driver_array(v[0], v[1], v[2], 0), 64, 4, 2)
    CALL("cuMipmappedArrayCreate 0", ({ CUmipmappedArray m; CUDA_ARRAY3D_DESCRIPTOR b = {v[0], v[1], v[2], CU_AD_FORMAT_FLOAT, 1, 0}; int s = cuMipmappedArrayCreate(&m, &b, (unsigned)v[3]); if (!s) cuMipmappedArrayDestroy(m); s; }), 64, 4, 0, 1)
    CALL("cuMemcpy 0", cuMemcpy(D(d2), D(d), v[0]), 64)
    CALL("cuMemcpyAsync 0", cuMemcpyAsync(D(d2), D(d), v[0], stream), 64)
    CALL("cuMemcpyHtoD 0", cuMemcpyHtoD(D(d), h, v[0]), 64)
    CALL("cuMemcpyHtoDAsync 0", cuMemcpyHtoDAsync(D(d), h, v[0], stream), 64)
    CALL("cuMemcpyDtoH 0", cuMemcpyDtoH(h, D(d), v[0]), 64)
    CALL("cuMemcpyDtoHAsync 0", cuMemcpyDtoHAsync(h, D(d), v[0], stream), 64)
    CALL("cuMemcpyDtoD 0", cuMemcpyDtoD(D(d2), D(d), v[0]), 64)
    CALL("cuMemcpyDtoDAsync 0", cuMemcpyDtoDAsync(D(d2), D(d), v[0], stream), 64)
    CALL("cuMemcpyPeer 0", ({ CUcontext c; cuCtxGetCurrent(&c); cuMemcpyPeer(D(d2), c, D(d), c, v[0]); }), 64)
    CALL("cuMemcpyHtoA 0", cuMemcpyHtoA(driver_array1, v[0], h, v[1]), 0, 64)
    CALL("cuMemcpyAtoH 0", cuMemcpyAtoH(h, driver_array1, v[0], v[1]), 0, 64)
    CALL("cuMemcpyDtoA 0", cuMemcpyDtoA(driver_array1, v[0], D(d), v[1]), 0, 64)
    CALL("cuMemcpyAtoD 0", cuMemcpyAtoD(D(d), driver_array1, v[0], v[1]), 0, 64)
    CALL("cuMemcpy2D 0", ({ CUDA_MEMCPY2D p = flat_box(v); cuMemcpy2D(&p); }), 32, 3, 64, 64, 0, 0, 0, 0)
    CALL("cuMemcpy2DUnaligned 0", ({ CUDA_MEMCPY2D p = flat_box(v); cuMemcpy2DUnaligned(&p); }), 32, 3, 64, 64, 0, 0, 0, 0)
    CALL("cuMemcpy2DAsync 0", ({ CUDA_MEMCPY2D p = flat_box(v); cuMemcpy2DAsync(&p, stream); }), 32, 3, 64, 64, 0, 0, 0, 0)
    CALL("cuMemcpy3D 0", ({ CUDA_MEMCPY3D p = deep_box(v); cuMemcpy3D(&p); }), 32, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cuMemcpy3DAsync 0", ({ CUDA_MEMCPY3D p = deep_box(v); cuMemcpy3DAsync(&p, stream); }), 32, 3, 2, 64, 4, 64, 4, 0, 0, 0)
    CALL("cuMemsetD8 0", cuMemsetD8(D(d), 1, v[0]), 64)
    CALL("cuMemsetD16 0", cuMemsetD16(D(d), 1, v[0]), 64)
    CALL("cuMemsetD32 0", cuMemsetD32(D(d), 1, v[0]), 64)
    CALL("cuMemsetD32Async 0", cuMemsetD32Async(D(d), 1, v[0], stream), 64)
    CALL("cuMemsetD2D8 0", cuMemsetD2D8(D(d), v[0], 1, v[1], v[2]), 64, 32, 3)
    CALL("cuMemsetD2D16 0", cuMemsetD2D16(D(d), v[0], 1, v[1], v[2]), 64, 16, 3)
    CALL("cuMemsetD2D32 0", cuMemsetD2D32(D(d), v[0], 1, v[1], v[2]), 64, 8, 3)
    CALL("cuMemAdvise managed", cuMemAdvise(D(managed), v[0], CU_MEM_ADVISE_SET_READ_MOSTLY, there), 64)
    CALL("cuMemPrefetchAsync managed", cuMemPrefetchAsync(D(managed), v[0], there, 0, stream), 64)
    CALL("cuMemRangeGetAttribute 0", ({ int value[4]; cuMemRangeGetAttribute(value, v[0] > 16 && v[0] < ROOM ? 16 : v[0], CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, D(managed), v[1]); }), 4, 64)
    CALL("cuStreamAttachMemAsync 0", cuStreamAttachMemAsync(stream, D(managed), v[0], CU_MEM_ATTACH_GLOBAL), 0)
    CALL("cuMemPoolTrimTo 0", cuMemPoolTrimTo(pool, v[0]), 64)
    CALL("cuCtxSetLimit stack", ({ int s = cuCtxSetLimit(CU_LIMIT_STACK_SIZE, v[0]); cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024); s; }), 1024)
    CALL("cuCtxSetLimit heap", ({ int s = cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, v[0]); cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8388608); s; }), 8388608)
    CALL("cuMemAddressReserve 0", ({ CUdeviceptr p = 0; int s = cuMemAddressReserve(&p, v[0], v[1], 0, 0); if (!s) cuMemAddressFree(p, v[0]); s; }), 2 << 20, 0)
    CALL("cuMemCreate 0", ({ CUmemGenericAllocationHandle m; CUmemAllocationProp p = {}; p.type = CU_MEM_ALLOCATION_TYPE_PINNED; p.location = there; int s = cuMemCreate(&m, v[0], &p, 0); if (!s) cuMemRelease(m); s; }), 2 << 20)
    CALL("cuMemMap 0", ({ CUdeviceptr a = 0; CUmemGenericAllocationHandle m; CUmemAllocationProp p = {}; p.type = CU_MEM_ALLOCATION_TYPE_PINNED; p.location = there; cuMemAddressReserve(&a, 4 << 20, 0, 0, 0); cuMemCreate(&m, 2 << 20, &p, 0); int s = cuMemMap(a, v[0], v[1], m, 0); if (!s) cuMemUnmap(a, v[0]); cuMemRelease(m); cuMemAddressFree(a, 4 << 20); s; }), 2 << 20, 0)
    CALL("cuMemUnmap 0", ({ CUdeviceptr a = 0; CUmemGenericAllocationHandle m; CUmemAllocationProp p = {}; p.type = CU_MEM_ALLOCATION_TYPE_PINNED; p.location = there; cuMemAddressReserve(&a, 4 << 20, 0, 0, 0); cuMemCreate(&m, 2 << 20, &p, 0); cuMemMap(a, 2 << 20, 0, m, 0); int s = cuMemUnmap(a, v[0]); if (s) cuMemUnmap(a, 2 << 20); cuMemRelease(m); cuMemAddressFree(a, 4 << 20); s; }), 2 << 20)
    CALL("cuMemSetAccess 0", ({ CUdeviceptr a = 0; CUmemGenericAllocationHandle m; CUmemAllocationProp p = {}; p.type = CU_MEM_ALLOCATION_TYPE_PINNED; p.location = there; CUmemAccessDesc x = {there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}; cuMemAddressReserve(&a, 4 << 20, 0, 0, 0); cuMemCreate(&m, 2 << 20, &p, 0); cuMemMap(a, 2 << 20, 0, m, 0); int s = cuMemSetAccess(a, v[0], &x, 1); cuMemUnmap(a, 2 << 20); cuMemRelease(m); cuMemAddressFree(a, 4 << 20); s; }), 2 << 20)
    CALL("cuMemAddressFree 0", ({ CUdeviceptr a = 0; cuMemAddressReserve(&a, 4 << 20, 0, 0, 0); int s = cuMemAddressFree(a, v[0]); if (s) cuMemAddressFree(a, 4 << 20); s; }), 4 << 20)
    CALL("cuTexObjectCreate linear", driver_texture(v, 0), 64)
    CALL("cuTexObjectCreate pitched", driver_texture(v, 1), 32, 3, 512)
    CALL("cuLaunchKernel shared", ({ int *p = 0; void *a[] = {&p}; cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, (unsigned)v[0], stream, a, NULL); }), 64)
    CALL("cuLaunchKernel extra", ({ char room[64] = {}; Z n = v[0]; void *e[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, room, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END}; cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, e); }), 8)
    CALL("cuFuncSetAttribute shared", cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)v[0]), 64)
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor 0", ({ int n; cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, function, (int)v[0], v[1]); }), 32, 64)
    CALL("cuOccupancyAvailableDynamicSMemPerBlock 0", ({ Z n; cuOccupancyAvailableDynamicSMemPerBlock(&n, function, (int)v[0], (int)v[1]); }), 1, 32)
    CALL("cuFuncGetParamInfo 0", ({ Z a, b; cuFuncGetParamInfo(function, v[0], &a, &b); }), 0)
};

static void set_up()
{
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    cudaMalloc(&d, ROOM);
    cudaMalloc(&d2, ROOM);
    h = (char *)aligned_alloc(4096, ROOM);
    memset(h, 1, ROOM);
    cudaMallocHost((void **)&pinned, ROOM);
    cudaMallocManaged(&managed, ROOM);
    cudaMalloc3DArray(&array, &f, make_cudaExtent(64, 16, 4));
    cudaMallocArray(&array1, &f, 64, 16);
    CUDA_ARRAY_DESCRIPTOR a = {64, 0, CU_AD_FORMAT_FLOAT, 1};
    cuArrayCreate(&driver_array1, &a);
    cudaGraphCreate(&graph, 0);
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaStreamCreate(&stream);
    cudaGetFuncBySymbol(&function, (void *)nothing);
    printf("# set up: %d\n", cudaDeviceSynchronize());
    fflush(stdout);
}

static const Z TERA = (Z)1 << 40;
static const Z hostile[] = {0, (Z)-1, (Z)-4, (Z)-255, (Z)-4096, (Z)1 << 63, ((Z)1 << 63) - 1, (Z)1 << 62, (Z)1 << 48, TERA, (Z)1 << 32};
static const Z paired[] = {0, 1, (Z)-1, (Z)-255, (Z)1 << 63, (Z)1 << 32};

static int is_of_host(const char *name)
{
    return strstr(name, "Host") && !strstr(name, "Graph");
}

/* The next case of all; each is started with alarm, so that one that hangs is told, too. */
static int number, first;
static void attempt(const Call &call, const Z *v)
{
    if (number++ < first)
        return;
    printf("%s", call.name);
    for (int i = 0; i < 10; i++)
        printf(" %llx", (unsigned long long)v[i]);
    printf(" = ");
    fflush(stdout);
    alarm(8);
    int status = call.run(v);
    int end = cudaDeviceSynchronize();
    alarm(0);
    cudaGetLastError();
    printf("%d %d\n", status, end);
    fflush(stdout);
    if (end)
        _exit(3); /* a fault that stays: a new process for what follows */
}

/* Calls of one group, each group in processes of its own: what some allocate stays. */
static const int GROUPS = 6;
static void run_all(int group)
{
    set_up();
    for (size_t c = group; c < sizeof calls / sizeof *calls; c += GROUPS) {
        const Call &call = calls[c];
        int count = call.arguments;
        attempt(call, call.usual);
        for (int i = 0; i < count; i++)
            for (Z value : hostile) {
                if (is_of_host(call.name) && (value == TERA || value == (Z)1 << 32))
                    continue;
                Z v[10];
                memcpy(v, call.usual, sizeof v);
                v[i] = value;
                attempt(call, v);
            }
        for (int i = 0; i < count; i++)
            for (int j = i + 1; j < count && count < 7; j++)
                for (Z one : paired)
                    for (Z other : paired) {
                        Z v[10];
                        memcpy(v, call.usual, sizeof v);
                        v[i] = one, v[j] = other;
                        attempt(call, v);
                    }
    }
}

/* Pass on the lines of a child that begins at a case; return whether it was the group's last. */
static int has_ended(const char *program, int group, int *next)
{
    int ends[2];
    if (pipe(ends))
        exit(1);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 1);
        close(ends[0]);
        char at[16], of[16];
        snprintf(of, sizeof of, "%d", group);
        snprintf(at, sizeof at, "%d", *next);
        execl("/proc/self/exe", program, of, at, (char *)NULL);
        _exit(9);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    char line[512];
    int is_whole = 1, how;
    while (fgets(line, sizeof line, in)) {
        is_whole = !!strchr(line, '\n');
        fputs(line, stdout);
        *next += line[0] != '#';
    }
    fclose(in);
    waitpid(child, &how, 0);
    if (!is_whole)
        printf("ended by signal %d\n", WTERMSIG(how));
    fflush(stdout);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (argc > 2) {
        first = atoi(argv[2]);
        run_all(atoi(argv[1]));
        printf("# end %d\n", number);
        fflush(stdout);
        _exit(0);
    }
    for (int group = 0; group < GROUPS; group++) {
        int next = 0, tries = 0;
        while (!has_ended(argv[0], group, &next) && tries++ < 200)
            ;
    }
}
