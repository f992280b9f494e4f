/* The device asked for, alone: its properties are the recorder's facts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define COUNT 1
#define MOST_GRANULARITY 128 /* bytes that level 2 fetches at a time */
#define OPEN_SHARED (48 * 1024) /* bytes a block may have without being asked for by an attribute */

static unsigned device_flags;
int is_runtime_used;

static cudaError_t begin_on(int number)
{
    cudaError_t status = begin();
    if (status)
        return status;
    return number >= 0 && number < COUNT ? cudaSuccess : cudaErrorInvalidDevice;
}

API cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t status = connect_recorder();
    *count = status ? 0 : COUNT;
    return done(status);
}

API cudaError_t cudaSetDevice(int number)
{
    is_runtime_used = 1;
    return done(begin_on(number));
}

API cudaError_t cudaInitDevice(int number, unsigned device_flag, unsigned flags)
{
    (void)device_flag, (void)flags;
    return done(begin_on(number));
}

API cudaError_t cudaGetDevice(int *number)
{
    *number = 0;
    return done(begin());
}

API cudaError_t cudaSetValidDevices(int *devices, int count)
{
    (void)devices, (void)count;
    return done(begin());
}

API cudaError_t cudaChooseDevice(int *number, const struct cudaDeviceProp *wanted)
{
    (void)wanted;
    *number = 0;
    return done(begin());
}

API cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    device_flags = flags;
    return done(begin());
}

API cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags | cudaDeviceMapHost;
    return done(begin());
}

API cudaError_t cudaDeviceReset(void)
{
    return done(begin());
}

API cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return done(cudaSuccess);
}

API cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return done(cudaSuccess);
}

static int capability(void)
{
    return 10 * device.facts.major + device.facts.minor;
}

/* The chips of Jetson and DGX Spark, whose memory is the processor's. */
static int is_integrated(void)
{
    static const int shared[] = {32, 53, 62, 72, 87, 110, 121};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (shared[i] == capability())
            return 1;
    return 0;
}

/* Attributes that the facts give, or that follow from there being one memory and one device. */
static int64_t attribute(enum cudaDeviceAttr which, int *is_known)
{
    const struct facts *facts = &device.facts;
    *is_known = 1;
    switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: return facts->threads_per_block;
    case cudaDevAttrMaxBlockDimX: return facts->block_x;
    case cudaDevAttrMaxBlockDimY: return facts->block_y;
    case cudaDevAttrMaxBlockDimZ: return facts->block_z;
    case cudaDevAttrMaxGridDimX: return facts->grid_x;
    case cudaDevAttrMaxGridDimY: return facts->grid_y;
    case cudaDevAttrMaxGridDimZ: return facts->grid_z;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return facts->shared_per_block < OPEN_SHARED ? facts->shared_per_block : OPEN_SHARED;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return facts->shared_per_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return facts->shared_per_sm;
    case cudaDevAttrReservedSharedMemoryPerBlock: return facts->shared_reserved;
    case cudaDevAttrTotalConstantMemory: return facts->constant_bytes;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxPitch: return 0x7fffffff;
    case cudaDevAttrMaxRegistersPerBlock: return facts->registers_per_block;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return facts->registers_per_sm;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 32 * facts->warps_per_sm;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return facts->blocks_per_sm;
    case cudaDevAttrMultiProcessorCount: return facts->processors;
    case cudaDevAttrClockRate: return facts->kilohertz;
    case cudaDevAttrMemoryClockRate: return facts->memory_kilohertz;
    case cudaDevAttrGlobalMemoryBusWidth: return facts->bus_bits;
    case cudaDevAttrL2CacheSize: return facts->l2_bytes;
    case cudaDevAttrComputeCapabilityMajor: return facts->major;
    case cudaDevAttrComputeCapabilityMinor: return facts->minor;
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrTexturePitchAlignment: return 32;
    case cudaDevAttrSurfaceAlignment: return 512;
    case cudaDevAttrAsyncEngineCount: return 3;
    case cudaDevAttrMaxTexture1DWidth: return 131072;
    case cudaDevAttrMaxTexture1DLinearWidth: return 1 << 28;
    case cudaDevAttrMaxTexture2DWidth: return 131072;
    case cudaDevAttrMaxTexture2DHeight: return 65536;
    case cudaDevAttrMaxTexture2DLinearWidth: return 131072;
    case cudaDevAttrMaxTexture2DLinearHeight: return 65000;
    case cudaDevAttrMaxTexture2DLinearPitch: return 2097120;
    case cudaDevAttrMaxTexture3DWidth:
    case cudaDevAttrMaxTexture3DHeight:
    case cudaDevAttrMaxTexture3DDepth: return 16384;
    case cudaDevAttrMaxTextureCubemapWidth: return 32768;
    case cudaDevAttrMaxTexture1DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredHeight: return 32768;
    case cudaDevAttrMaxTexture1DLayeredLayers:
    case cudaDevAttrMaxTexture2DLayeredLayers: return 2048;
    case cudaDevAttrMaxSurface1DWidth: return 32768;
    case cudaDevAttrMaxSurface2DWidth: return 131072;
    case cudaDevAttrMaxSurface2DHeight: return 65536;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing: return facts->major >= 2;
    case cudaDevAttrManagedMemory: return facts->major >= 3;
    case cudaDevAttrStreamPrioritiesSupported: return capability() >= 35;
    case cudaDevAttrConcurrentManagedAccess:
        return facts->major >= 6 && (!is_integrated() || capability() >= 110);
    case cudaDevAttrComputePreemptionSupported: return facts->major >= 6;
    case cudaDevAttrIntegrated: return is_integrated();
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrHostMemoryPoolsSupported:
    case cudaDevAttrHostNumaMemoryPoolsSupported:
    case cudaDevAttrMemoryPoolsSupported: return 1;
    case cudaDevAttrMaxPersistingL2CacheSize: /* of 9.0 measured; CUDA C++ Programming Guide */
        return facts->major >= 9   ? facts->l2_bytes / 8 * 5
               : facts->major == 8 ? facts->l2_bytes / 4 * 3
                                   : 0;
    case cudaDevAttrMaxAccessPolicyWindowSize:
        return facts->major >= 9 ? 134217728 : facts->major == 8 ? 134213632 : 0;
    case cudaDevAttrCooperativeLaunch: return facts->major >= 6;
    case cudaDevAttrClusterLaunch: return facts->major >= 9;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return facts->single_to_double;
    default: *is_known = 0; return 0;
    }
}

