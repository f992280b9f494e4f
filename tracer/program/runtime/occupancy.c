/* How many blocks of a kernel an SM holds, and how many clusters of them the device holds. */

#include "runtime.h"

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host,
                                                                       int threads, size_t shared,
                                                                       unsigned flags)
{
    (void)flags;
    cudaError_t status = begin();
    struct function *function = status ? NULL : find_function(host, &status);
    if (!function)
        return done(status);
    if (threads < 1)
        return done(cudaErrorInvalidValue);
    struct message message = question(FITS);
    put32(&message, function->number);
    put32(&message, threads);
    put32(&message, shared < UINT32_MAX ? shared : UINT32_MAX);
    status = ask(&message);
    if (!status)
        *blocks = take32(&message);
    close_message(&message);
    return done(status);
}

API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *host, int blocks,
                                                          int threads)
{
    struct cudaFuncAttributes facts;
    int held = 0;
    cudaError_t status = cudaFuncGetAttributes(&facts, host);
    if (!status)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, host, threads, 0);
    size_t most = facts.maxDynamicSharedSizeBytes;
    if (status || blocks < 1 || held < blocks)
        return status ? status : done(cudaErrorInvalidValue);
    for (size_t least = 0; least < most;) { /* what fits in so many blocks is found by halves */
        size_t middle = (least + most + 1) / 2;
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, host, threads, middle);
        if (status)
            return status;
        if (held >= blocks)
            least = middle;
        else
            most = middle - 1;
    }
    *shared = most;
    return done(cudaSuccess);
}

/* A cluster lies in one GPC, of which GH100 has 8; their SMs come in pairs, TPCs. Two H100 and an
   H200 of 132 SMs hold 66 clusters of 2 blocks that fill an SM, 30 of 4 and 15 of 8: as GPCs of
   these sizes do. Of other chips the pairs are shared out evenly. Source: Nsight Compute 2025.3,
   launch__cluster_max_active; NVIDIA H100 Tensor Core GPU Architecture, table 3. */
enum { GPCS = 8 };

static int clusters_held(int blocks, int size)
{
    static const int measured[GPCS] = {18, 18, 18, 18, 18, 16, 16, 10};
    int pairs = device.facts.processors / 2, clusters = 0;
    for (int gpc = 0; gpc < GPCS; gpc++) {
        int even = 2 * (pairs / GPCS + (gpc < pairs % GPCS));
        clusters += (device.facts.processors == 132 ? measured[gpc] : even) * blocks / size;
    }
    return clusters;
}

static int largest_cluster(const struct function *function)
{
    return function->attributes.nonPortableClusterSizeAllowed ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
}

/* What an SM holds of blocks whose registers are not known: cuBLASLt asks without a kernel. */
static int blocks_without_kernel(uint64_t threads, size_t shared)
{
    const struct facts *facts = &device.facts;
    int64_t by_warps = facts->warps_per_sm / (int64_t)((threads + 31) / 32);
    int64_t by_shared = facts->shared_per_sm / (int64_t)(shared + facts->shared_reserved);
    int64_t most = by_warps < by_shared ? by_warps : by_shared;
    return most < facts->blocks_per_sm ? most : facts->blocks_per_sm;
}

/* The kernel, and how many of its blocks an SM holds; NULL with a status if there are no clusters. */
static const struct function *blocks_held(const void *host, const cudaLaunchConfig_t *config,
                                          int *blocks, cudaError_t *status)
{
    static const struct function unknown = {.attributes = {.nonPortableClusterSizeAllowed = 1}};
    dim3 block = config->blockDim;
    *status = begin();
    const struct function *function = &unknown;
    if (host && !*status)
        function = find_function(host, status);
    int can = 0;
    if (!*status)
        *status = cudaDeviceGetAttribute(&can, cudaDevAttrClusterLaunch, 0);
    if (!*status && !can)
        *status = cudaErrorNotSupported;
    uint64_t threads = threads_of(block);
    if (!*status && threads > (uint64_t)device.facts.threads_per_block)
        *status = cudaErrorInvalidConfiguration;
    if (!*status && !host && threads)
        *blocks = blocks_without_kernel(threads, config->dynamicSmemBytes);
    else if (!*status)
        *status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads,
                                                                config->dynamicSmemBytes);
    return *status ? NULL : function;
}

API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *host,
                                               const cudaLaunchConfig_t *config)
{
    cudaError_t status;
    int blocks = 0;
    uint64_t size = 1;
    const struct function *function = blocks_held(host, config, &blocks, &status);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute *each = config->attrs + i;
        if (each->id == cudaLaunchAttributeClusterDimension)
            size = threads_of(
                (dim3){each->val.clusterDim.x, each->val.clusterDim.y, each->val.clusterDim.z});
    }
    if (!function)
        return done(status);
    if (size < 1 || size > (uint64_t)largest_cluster(function))
        return done(cudaErrorInvalidClusterSize);
    *clusters = clusters_held(blocks, size);
    return done(cudaSuccess);
}

API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *host,
                                                     const cudaLaunchConfig_t *config)
{
    cudaError_t status;
    int blocks = 0;
    const struct function *function = blocks_held(host, config, &blocks, &status);
    if (!function)
        return done(status);
    *size = largest_cluster(function);
    while (*size > 1 && !clusters_held(blocks, *size))
        *size /= 2;
    return done(cudaSuccess);
}
