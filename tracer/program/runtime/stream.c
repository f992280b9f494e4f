/* Streams: what the program made, and what it asks of them. */

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

#include "forwards_runtime_stream.h"