static int64_t known(enum cudaDeviceAttr which)
{
    int is_known;
    return attribute(which, &is_known);
}

/* What is not known of the device is 0, as CUDA has it where a device lacks something. */
API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int number)
{
    cudaError_t status = begin_on(number);
    if (status)
        return done(status);
    *value = known(which);
    return done(cudaSuccess);
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int number)
{
    const struct facts *facts = &device.facts;
    cudaError_t status = begin_on(number);
    if (status)
        return done(status);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", device.name);
    p->major = facts->major;
    p->minor = facts->minor;
    p->totalGlobalMem = facts->memory_bytes;
    p->totalConstMem = facts->constant_bytes;
    p->warpSize = 32;
    p->memPitch = known(cudaDevAttrMaxPitch);
    p->maxThreadsPerBlock = facts->threads_per_block;
    p->maxThreadsDim[0] = facts->block_x;
    p->maxThreadsDim[1] = facts->block_y;
    p->maxThreadsDim[2] = facts->block_z;
    p->maxGridSize[0] = facts->grid_x;
    p->maxGridSize[1] = facts->grid_y;
    p->maxGridSize[2] = facts->grid_z;
    p->multiProcessorCount = facts->processors;
    p->maxThreadsPerMultiProcessor = known(cudaDevAttrMaxThreadsPerMultiProcessor);
    p->maxBlocksPerMultiProcessor = facts->blocks_per_sm;
    p->regsPerBlock = facts->registers_per_block;
    p->regsPerMultiprocessor = facts->registers_per_sm;
    p->sharedMemPerBlock = known(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = facts->shared_per_block;
    p->sharedMemPerMultiprocessor = facts->shared_per_sm;
    p->reservedSharedMemPerBlock = facts->shared_reserved;
    p->l2CacheSize = facts->l2_bytes;
    p->memoryBusWidth = facts->bus_bits;
    p->textureAlignment = known(cudaDevAttrTextureAlignment);
    p->texturePitchAlignment = known(cudaDevAttrTexturePitchAlignment);
    p->surfaceAlignment = known(cudaDevAttrSurfaceAlignment);
    p->maxTexture1D = known(cudaDevAttrMaxTexture1DWidth);
    p->maxTexture2D[0] = known(cudaDevAttrMaxTexture2DWidth);
    p->maxTexture2D[1] = known(cudaDevAttrMaxTexture2DHeight);
    p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = known(cudaDevAttrMaxTexture3DWidth);
    p->maxTexture1DLayered[0] = known(cudaDevAttrMaxTexture1DLayeredWidth);
    p->maxTexture1DLayered[1] = known(cudaDevAttrMaxTexture1DLayeredLayers);
    p->maxTexture2DLayered[0] = p->maxTexture2DLayered[1] = known(cudaDevAttrMaxTexture2DLayeredWidth);
    p->maxTexture2DLayered[2] = known(cudaDevAttrMaxTexture2DLayeredLayers);
    p->maxTextureCubemap = known(cudaDevAttrMaxTextureCubemapWidth);
    p->maxSurface2D[0] = known(cudaDevAttrMaxSurface2DWidth);
    p->maxSurface2D[1] = known(cudaDevAttrMaxSurface2DHeight);
    p->asyncEngineCount = known(cudaDevAttrAsyncEngineCount);
    p->canMapHostMemory = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->hostRegisterSupported = p->memoryPoolsSupported = 1;
    p->integrated = known(cudaDevAttrIntegrated);
    p->concurrentKernels = known(cudaDevAttrConcurrentKernels);
    p->unifiedAddressing = known(cudaDevAttrUnifiedAddressing);
    p->managedMemory = known(cudaDevAttrManagedMemory);
    p->concurrentManagedAccess = known(cudaDevAttrConcurrentManagedAccess);
    p->streamPrioritiesSupported = known(cudaDevAttrStreamPrioritiesSupported);
    p->computePreemptionSupported = known(cudaDevAttrComputePreemptionSupported);
    p->persistingL2CacheMaxSize = known(cudaDevAttrMaxPersistingL2CacheSize);
    p->accessPolicyMaxWindowSize = known(cudaDevAttrMaxAccessPolicyWindowSize);
    p->cooperativeLaunch = known(cudaDevAttrCooperativeLaunch);
    p->clusterLaunch = known(cudaDevAttrClusterLaunch);
    p->pciBusID = 1;
    return done(cudaSuccess);
}

static size_t limits[16] = {
    [cudaLimitStackSize] = 1024,
    [cudaLimitPrintfFifoSize] = 1 << 20,
    [cudaLimitMallocHeapSize] = 8 << 20,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 64,
    [cudaLimitPersistingL2CacheSize] = 0,
};

API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    if ((unsigned)limit >= sizeof limits / sizeof *limits)
        return done(cudaErrorInvalidValue);
    cudaError_t status = begin();
    if (!status && value > (limit == cudaLimitMaxL2FetchGranularity
                                ? MOST_GRANULARITY : (size_t)device.facts.memory_bytes))
        status = cudaErrorInvalidValue;
    if (status)
        return done(status);
    limits[limit] = value;
    struct message message = question(LIMIT);
    put32(&message, limit);
    put64(&message, value);
    tell(&message);
    close_message(&message);
    return done(status);
}

API cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    if ((unsigned)limit >= sizeof limits / sizeof *limits)
        return done(cudaErrorInvalidValue);
    *value = limits[limit];
    return done(begin());
}

static enum cudaFuncCache cache = cudaFuncCachePreferNone;

API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    if ((unsigned)config > cudaFuncCachePreferEqual)
        return done(cudaErrorInvalidValue);
    cache = config;
    return done(begin());
}

API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    *config = cache;
    return done(begin());
}

API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    *config = cudaSharedMemBankSizeFourByte; /* as all devices since 5.0 have it, whatever is set */
    return done(begin());
}

API cudaError_t cudaFuncSetSharedMemConfig(const void *host, enum cudaSharedMemConfig config)
{
    (void)host, (void)config;
    return done(begin());
}

API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    (void)config;
    return done(begin());
}

API cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    return done(begin());
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int number, int peer)
{
    (void)number, (void)peer;
    *can = 0;
    return done(begin());
}

API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)peer, (void)flags;
    return done(cudaErrorInvalidDevice);
}

API cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    (void)peer;
    return done(cudaErrorPeerAccessNotEnabled);
}

API cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int number)
{
    cudaError_t status = begin_on(number);
    if (!status)
        snprintf(text, length, "0000:01:00.0");
    return done(status);
}

API cudaError_t cudaDeviceGetByPCIBusId(int *number, const char *text)
{
    (void)text;
    *number = 0;
    return done(begin());
}

API cudaError_t cudaProfilerStart(void)
{
    return done(begin());
}

API cudaError_t cudaProfilerStop(void)
{
    return done(begin());
}
