/* Memory that graphs allocate and free: it has its address from when the node is made, and keeps it
   for as long as the program runs, so that a graph may be launched again whoever freed it. */

#include "runtime.h"

static _Atomic uint64_t total;

static cudaError_t allocate_for_graph(void **pointer, size_t bytes)
{
    cudaError_t status = allocate_in_pool(pointer, bytes);
    if (status || !bytes)
        return status ? status : cudaErrorInvalidValue;
    give_to_graph(*pointer);
    total += bytes;
    return cudaSuccess;
}

static cudaError_t do_nothing(const void *what)
{
    (void)what;
    return cudaSuccess;
}

API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *made, cudaGraph_t graph,
                                         const cudaGraphNode_t *needs, size_t count,
                                         struct cudaMemAllocNodeParams *params)
{
    cudaError_t status = allocate_for_graph(&params->dptr, params->bytesize);
    if (status)
        return done(status);
    return done(add_work(made, graph, needs, count, cudaGraphNodeTypeMemAlloc, do_nothing, params,
                         sizeof *params));
}

cudaError_t capture_allocation(cudaGraph_t graph, void **pointer, size_t bytes)
{
    struct cudaMemAllocNodeParams params = {.bytesize = bytes};
    *pointer = NULL;
    if (!bytes)
        return cudaSuccess;
    cudaError_t status = allocate_for_graph(pointer, bytes);
    params.dptr = *pointer;
    return status ? status : add_captured(graph, cudaGraphNodeTypeMemAlloc, do_nothing, &params,
                                          sizeof params);
}

cudaError_t capture_free(cudaGraph_t graph, void *pointer)
{
    return add_captured(graph, cudaGraphNodeTypeMemFree, do_nothing, &pointer, sizeof pointer);
}

#include "forwards_runtime_graph_memory.h"
