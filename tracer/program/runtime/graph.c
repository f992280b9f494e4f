/* Graphs: work captured from streams or added node by node, instantiated, and launched. */

#include "graph.h"

static cudaError_t run_child(const void *what)
{
    return run_graph(*(cudaGraph_t const *)what);
}

cudaError_t set_kernel(cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
    cudaError_t status = begin();
    if (!status && !params->kernelParams && params->extra)
        status = refuse("a kernel node without kernelParams");
    if (status)
        return status;
    struct launch *launch = make_launch(params->func, params->gridDim, params->blockDim,
                                        params->kernelParams, params->sharedMemBytes, &status);
    if (launch)
        set_work(node, run_launch, launch, sizeof *launch + launch->bytes);
    free(launch);
    return status;
}

API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *made, cudaGraph_t graph,
                                       const cudaGraphNode_t *needs, size_t count,
                                       const struct cudaKernelNodeParams *params)
{
    cudaGraphNode_t node;
    add_work(&node, graph, needs, count, cudaGraphNodeTypeKernel, NULL, NULL, 0);
    *made = node;
    return done(set_kernel(node, params));
}

API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const struct cudaKernelNodeParams *params)
{
    cudaGraphNode_t own = node_in(exec, node);
    return done(own ? set_kernel(own, params) : cudaErrorInvalidValue);
}

/* A node of any kind, as newer programs add them. */
API cudaError_t cudaGraphAddNode(cudaGraphNode_t *made, cudaGraph_t graph,
                                 const cudaGraphNode_t *needs, const cudaGraphEdgeData *edges,
                                 size_t count, struct cudaGraphNodeParams *params)
{
    (void)edges;
    switch (params->type) {
    case cudaGraphNodeTypeKernel: {
        struct cudaKernelNodeParams own = {
            .func = params->kernel.func,
            .gridDim = params->kernel.gridDim,
            .blockDim = params->kernel.blockDim,
            .sharedMemBytes = params->kernel.sharedMemBytes,
            .kernelParams = params->kernel.kernelParams,
            .extra = params->kernel.extra,
        };
        return cudaGraphAddKernelNode(made, graph, needs, count, &own);
    }
    case cudaGraphNodeTypeMemcpy:
        return cudaGraphAddMemcpyNode(made, graph, needs, count, &params->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
        struct cudaMemsetParams own = {params->memset.dst,         params->memset.pitch,
                                       params->memset.value,       params->memset.elementSize,
                                       params->memset.width,       params->memset.height};
        return cudaGraphAddMemsetNode(made, graph, needs, count, &own);
    }
    case cudaGraphNodeTypeHost: {
        struct cudaHostNodeParams own = {params->host.fn, params->host.userData};
        return cudaGraphAddHostNode(made, graph, needs, count, &own);
    }
    case cudaGraphNodeTypeGraph:
        return cudaGraphAddChildGraphNode(made, graph, needs, count, params->graph.graph);
    case cudaGraphNodeTypeEmpty:
        return cudaGraphAddEmptyNode(made, graph, needs, count);
    case cudaGraphNodeTypeMemAlloc: {
        struct cudaMemAllocNodeParams own = {.bytesize = params->alloc.bytesize};
        cudaError_t status = cudaGraphAddMemAllocNode(made, graph, needs, count, &own);
        params->alloc.dptr = own.dptr;
        return status;
    }
    case cudaGraphNodeTypeMemFree:
        return cudaGraphAddMemFreeNode(made, graph, needs, count, params->free.dptr);
    case cudaGraphNodeTypeEventRecord:
        return cudaGraphAddEventRecordNode(made, graph, needs, count, params->eventRecord.event);
    case cudaGraphNodeTypeWaitEvent:
        return cudaGraphAddEventWaitNode(made, graph, needs, count, params->eventWait.event);
    case cudaGraphNodeTypeConditional:
        return done(add_conditional(made, graph, needs, count, &params->conditional));
    default:
        return refuse("cudaGraphAddNode with a node of this kind");
    }
}

/* Without room for nodes, how many there are. */
cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count, int roots)
{
    size_t found = 0;
    for (cudaGraphNode_t each = graph->first; each; each = each->next) {
        if (roots && each->count)
            continue;
        if (nodes && found < *count)
            nodes[found] = each;
        found++;
    }
    *count = found;
    return done(begin());
}

/* A graph of another shape is refused, as CUDA does: the program then instantiates it. */
API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                    cudaGraphExecUpdateResultInfo *result)
{
    cudaGraphNode_t own = exec->graph->first, given = graph->first;
    while (own && given && own->type == given->type) {
        own = own->next;
        given = given->next;
    }
    result->result = cudaGraphExecUpdateSuccess;
    if (own || given) {
        result->result = cudaGraphExecUpdateErrorTopologyChanged;
        return done(cudaErrorGraphExecUpdateFailure);
    }
    free_graph(exec->graph);
    exec->graph = clone_graph(graph);
    return done(begin());
}

static cudaError_t run_exec(const void *what)
{
    cudaGraph_t graph = (*(cudaGraphExec_t const *)what)->graph;
    begin_graph(graph);
    return run_graph(graph);
}

API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    return done(submit(stream, cudaGraphNodeTypeGraph, run_exec, &exec, sizeof exec));
}

API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread)
        return done(cudaErrorStreamCaptureUnsupported);
    if (stream->graph)
        return done(cudaErrorIllegalState);
    stream->graph = make_graph();
    return done(begin());
}

API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaGraph_t own = capturing(stream);
    if (graph) /* not where it is the program's own */
        *graph = own;
    if (!own)
        return done(cudaErrorIllegalState);
    end_capture(own);
    return done(begin());
}

static const cudaGraphEdgeData plain;

API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                         unsigned long long *number, cudaGraph_t *graph,
                                         const cudaGraphNode_t **needs,
                                         const cudaGraphEdgeData **edges, size_t *count)
{
    cudaGraph_t own = capturing(stream);
    if (number)
        *number = (uintptr_t)own;
    if (graph)
        *graph = own;
    if (needs)
        *needs = own && own->last ? &own->last : NULL;
    if (edges)
        *edges = &plain;
    if (count)
        *count = own && own->last;
    return cudaStreamIsCapturing(stream, status);
}

#include "forwards_runtime_graph.h"
