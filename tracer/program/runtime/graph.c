/* Graphs: lists of work, captured from streams or added node by node, run in order. */

#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct CUgraphNode_st {
    cudaGraphNode_t next;
    enum cudaGraphNodeType type;
    action run;
    void *what;
    size_t bytes;
};

struct CUgraph_st {
    cudaGraphNode_t first, last;
};

cudaError_t add_captured(cudaGraph_t graph, enum cudaGraphNodeType type, action run,
                         const void *what, size_t bytes)
{
    cudaGraphNode_t node = calloc(1, sizeof *node);
    node->type = type;
    node->run = run;
    node->bytes = bytes;
    node->what = malloc(bytes + 1);
    memcpy(node->what, what, bytes);
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    return cudaSuccess;
}
