/* What graphs are made of, for the files that look into them. */

#ifndef CUTRACE_GRAPH_H
#define CUTRACE_GRAPH_H

#include "runtime.h"

struct CUgraphNode_st {
    cudaGraphNode_t next, origin; /* `origin` is the node that this one was copied from */
    cudaGraph_t graph;
    enum cudaGraphNodeType type;
    action run;
    void *what;
    size_t bytes;
    cudaGraphNode_t *needs;
    size_t count;
    int is_done, is_disabled;
    void *said; /* what the driver's interface was told of it, to be told again */
    size_t said_bytes;
};

/* An object of the program that a graph holds, and how often. */
struct held {
    struct held *next;
    void *object;
    unsigned count;
};

struct CUgraph_st {
    cudaGraphNode_t first, last;
    cudaGraph_t within; /* of a conditional node: the graph that has the node */
    struct held *held;
};

struct CUgraphExec_st {
    cudaGraph_t graph;
};

void depend(cudaGraphNode_t node, const cudaGraphNode_t *needs, size_t count);
void free_node(cudaGraphNode_t node);
cudaGraph_t *graphs_of(cudaGraphNode_t node, size_t *count); /* the graphs that a node has in itself */
void hold_object(cudaGraph_t graph, void *object, unsigned count);

/* driver/user_object.c */
void retain_object(void *object, unsigned count);
void release_object(void *object, unsigned count);

#endif
