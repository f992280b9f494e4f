/* The device asked for, alone: its properties are the recorder's facts. */

#include <stdio.h>

#include "runtime.h"

#define COUNT 1
#define MOST_GRANULARITY 128 /* bytes that level 2 fetches at a time */
#define OPEN_SHARED (48 * 1024) /* bytes a block may have without being asked for by an attribute */

static unsigned device_flags;
int is_runtime_used;

/* Attributes that only the driver names (CUdevice_attribute); the runtime answers them, too. */
enum {
    CAN_GATHER_TEXELS = 44,
    CAN_MAP_VIRTUAL_MEMORY = 102,
    CAN_COMPRESS = 107,
    HAS_64_BIT_STREAM_OPERATIONS = 122,
    HAS_STREAM_WAIT_NOR = 123,
    HAS_TENSOR_MAPS = 127,
    HAS_UNIFIED_FUNCTION_POINTERS = 129,
};

cudaError_t begin_on(int number)
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
static int64_t attribute(int which)
{
    const struct facts *facts = &device.facts;
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
    /* Texels: as an H200 has them; which devices have fewer is in the CUDA C++ Programming Guide. */
    case cudaDevAttrMaxTexture1DLinearWidth: return 1 << 28;
    case cudaDevAttrMaxTexture1DWidth:
    case cudaDevAttrMaxTexture2DWidth:
    case cudaDevAttrMaxSurface2DWidth:
    case cudaDevAttrMaxTexture2DLinearWidth: return 131072;
    case cudaDevAttrMaxTexture2DHeight:
    case cudaDevAttrMaxSurface2DHeight: return 65536;
    case cudaDevAttrMaxTexture2DLinearHeight: return 65000;
    case cudaDevAttrMaxTexture2DLinearPitch: return 2097120;
    case cudaDevAttrMaxTexture3DWidth:
    case cudaDevAttrMaxTexture3DHeight:
    case cudaDevAttrMaxTexture3DDepth:
    case cudaDevAttrMaxSurface3DWidth:
    case cudaDevAttrMaxSurface3DHeight:
    case cudaDevAttrMaxSurface3DDepth: return 16384;
    case cudaDevAttrMaxTexture3DWidthAlt:
    case cudaDevAttrMaxTexture3DHeightAlt: return 8192;
    case cudaDevAttrMaxTexture3DDepthAlt:
    case cudaDevAttrMaxTexture1DMipmappedWidth:
    case cudaDevAttrMaxTexture2DMipmappedWidth:
    case cudaDevAttrMaxTexture2DMipmappedHeight:
    case cudaDevAttrMaxTexture2DGatherWidth:
    case cudaDevAttrMaxTexture2DGatherHeight:
    case cudaDevAttrMaxTextureCubemapWidth:
    case cudaDevAttrMaxTextureCubemapLayeredWidth:
    case cudaDevAttrMaxTexture1DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredHeight:
    case cudaDevAttrMaxSurface1DWidth:
    case cudaDevAttrMaxSurface1DLayeredWidth:
    case cudaDevAttrMaxSurface2DLayeredWidth:
    case cudaDevAttrMaxSurface2DLayeredHeight:
    case cudaDevAttrMaxSurfaceCubemapWidth:
    case cudaDevAttrMaxSurfaceCubemapLayeredWidth: return 32768;
    case cudaDevAttrMaxTexture1DLayeredLayers:
    case cudaDevAttrMaxTexture2DLayeredLayers:
    case cudaDevAttrMaxSurface1DLayeredLayers:
    case cudaDevAttrMaxSurface2DLayeredLayers: return 2048;
    case cudaDevAttrMaxTextureCubemapLayeredLayers:
    case cudaDevAttrMaxSurfaceCubemapLayeredLayers: return 2046; /* six faces each */
    case CAN_GATHER_TEXELS: return facts->major >= 2;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing: return facts->major >= 2;
    case cudaDevAttrManagedMemory: return facts->major >= 3;
    case cudaDevAttrStreamPrioritiesSupported: return capability() >= 35;
    case cudaDevAttrConcurrentManagedAccess:
        return facts->major >= 6 && (!is_integrated() || capability() >= 110);
    case cudaDevAttrComputePreemptionSupported: return facts->major >= 6;
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return can_use_registered();
    case cudaDevAttrIntegrated: return is_integrated();
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case CAN_MAP_VIRTUAL_MEMORY:
    case HAS_64_BIT_STREAM_OPERATIONS:
    case HAS_STREAM_WAIT_NOR:
    case HAS_UNIFIED_FUNCTION_POINTERS:
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
    case CAN_COMPRESS: return facts->major >= 8;
    case cudaDevAttrClusterLaunch:
    case HAS_TENSOR_MAPS: return facts->major >= 9;
    case cudaDevAttrMemSyncDomainCount: return facts->major >= 9 ? 4 : 1;
    case cudaDevAttrNumaId: return -1;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return facts->single_to_double;
    default: return 0;
    }
}

