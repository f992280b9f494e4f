/* Streams and events. All work runs at once, in the order in which the program gives it; times
   are the host's. */

#include <stdlib.h>
#include <time.h>

#include "runtime.h"

struct CUevent_st {
    double milliseconds;
    int is_recorded;
    unsigned flags;
    cudaStream_t stream;
    cudaGraph_t graph; /* in whose capture it was recorded */
    uint32_t is_pending; /* it was recorded behind what its stream still waits for */
};

static cudaStream_t streams; /* all that the program made */

static int is_default(cudaStream_t stream)
{
    return (uintptr_t)stream <= (uintptr_t)cudaStreamPerThread;
}

cudaGraph_t capturing(cudaStream_t stream)
{
    return is_default(stream) ? NULL : stream->graph;
}

cudaError_t submit(cudaStream_t stream, enum cudaGraphNodeType type, action run, const void *what,
                   size_t bytes)
{
    cudaGraph_t graph = capturing(stream);
    if (!graph && !is_default(stream) && stream->held) {
        cudaError_t status = release_held();
        if (status)
            return status;
        graph = held_work(stream);
    }
    if (graph)
        return add_captured(graph, type, run, what, bytes);
    cudaError_t status = run(what);
    return status ? status : release_held();
}

cudaStream_t next_stream(cudaStream_t stream)
{
    return stream ? stream->next : streams;
}

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    *stream = calloc(1, sizeof **stream);
    (*stream)->flags = flags;
    (*stream)->priority = priority;
    (*stream)->next = streams;
    streams = *stream;
    return done(cudaSuccess);
}

API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (is_default(stream))
        return done(cudaErrorInvalidResourceHandle);
    for (cudaStream_t *place = &streams; *place; place = &(*place)->next)
        if (*place == stream) {
            *place = stream->next;
            free(stream);
            return done(begin());
        }
    return done(cudaErrorInvalidResourceHandle);
}

/* All streams that were captured into a graph run again. */
void end_capture(cudaGraph_t graph)
{
    for (cudaStream_t each = streams; each; each = each->next)
        if (each->graph == graph)
            each->graph = NULL;
}

static cudaError_t finish(cudaStream_t stream, int must_end)
{
    if (capturing(stream))
        return cudaErrorStreamCaptureUnsupported;
    cudaError_t status = is_default(stream) ? release_held() : finish_held(stream, must_end);
    return status ? status : finish_waiting(stream, 0, must_end);
}

API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return done(finish(stream, 1));
}

API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return done(finish(stream, 0));
}

API cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t status = finish_held(NULL, 1);
    return done(status ? status : finish_waiting(NULL, 1, 1));
}

API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    *priority = is_default(stream) ? 0 : stream->priority;
    return done(begin());
}

API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    *flags = is_default(stream) ? cudaStreamDefault : stream->flags;
    return done(begin());
}

API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *number)
{
    *number = (uintptr_t)stream;
    return done(begin());
}

API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *number)
{
    (void)stream;
    *number = 0;
    return done(begin());
}

/* Hints on caches and scheduling change nothing that is recorded. */
API cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                       const cudaStreamAttrValue *value)
{
    (void)stream, (void)attribute, (void)value;
    return done(begin());
}

API cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
    (void)to, (void)from;
    return done(begin());
}

struct call {
    cudaHostFn_t function;
    void *data;
};

static cudaError_t run_call(const void *what)
{
    const struct call *call = what;
    call->function(call->data);
    return cudaSuccess;
}

API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    struct call call = {function, data};
    cudaError_t status = begin();
    if (status)
        return done(status);
    return done(submit(stream, cudaGraphNodeTypeHost, run_call, &call, sizeof call));
}

API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                      unsigned flags)
{
    (void)flags;
    if (capturing(stream))
        return done(cudaErrorStreamCaptureUnsupported);
    callback(stream, begin(), data);
    return done(cudaSuccess);
}

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    *event = calloc(1, sizeof **event);
    (*event)->flags = flags;
    return done(cudaSuccess);
}

API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event)
        return done(cudaErrorInvalidResourceHandle);
    free(event);
    return done(begin());
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

static cudaError_t run_record(const void *what)
{
    cudaEvent_t event = *(cudaEvent_t *)what;
    event->milliseconds = now();
    event->is_recorded = 1;
    event->is_pending = 0;
    return cudaSuccess;
}

/* In a capture an event says what depends on what, and is no node unless it is asked for as one. */
static cudaError_t record(cudaEvent_t event, cudaStream_t stream, int is_node)
{
    cudaError_t status = begin();
    if (!event)
        status = cudaErrorInvalidResourceHandle;
    if (status)
        return done(status);
    event->stream = stream;
    event->graph = capturing(stream);
    if (event->graph && !is_node)
        return done(cudaSuccess);
    event->is_pending = 1;
    return done(submit(stream, cudaGraphNodeTypeEventRecord, run_record, &event, sizeof event));
}

API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return record(event, stream, 0);
}

API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return record(event, stream, flags & cudaEventRecordExternal);
}

static cudaError_t finish_event(cudaEvent_t event, int must_end)
{
    cudaError_t status = event->is_pending ? finish_held(event->stream, must_end) : cudaSuccess;
    return status ? status : finish_waiting(event->stream, 0, must_end);
}

API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return done(event ? finish_event(event, 1) : cudaErrorInvalidResourceHandle);
}

API cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return done(event ? finish_event(event, 0) : cudaErrorInvalidResourceHandle);
}

API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    if (!start || !end || !start->is_recorded || !end->is_recorded)
        return done(cudaErrorInvalidResourceHandle);
    if ((start->flags | end->flags) & cudaEventDisableTiming)
        return done(cudaErrorInvalidResourceHandle);
    double elapsed = end->milliseconds - start->milliseconds;
    *milliseconds = elapsed > 0.0005 ? elapsed : 0.0005;
    return done(begin());
}

/* A stream that waits for a stream being captured is captured with it. */
API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    cudaError_t status = begin();
    if (!event)
        status = cudaErrorInvalidResourceHandle;
    if (status)
        return done(status);
    if (event->graph && !is_default(stream))
        stream->graph = event->graph;
    else if (event->is_pending && !is_default(stream))
        status = await(stream, &(struct awaited){&event->is_pending, 0, sizeof(uint32_t), EQUAL});
    return done(status);
}

API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return done(begin());
}
