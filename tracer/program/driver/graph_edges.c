/* The edges of graphs, in both of their versions, and what else graphs are asked about. */

#include "driver.h"

API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    return result(cudaGraphAddDependencies(graph, from, to, NULL, count));
}

API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edges,
                                       size_t count)
{
    (void)edges;
    return cuGraphAddDependencies(graph, from, to, count);
}

API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, size_t count)
{
    return result(cudaGraphRemoveDependencies(graph, from, to, NULL, count));
}

API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                          const CUgraphNode *to, const CUgraphEdgeData *edges,
                                          size_t count)
{
    (void)edges;
    return cuGraphRemoveDependencies(graph, from, to, count);
}

API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *edges, size_t *count)
{
    return result(cudaGraphGetEdges(graph, from, to, (cudaGraphEdgeData *)edges, count));
}

API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *needs,
                                           CUgraphEdgeData *edges, size_t *count)
{
    return result(cudaGraphNodeGetDependencies(node, needs, (cudaGraphEdgeData *)edges, count));
}

API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *needs, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, needs, NULL, count);
}

API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes,
                                             CUgraphEdgeData *edges, size_t *count)
{
    return result(cudaGraphNodeGetDependentNodes(node, nodes, (cudaGraphEdgeData *)edges, count));
}

API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

API CUresult cuGraphDestroyNode(CUgraphNode node)
{
    return result(cudaGraphDestroyNode(node));
}

API CUresult cuGraphNodeGetContainingGraph(CUgraphNode node, CUgraph *graph)
{
    return result(cudaGraphNodeGetContainingGraph(node, graph));
}

API CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode origin, CUgraph clone)
{
    return result(cudaGraphNodeFindInClone(node, origin, clone));
}

API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
    return result(cudaGraphNodeSetEnabled(exec, node, enabled));
}

API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled)
{
    return result(cudaGraphNodeGetEnabled(exec, node, enabled));
}

API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags)
{
    return result(cudaGraphDebugDotPrint(graph, path, flags));
}