/* What is not known of the device is 0, as CUDA has it where a device lacks something. */
API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int number)
{
    cudaError_t status = begin_on(number);
    if (!status && (which < 1 || which >= cudaDevAttrMax))
        status = cudaErrorInvalidValue;
    if (status)
        return done(status);
    *value = attribute(which);
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
    p->memPitch = attribute(cudaDevAttrMaxPitch);
    p->maxThreadsPerBlock = facts->threads_per_block;
    p->maxThreadsDim[0] = facts->block_x;
    p->maxThreadsDim[1] = facts->block_y;
    p->maxThreadsDim[2] = facts->block_z;
    p->maxGridSize[0] = facts->grid_x;
    p->maxGridSize[1] = facts->grid_y;
    p->maxGridSize[2] = facts->grid_z;
    p->multiProcessorCount = facts->processors;
    p->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    p->maxBlocksPerMultiProcessor = facts->blocks_per_sm;
    p->regsPerBlock = facts->registers_per_block;
    p->regsPerMultiprocessor = facts->registers_per_sm;
    p->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = facts->shared_per_block;
    p->sharedMemPerMultiprocessor = facts->shared_per_sm;
    p->reservedSharedMemPerBlock = facts->shared_reserved;
    p->l2CacheSize = facts->l2_bytes;
    p->memoryBusWidth = facts->bus_bits;
    p->textureAlignment = attribute(cudaDevAttrTextureAlignment);
    p->texturePitchAlignment = attribute(cudaDevAttrTexturePitchAlignment);
    p->surfaceAlignment = attribute(cudaDevAttrSurfaceAlignment);
    p->maxTexture1D = attribute(cudaDevAttrMaxTexture1DWidth);
    p->maxTexture1DMipmap = attribute(cudaDevAttrMaxTexture1DMipmappedWidth);
    p->maxTexture2D[0] = attribute(cudaDevAttrMaxTexture2DWidth);
    p->maxTexture2D[1] = attribute(cudaDevAttrMaxTexture2DHeight);
    p->maxTexture2DMipmap[0] = attribute(cudaDevAttrMaxTexture2DMipmappedWidth);
    p->maxTexture2DMipmap[1] = attribute(cudaDevAttrMaxTexture2DMipmappedHeight);
    p->maxTexture2DLinear[0] = attribute(cudaDevAttrMaxTexture2DLinearWidth);
    p->maxTexture2DLinear[1] = attribute(cudaDevAttrMaxTexture2DLinearHeight);
    p->maxTexture2DLinear[2] = attribute(cudaDevAttrMaxTexture2DLinearPitch);
    p->maxTexture2DGather[0] = attribute(cudaDevAttrMaxTexture2DGatherWidth);
    p->maxTexture2DGather[1] = attribute(cudaDevAttrMaxTexture2DGatherHeight);
    p->maxTexture3D[0] = attribute(cudaDevAttrMaxTexture3DWidth);
    p->maxTexture3D[1] = attribute(cudaDevAttrMaxTexture3DHeight);
    p->maxTexture3D[2] = attribute(cudaDevAttrMaxTexture3DDepth);
    p->maxTexture3DAlt[0] = attribute(cudaDevAttrMaxTexture3DWidthAlt);
    p->maxTexture3DAlt[1] = attribute(cudaDevAttrMaxTexture3DHeightAlt);
    p->maxTexture3DAlt[2] = attribute(cudaDevAttrMaxTexture3DDepthAlt);
    p->maxTextureCubemap = attribute(cudaDevAttrMaxTextureCubemapWidth);
    p->maxTexture1DLayered[0] = attribute(cudaDevAttrMaxTexture1DLayeredWidth);
    p->maxTexture1DLayered[1] = attribute(cudaDevAttrMaxTexture1DLayeredLayers);
    p->maxTexture2DLayered[0] = attribute(cudaDevAttrMaxTexture2DLayeredWidth);
    p->maxTexture2DLayered[1] = attribute(cudaDevAttrMaxTexture2DLayeredHeight);
    p->maxTexture2DLayered[2] = attribute(cudaDevAttrMaxTexture2DLayeredLayers);
    p->maxTextureCubemapLayered[0] = attribute(cudaDevAttrMaxTextureCubemapLayeredWidth);
    p->maxTextureCubemapLayered[1] = attribute(cudaDevAttrMaxTextureCubemapLayeredLayers);
    p->maxSurface1D = attribute(cudaDevAttrMaxSurface1DWidth);
    p->maxSurface2D[0] = attribute(cudaDevAttrMaxSurface2DWidth);
    p->maxSurface2D[1] = attribute(cudaDevAttrMaxSurface2DHeight);
    p->maxSurface3D[0] = attribute(cudaDevAttrMaxSurface3DWidth);
    p->maxSurface3D[1] = attribute(cudaDevAttrMaxSurface3DHeight);
    p->maxSurface3D[2] = attribute(cudaDevAttrMaxSurface3DDepth);
    p->maxSurface1DLayered[0] = attribute(cudaDevAttrMaxSurface1DLayeredWidth);
    p->maxSurface1DLayered[1] = attribute(cudaDevAttrMaxSurface1DLayeredLayers);
    p->maxSurface2DLayered[0] = attribute(cudaDevAttrMaxSurface2DLayeredWidth);
    p->maxSurface2DLayered[1] = attribute(cudaDevAttrMaxSurface2DLayeredHeight);
    p->maxSurface2DLayered[2] = attribute(cudaDevAttrMaxSurface2DLayeredLayers);
    p->maxSurfaceCubemap = attribute(cudaDevAttrMaxSurfaceCubemapWidth);
    p->maxSurfaceCubemapLayered[0] = attribute(cudaDevAttrMaxSurfaceCubemapLayeredWidth);
    p->maxSurfaceCubemapLayered[1] = attribute(cudaDevAttrMaxSurfaceCubemapLayeredLayers);
    p->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
    p->canMapHostMemory = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->hostRegisterSupported = p->memoryPoolsSupported = 1;
    p->canUseHostPointerForRegisteredMem = can_use_registered();
    p->integrated = attribute(cudaDevAttrIntegrated);
    p->concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
    p->unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
    p->managedMemory = attribute(cudaDevAttrManagedMemory);
    p->concurrentManagedAccess = attribute(cudaDevAttrConcurrentManagedAccess);
    p->streamPrioritiesSupported = attribute(cudaDevAttrStreamPrioritiesSupported);
    p->computePreemptionSupported = attribute(cudaDevAttrComputePreemptionSupported);
    p->persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
    p->accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
    p->cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
    p->clusterLaunch = attribute(cudaDevAttrClusterLaunch);
    p->hostRegisterReadOnlySupported = p->unifiedFunctionPointers = 1;
    p->deviceNumaId = attribute(cudaDevAttrNumaId);
    p->pciBusID = 1;
    /* What CUDA 12 had, by the names that toolkit.py gives the last of what is reserved. */
    const int older[] = {
        facts->kilohertz, facts->memory_kilohertz, p->asyncEngineCount > 0, cudaComputeModeDefault, 0,
        attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio), 0,
        attribute(cudaDevAttrMaxTexture1DLinearWidth),
    };
    memcpy((char *)(p->reserved) + sizeof p->reserved - sizeof older, older, sizeof older);
    return done(cudaSuccess);
}

/* CUlimit's CU_LIMIT_SHMEM_SIZE and CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED. */
#define SHARED_LIMIT 7
#define CIG_FALLBACK_LIMIT 9
#define LIMITS 10
static size_t limits[LIMITS] = {
    [cudaLimitStackSize] = 1024,
    [cudaLimitPrintfFifoSize] = 1 << 20,
    [cudaLimitMallocHeapSize] = 8 << 20,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 64,
    [cudaLimitPersistingL2CacheSize] = 0,
};

/* As an H200 with CUDA 13 answers. */
static cudaError_t check_limit(enum cudaLimit limit)
{
    if ((unsigned)limit >= LIMITS)
        return cudaErrorInvalidValue;
    if (limit == cudaLimitDevRuntimeSyncDepth || limit == CIG_FALLBACK_LIMIT)
        return cudaErrorUnsupportedLimit;
    return begin();
}

API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    cudaError_t status = check_limit(limit);
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

static enum cudaFuncCache cache = cudaFuncCachePreferNone;

#include "forwards_runtime_device.h"
