/* Launches: the compiler's code calls these for `kernel<<<grid, block, shared, stream>>>(...)`, and
   programs up to CUDA 9 a function for the configuration, one for each argument, and one at last. */

#include <stdio.h>

#include "runtime.h"

#define DEEPEST 16
#define MOST_ARGUMENT_BYTES 4096
#define MOST_ARGUMENTS 1024

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    struct stack stack;
} pushed[DEEPEST];
static __thread unsigned depth;

/* Where the program's own code calls for the launch in hand: the compiler pushes the configuration
   there, and launches from a function of its own. */
static __thread struct stack called;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    is_runtime_used = 1;
    if (depth == DEEPEST)
        return 1;
    pushed[depth].grid = grid;
    pushed[depth].block = block;
    pushed[depth].shared = shared;
    pushed[depth].stream = stream;
    find_stack(&pushed[depth].stack);
    depth++;
    return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!depth)
        return cudaErrorMissingConfiguration;
    depth--;
    *grid = pushed[depth].grid;
    *block = pushed[depth].block;
    *shared = pushed[depth].shared;
    *(cudaStream_t *)stream = pushed[depth].stream;
    called = pushed[depth].stack;
    return cudaSuccess;
}

static int is_within(unsigned value, int64_t most)
{
    return value >= 1 && value <= most;
}

static const dim3 single = {1, 1, 1}, none = {0, 0, 0};

static int is_same(dim3 one, dim3 other)
{
    return one.x == other.x && one.y == other.y && one.z == other.z;
}

/* What CUDA itself refuses before anything runs. */
static cudaError_t check(const struct function *function, dim3 grid, dim3 block, size_t shared)
{
    const struct facts *facts = &device.facts;
    const struct cudaFuncAttributes *own = &function->attributes;
    uint64_t threads = threads_of(block);
    if (!is_within(grid.x, facts->grid_x) || !is_within(grid.y, facts->grid_y) ||
        !is_within(grid.z, facts->grid_z) || !is_within(block.x, facts->block_x) ||
        !is_within(block.y, facts->block_y) || !is_within(block.z, facts->block_z) ||
        threads > (uint64_t)facts->threads_per_block)
        return cudaErrorInvalidConfiguration;
    if (threads > (uint64_t)own->maxThreadsPerBlock) /* of its launch bounds */
        return cudaErrorInvalidValue;
    if (function->block.x && !is_same(block, function->block))
        return cudaErrorInvalidValue;
    return shared <= (size_t)own->maxDynamicSharedSizeBytes ? cudaSuccess : cudaErrorInvalidValue;
}

/* The clusters that are asked for, {0, 0, 0} if none are, beside those that the kernel demands. */
static cudaError_t check_cluster(const struct cudaFuncAttributes *own, dim3 cluster)
{
    dim3 demanded = {own->requiredClusterWidth, own->requiredClusterHeight, own->requiredClusterDepth};
    if (is_same(cluster, none)) {
        if (own->clusterDimMustBeSet && !demanded.x)
            return cudaErrorInvalidClusterSize;
        cluster = demanded;
    } else if (demanded.x && !is_same(cluster, demanded))
        return cudaErrorInvalidClusterSize;
    int is_large = threads_of(cluster) > PORTABLE_CLUSTER;
    return is_large && !own->nonPortableClusterSizeAllowed ? cudaErrorInvalidClusterSize : cudaSuccess;
}

struct launch *make_launch(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                           cudaError_t *status)
{
    struct function *function = find_function(host, status);
    if (!function)
        return NULL;
    if (is_same(block, single) && function->block.x)
        block = function->block; /* a kernel that demands a size takes one thread as that size */
    *status = check(function, grid, block, shared);
    if (function->count && !arguments)
        *status = cudaErrorInvalidValue;
    if (*status)
        return NULL;
    size_t bytes = 0;
    for (uint32_t i = 0; i < function->count; i++)
        bytes += function->parameters[i].bytes;
    struct launch *launch = calloc(1, sizeof *launch + bytes);
    launch->function = function;
    launch->prefers = preference(function);
    if (!called.count)
        find_stack(&called);
    launch->stack = called;
    called.count = 0;
    launch->grid = grid;
    launch->block = block;
    launch->shared = shared;
    launch->bytes = bytes;
    char *end = launch->arguments;
    for (uint32_t i = 0; i < function->count; i++) {
        memcpy(end, arguments[i], function->parameters[i].bytes);
        end += function->parameters[i].bytes;
    }
    return launch;
}

cudaError_t launch_kernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                          cudaStream_t stream, unsigned flags, dim3 cluster)
{
    cudaError_t status = begin();
    if (status)
        return status;
    struct launch *launch = make_launch(host, grid, block, arguments, shared, &status);
    if (!launch)
        return status;
    status = check_cluster(&launch->function->attributes, cluster);
    if (status) {
        free(launch);
        return status;
    }
    launch->flags = flags;
    launch->stream = stream;
    launch->cluster = cluster;
    status = submit(stream, cudaGraphNodeTypeKernel, run_launch, launch, sizeof *launch + launch->bytes);
    free(launch);
    return status;
}

API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                   size_t shared, cudaStream_t stream)
{
    return done(launch_kernel(kernel, grid, block, arguments, shared, stream, 0, none));
}

API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host,
                                    void **arguments)
{
    unsigned flags = 0;
    dim3 cluster = none;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute *attribute = config->attrs + i;
        if (attribute->id == cudaLaunchAttributeCooperative && attribute->val.cooperative)
            flags |= COOPERATIVE;
        if (attribute->id == cudaLaunchAttributeClusterDimension) {
            cluster.x = attribute->val.clusterDim.x;
            cluster.y = attribute->val.clusterDim.y;
            cluster.z = attribute->val.clusterDim.z;
        }
    }
    cudaError_t status = launch_kernel(host, config->gridDim, config->blockDim, arguments,
                                       config->dynamicSmemBytes, config->stream, flags, cluster);
    /* what <<<>>> calls an invalid configuration is an invalid value here */
    return done(status == cudaErrorInvalidConfiguration ? cudaErrorInvalidValue : status);
}

/* What is set up for the next cudaLaunch: bytes at the offsets at which the kernel has them. */
static __thread char arguments_set_up[MOST_ARGUMENT_BYTES];

API cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    memset(arguments_set_up, 0, sizeof arguments_set_up);
    int is_full = __cudaPushCallConfiguration(grid, block, shared, stream);
    return done(is_full ? cudaErrorLaunchOutOfResources : begin());
}

API cudaError_t cudaSetupArgument(const void *argument, size_t bytes, size_t offset)
{
    if (!depth)
        return done(cudaErrorMissingConfiguration);
    if (offset > MOST_ARGUMENT_BYTES || bytes > MOST_ARGUMENT_BYTES - offset)
        return done(cudaErrorInvalidValue);
    memcpy(arguments_set_up + offset, argument, bytes);
    return done(begin());
}

API cudaError_t cudaLaunch(const void *host)
{
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    cudaError_t status = __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
    struct function *function = status ? NULL : find_function(host, &status);
    void *arguments[MOST_ARGUMENTS];
    if (!function || function->count > MOST_ARGUMENTS)
        return done(status ? status : cudaErrorInvalidValue);
    for (uint32_t i = 0; i < function->count; i++)
        arguments[i] = arguments_set_up + function->parameters[i].offset;
    return done(launch_kernel(host, grid, block, arguments, shared, stream, 0, none));
}
