/* Green contexts: parts of the device's multiprocessors, by number. What a program asks of them is
   answered as for a chip; its blocks still run wherever there is room. */

#include "driver.h"

struct CUgreenCtx_st {
    CUcontext context;
    CUdevResource resource;
    uint64_t number;
    struct CUgreenCtx_st *next;
};
static struct CUgreenCtx_st *contexts;
static uint64_t made;

struct CUdevResourceDesc_st {
    CUdevResource resource;
};

/* The least multiprocessors of a part, and what their number is a multiple of (CUDA C++ Programming
   Guide, Green Contexts): with clusters they belong to one GPC. */
struct granularity {
    unsigned least, step;
};
static struct granularity granularity(unsigned flags)
{
    int64_t major = device.facts.major;
    if (major >= 9)
        return flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING ? (struct granularity){2, 2}
                                                                       : (struct granularity){8, 8};
    return major == 8   ? (struct granularity){4, 2}
           : major == 7 ? (struct granularity){2, 2}
                        : (struct granularity){1, 1};
}

static CUdevResource multiprocessors(unsigned count)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};
    struct granularity by = granularity(0);
    resource.sm.smCount = count;
    resource.sm.minSmPartitionSize = by.least;
    resource.sm.smCoscheduledAlignment = by.step;
    return resource;
}

API CUresult cuDeviceGetDevResource(CUdevice number, CUdevResource *resource,
                                    CUdevResourceType type)
{
    int count;
    CUresult status =
        result(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, number));
    if (status)
        return status;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = multiprocessors(count);
    return CUDA_SUCCESS;
}

API CUresult cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned *groups,
                                         const CUdevResource *input, CUdevResource *rest,
                                         unsigned flags, unsigned least)
{
    if (!groups || !input || least > input->sm.smCount)
        return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    struct granularity by = granularity(flags);
    unsigned size = least < by.least ? by.least : (least + by.step - 1) / by.step * by.step;
    unsigned most = input->sm.smCount / size;
    *groups = parts && *groups < most ? *groups : most;
    for (unsigned i = 0; parts && i < *groups; i++)
        parts[i] = multiprocessors(size);
    unsigned left = input->sm.smCount - *groups * size;
    if (rest && left)
        *rest = multiprocessors(left);
    else if (rest)
        *rest = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_INVALID};
    return CUDA_SUCCESS;
}

API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                       unsigned count)
{
    if (!description || !resources || !count)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned all = 0;
    for (unsigned i = 0; i < count; i++) {
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        all += resources[i].sm.smCount;
    }
    *description = malloc(sizeof **description);
    if (!*description)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*description)->resource = multiprocessors(all);
    return CUDA_SUCCESS;
}

API CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice number,
                              unsigned flags)
{
    if (!green || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    CUgreenCtx new = calloc(1, sizeof *new);
    CUresult status = new ? create_context(&new->context, 0, number) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!status)
        status = cuCtxPopCurrent_v2(NULL);
    if (status) {
        free(new);
        return status;
    }
    new->resource = description->resource;
    new->number = ++made;
    new->next = contexts;
    *green = contexts = new;
    return CUDA_SUCCESS;
}

API CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    for (struct CUgreenCtx_st **at = &contexts; *at; at = &(*at)->next)
        if (*at == green) {
            *at = green->next;
            CUresult status = cuCtxDestroy_v2(green->context);
            free(green);
            return status;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* Of a context that is no green one, all multiprocessors. */
API CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, CUdevResourceType type)
{
    CUresult status = cuDeviceGetDevResource(0, resource, type);
    for (CUgreenCtx each = contexts; each && !status; each = each->next)
        if (each->context == context)
            *resource = each->resource;
    return status;
}

#include "forwards_driver_green_context.h"
