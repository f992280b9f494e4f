/* Streams and events: the runtime's, by their own handles. */

#include "driver.h"

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return result(cudaStreamCreateWithFlags(stream, flags));
}

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return result(cudaStreamCreateWithPriority(stream, flags, priority));
}

API CUresult cuStreamDestroy_v2(CUstream stream)
{
    return result(cudaStreamDestroy(stream));
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    return result(cudaStreamSynchronize(stream));
}

API CUresult cuStreamQuery(CUstream stream)
{
    return result(cudaStreamQuery(stream));
}

API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    return result(cudaStreamGetFlags(stream, flags));
}

API CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    return result(cudaStreamGetPriority(stream, priority));
}

API CUresult cuStreamGetId(CUstream stream, unsigned long long *number)
{
    return result(cudaStreamGetId(stream, number));
}

API CUresult cuStreamGetDevice(CUstream stream, CUdevice *number)
{
    return result(cudaStreamGetDevice(stream, number));
}

API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

API CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL;
    return cuStreamGetCtx(stream, context);
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return result(cudaStreamWaitEvent(stream, event, flags));
}

API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
                                 unsigned flags)
{
    return result(cudaStreamAddCallback(stream, (cudaStreamCallback_t)callback, data, flags));
}

API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    return result(cudaLaunchHostFunc(stream, function, data));
}

API CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn function, void *data, unsigned mode)
{
    (void)mode;
    return cuLaunchHostFunc(stream, function, data);
}

API CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr place, size_t bytes,
                                    unsigned flags)
{
    return result(cudaStreamAttachMemAsync(stream, pointer(place), bytes, flags));
}

API CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID which,
                                  const CUstreamAttrValue *value)
{
    (void)stream, (void)which, (void)value;
    return result(begin());
}

API CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    return result(cudaStreamCopyAttributes(to, from));
}

API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    return result(cudaEventCreateWithFlags(event, flags));
}

API CUresult cuEventDestroy_v2(CUevent event)
{
    return result(cudaEventDestroy(event));
}

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return result(cudaEventRecord(event, stream));
}

API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return result(cudaEventRecordWithFlags(event, stream, flags));
}

API CUresult cuEventSynchronize(CUevent event)
{
    return result(cudaEventSynchronize(event));
}

API CUresult cuEventQuery(CUevent event)
{
    return result(cudaEventQuery(event));
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return result(cudaEventElapsedTime(milliseconds, start, end));
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return result(cudaEventElapsedTime(milliseconds, start, end));
}
