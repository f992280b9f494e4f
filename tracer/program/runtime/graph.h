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
struct holding {
    struct holding *next;
    struct user_object *object;
    unsigned count;
};

struct user_object {
    void *data;
    void (*destroy)(void *data);
    unsigned held;
};

struct CUgraph_st {
    cudaGraphNode_t first, last;
    cudaGraph_t within; /* of a conditional node: the graph that has the node */
    struct holding *held;
};

/* What a conditional node runs: one of its graphs, by a word of device memory. */
struct conditional {
    uint32_t *condition;
    enum cudaGraphConditionalNodeType type;
    unsigned count;
    cudaGraph_t graphs[];
};

struct CUgraphExec_st {
    cudaGraph_t graph;
};

/* graph_work.c */
void depend(cudaGraphNode_t node, const cudaGraphNode_t *needs, size_t count);
void free_node(cudaGraphNode_t node);
cudaGraphNode_t copy_in(cudaGraph_t graph, cudaGraphNode_t origin); /* NULL: it has none */
cudaGraph_t *graphs_of(cudaGraphNode_t node, size_t *count); /* the graphs that a node has in itself */
void hold_object(cudaGraph_t graph, struct user_object *object, unsigned count);
void retain_object(struct user_object *object, unsigned count);
void release_object(struct user_object *object, unsigned count); /* the last one destroys it */

#endif
