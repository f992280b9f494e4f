/* What the program submits to streams: all of it runs at once, in the order in which the program
   gives it, unless its stream is captured, or waits for something. */

#include "runtime.h"

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

cudaError_t finish_stream(cudaStream_t stream, int must_end)
{
    if (capturing(stream))
        return cudaErrorStreamCaptureUnsupported;
    cudaError_t status = is_default(stream) ? release_held() : finish_held(stream, must_end);
    return status ? status : finish_waiting(stream, 0, must_end);
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

#include "forwards_runtime_queue.h"
