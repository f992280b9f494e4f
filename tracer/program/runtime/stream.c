/* Streams: what the program made, and what it asks of them. */

#include <stdlib.h>

#include "runtime.h"

static cudaStream_t streams; /* all that the program made */

int is_default(cudaStream_t stream)
{
    return (uintptr_t)stream <= (uintptr_t)cudaStreamPerThread;
}

cudaGraph_t capturing(cudaStream_t stream)
{
    return is_default(stream) ? NULL : stream->graph;
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

API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return done(begin());
}
