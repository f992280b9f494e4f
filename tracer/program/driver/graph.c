/* Graphs, as the runtime runs them; graph_node.c has their nodes. */

#include "driver.h"

API CUresult cuStreamBeginCapture(CUstream stream)
{
    return result(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return result(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}

API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *needs,
                                         const CUgraphEdgeData *edges, size_t count,
                                         CUstreamCaptureMode mode)
{
    return result(cudaStreamBeginCaptureToGraph(stream, graph, needs,
                                                (const cudaGraphEdgeData *)edges, count,
                                                (enum cudaStreamCaptureMode)mode));
}

API CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *needs, size_t count,
                                               unsigned flags)
{
    return result(cudaStreamUpdateCaptureDependencies(stream, needs, NULL, count, flags));
}

API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *needs,
                                                  const CUgraphEdgeData *edges, size_t count,
                                                  unsigned flags)
{
    (void)edges;
    return cuStreamUpdateCaptureDependencies(stream, needs, count, flags);
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return result(cudaStreamEndCapture(stream, graph));
}

API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return result(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status));
}

API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *number, CUgraph *graph, const CUgraphNode **needs,
                                       size_t *count)
{
    return result(cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status,
                                           (unsigned long long *)number, graph, needs, NULL, count));
}

API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *number, CUgraph *graph, const CUgraphNode **needs,
                                       const CUgraphEdgeData **edges, size_t *count)
{
    return result(cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status,
                                           (unsigned long long *)number, graph, needs,
                                           (const cudaGraphEdgeData **)edges, count));
}

API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    return result(cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode));
}

API CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    return result(cudaGraphCreate(graph, flags));
}

API CUresult cuGraphDestroy(CUgraph graph)
{
    return result(cudaGraphDestroy(graph));
}

API CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    return result(cudaGraphClone(clone, graph));
}

API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return result(cudaGraphGetNodes(graph, nodes, count));
}

API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return result(cudaGraphGetRootNodes(graph, nodes, count));
}

API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    return result(cudaGraphNodeGetType(node, (enum cudaGraphNodeType *)type));
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return result(cudaGraphInstantiateWithFlags(exec, graph, flags));
}

API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return result(
        cudaGraphInstantiateWithParams(exec, graph, (cudaGraphInstantiateParams *)params));
}

API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    return result(cudaGraphExecUpdate(exec, graph, (cudaGraphExecUpdateResultInfo *)info));
}

API CUresult cuDeviceGetGraphMemAttribute(CUdevice number, CUgraphMem_attribute which, void *value)
{
    return result(
        cudaDeviceGetGraphMemAttribute(number, (enum cudaGraphMemAttributeType)which, value));
}

API CUresult cuDeviceSetGraphMemAttribute(CUdevice number, CUgraphMem_attribute which, void *value)
{
    return result(
        cudaDeviceSetGraphMemAttribute(number, (enum cudaGraphMemAttributeType)which, value));
}

API CUresult cuDeviceGraphMemTrim(CUdevice number)
{
    return result(cudaDeviceGraphMemTrim(number));
}

API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    return result(cudaGraphUpload(exec, stream));
}

API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    return result(cudaGraphLaunch(exec, stream));
}

API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return result(cudaGraphExecDestroy(exec));
}
