/* Functions and kernels: what may be asked of them, and how they are launched. */

#include "driver.h"

#define MOST_PARAMETERS 4096

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    struct cudaFuncAttributes own;
    cudaError_t status = cudaFuncGetAttributes(&own, function);
    if (status)
        return result(status);
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = own.maxThreadsPerBlock; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = own.sharedSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = own.constSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = own.localSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = own.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = own.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = own.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = own.maxDynamicSharedSizeBytes;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = own.preferredShmemCarveout; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = own.nonPortableClusterSizeAllowed;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = own.clusterDimMustBeSet; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = own.requiredClusterWidth; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = own.requiredClusterHeight; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = own.requiredClusterDepth; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    const struct function *own = (struct function *)function;
    CUdevice number;
    CUresult status = cuCtxGetDevice(&number);
    if (status || index >= own->count)
        return status ? status : CUDA_ERROR_INVALID_VALUE;
    *offset = own->parameters[index].offset;
    if (bytes)
        *bytes = own->parameters[index].bytes;
    return result(begin());
}

/* Attributes are laid out and numbered alike in the driver's interface and the runtime's. */
static cudaLaunchConfig_t as_runtime(const CUlaunchConfig *config)
{
    return (cudaLaunchConfig_t){
        .gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamicSmemBytes = config->sharedMemBytes,
        .attrs = (cudaLaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
}

static size_t shared_for(CUoccupancyB2DSize by_block, size_t shared, int threads)
{
    return by_block ? by_block(threads) : shared;
}

/* The largest block of those with the most threads on an SM, and the grid that fills the device. */
API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                       CUoccupancyB2DSize by_block, size_t shared,
                                                       int limit, unsigned flags)
{
    int most, best = 0;
    CUresult status = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    if (status)
        return status;
    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
        int own = threads < most ? threads : most, blocks = 0;
        status = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, function, own, shared_for(by_block, shared, own), flags);
        if (status)
            return status;
        if (blocks * own <= best)
            continue;
        best = blocks * own;
        *block = own;
        *grid = blocks * (int)device.facts.processors;
    }
    return CUDA_SUCCESS;
}

/* Arguments that lie in one buffer, each at its offset. */
static void **unpack(const struct function *function, void **extra, void **places)
{
    char *buffer = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
    for (uint32_t i = 0; buffer && i < function->count; i++)
        places[i] = buffer + function->parameters[i].offset;
    return buffer ? places : NULL;
}

static CUresult launch(CUfunction function, dim3 grid, dim3 block, unsigned shared, CUstream stream,
                       void **arguments, void **extra, unsigned flags, dim3 cluster)
{
    void *places[MOST_PARAMETERS];
    cudaError_t status = begin();
    struct function *own = status ? NULL : find_function(function, &status);
    if (!own)
        return result(status);
    if (own->count > MOST_PARAMETERS)
        return CUDA_ERROR_INVALID_VALUE;
    if (!arguments)
        arguments = unpack(own, extra, places);
    if (own->count && !arguments)
        return CUDA_ERROR_INVALID_VALUE;
    return result(launch_kernel(own, grid, block, arguments, shared, stream, flags, cluster));
}

static const dim3 none = {0, 0, 0};

API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                              void **extra)
{
    dim3 grid = {config->gridDimX, config->gridDimY, config->gridDimZ}, cluster = none;
    dim3 block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    unsigned flags = 0;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *each = config->attrs + i;
        if (each->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && each->value.cooperative)
            flags |= COOPERATIVE;
        if (each->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            cluster.x = each->value.clusterDim.x;
            cluster.y = each->value.clusterDim.y;
            cluster.z = each->value.clusterDim.z;
        }
    }
    return launch(function, grid, block, config->sharedMemBytes, config->hStream, arguments, extra,
                  flags, cluster);
}

#include "forwards_driver_function.h"
