/* Contexts: names for the one device. What is allocated or loaded belongs to all of them; each
   thread has a stack of those that are current. */

#include "driver.h"

#define DEEPEST 64

struct CUctx_st {
    unsigned flags;
    int users; /* of the primary context: who retained it */
    uint64_t number;
};
static struct CUctx_st primary = {0, 0, 1};
static uint64_t made = 1;

static __thread CUcontext stack[DEEPEST];
static __thread int depth;

/* Where no context was made current, a program that uses the runtime has its primary one. */
static CUcontext current(void)
{
    if (!depth && is_runtime_used)
        return &primary;
    return depth ? stack[depth - 1] : NULL;
}

static CUresult check_device(CUdevice number)
{
    int value;
    return result(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, number));
}

CUresult push_context(CUcontext context)
{
    if (depth == DEEPEST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult create_context(CUcontext *context, unsigned flags, CUdevice number)
{
    CUresult status = check_device(number);
    if (status)
        return status;
    *context = calloc(1, sizeof **context);
    (*context)->flags = flags;
    (*context)->number = ++made;
    return push_context(*context);
}

API CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (!context || context == &primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current() == context)
        depth--;
    free(context);
    return result(begin());
}

/* NULL takes the current one off the stack; else it is replaced. */
API CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult status = result(begin());
    if (!status && depth)
        depth--;
    return status || !context ? status : push_context(context);
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return CUDA_SUCCESS;
}

API CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL;
    return cuStreamGetCtx(stream, context);
}

#include "forwards_driver_context.h"
