/* Events: times are this machine's, or the recorder's estimate of those of a device. */

#include <stdio.h>
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

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    *event = calloc(1, sizeof **event);
    (*event)->flags = flags;
    return done(cudaSuccess);
}

/* Whose clock it is: "host", "estimate", or "" where nobody chose. */
static const char *clock_name(void)
{
    const char *name = getenv("CUTRACE_CLOCK");
    return name ? name : "";
}

static double now(void)
{
    if (!strcmp(clock_name(), "estimate")) {
        struct message message = question(CLOCK);
        double milliseconds = ask(&message) ? 0 : take64(&message) * 1e-9;
        close_message(&message);
        return milliseconds;
    }
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
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream, int is_node)
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

cudaError_t finish_event(cudaEvent_t event, int must_end)
{
    cudaError_t status = event->is_pending ? finish_held(event->stream, must_end) : cudaSuccess;
    return status ? status : finish_waiting(event->stream, 0, must_end);
}

API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    if (!start || !end || !start->is_recorded || !end->is_recorded)
        return done(cudaErrorInvalidResourceHandle);
    if ((start->flags | end->flags) & cudaEventDisableTiming)
        return done(cudaErrorInvalidResourceHandle);
    static int is_told;
    if (!is_told++ && !strcmp(clock_name(), "host"))
        fprintf(stderr, "cutrace: the times of CUDA events are those of this machine, not of a GPU: "
                        "--clock estimate gives them cutrace's estimates\n");
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

#include "forwards_runtime_event.h"
