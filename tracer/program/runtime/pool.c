/* Memory pools and allocation in stream order: as allocation, since all work runs at once. */

#include "runtime.h"

#define ATTRIBUTES (cudaMemPoolAttrUsedMemHigh + 1)

struct CUmemPoolHandle_st {
    uint64_t attributes[ATTRIBUTES];
};
#define USUAL {[cudaMemPoolReuseFollowEventDependencies] = 1, [cudaMemPoolReuseAllowOpportunistic] = 1, \
               [cudaMemPoolReuseAllowInternalDependencies] = 1}
static const struct CUmemPoolHandle_st usual = {USUAL};
static struct CUmemPoolHandle_st own = {USUAL};

API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    (void)properties;
    *pool = malloc(sizeof **pool);
    if (!*pool)
        return done(cudaErrorMemoryAllocation);
    **pool = usual;
    return done(begin());
}

API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    if (pool != &own)
        free(pool);
    return done(begin());
}

static size_t size_of(enum cudaMemPoolAttr attribute)
{
    return attribute < cudaMemPoolAttrReleaseThreshold ? sizeof(int) : sizeof(uint64_t);
}

API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    if (capturing(stream))
        return done(capture_free(capturing(stream), pointer));
    cudaError_t status = begin();
    return done(status || !pointer || is_of_graph(pointer) ? status : release(pointer));
}

#include "forwards_runtime_pool.h"
