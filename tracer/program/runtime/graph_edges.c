/* What graphs are asked about: their edges, and what their nodes do. */

#include <stdio.h>

#include "graph.h"

const void *said_of(cudaGraphNode_t node, size_t bytes)
{
    return node->said_bytes == bytes ? node->said : NULL;
}

static size_t need_at(cudaGraphNode_t node, cudaGraphNode_t need)
{
    size_t i = 0;
    while (i < node->count && node->needs[i] != need)
        i++;
    return i;
}

static int has_edge(cudaGraphNode_t from, cudaGraphNode_t to)
{
    return need_at(to, from) < to->count;
}

static void remove_edge(cudaGraphNode_t from, cudaGraphNode_t to)
{
    size_t place = need_at(to, from);
    if (place < to->count)
        memmove(to->needs + place, to->needs + place + 1,
                (--to->count - place) * sizeof *to->needs);
}

/* An edge that is there already is an error, as is one between graphs, or to the node itself. */
API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                         const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                         size_t count)
{
    (void)edges;
    for (size_t i = 0; i < count; i++)
        if (from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i] ||
            has_edge(from[i], to[i]))
            return done(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++)
        depend(to[i], from + i, 1);
    return done(begin());
}

/* What allocates or frees keeps its nodes and edges. */
static int has_memory(cudaGraph_t graph)
{
    cudaGraphNode_t each = graph->first;
    while (each && each->type != cudaGraphNodeTypeMemAlloc && each->type != cudaGraphNodeTypeMemFree)
        each = each->next;
    return each != NULL;
}

API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                            const cudaGraphNode_t *to,
                                            const cudaGraphEdgeData *edges, size_t count)
{
    (void)edges;
    if (has_memory(graph))
        return done(cudaErrorNotSupported);
    for (size_t i = 0; i < count; i++)
        if (!has_edge(from[i], to[i]))
            return done(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++)
        remove_edge(from[i], to[i]);
    return done(begin());
}

struct edges {
    cudaGraphNode_t *from, *to;
    cudaGraphEdgeData *data;
    size_t room, found;
};

static void put_edge(struct edges *edges, cudaGraphNode_t from, cudaGraphNode_t to)
{
    if (edges->found < edges->room) {
        if (edges->from)
            edges->from[edges->found] = from;
        if (edges->to)
            edges->to[edges->found] = to;
        if (edges->data)
            edges->data[edges->found] = (cudaGraphEdgeData){0};
    }
    edges->found++;
}

/* Without room for nodes, `count` is how many there are; else how many of them were written. */
static cudaError_t tell_edges(struct edges *edges, size_t *count)
{
    int asks = !edges->from && !edges->to;
    for (size_t i = edges->found; !asks && i < edges->room; i++) {
        if (edges->from)
            edges->from[i] = NULL;
        if (edges->to)
            edges->to[i] = NULL;
    }
    *count = asks || edges->found < edges->room ? edges->found : edges->room;
    return done(begin());
}

API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                  cudaGraphEdgeData *data, size_t *count)
{
    struct edges edges = {from, to, data, from || to ? *count : 0, 0};
    for (cudaGraphNode_t node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->count; i++)
            put_edge(&edges, node->needs[i], node);
    return tell_edges(&edges, count);
}

API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *needs,
                                             cudaGraphEdgeData *data, size_t *count)
{
    struct edges edges = {needs, NULL, data, needs ? *count : 0, 0};
    for (size_t i = 0; i < node->count; i++)
        put_edge(&edges, node->needs[i], node);
    return tell_edges(&edges, count);
}

API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                               cudaGraphEdgeData *data, size_t *count)
{
    struct edges edges = {NULL, nodes, data, nodes ? *count : 0, 0};
    for (cudaGraphNode_t each = node->graph->first; each; each = each->next)
        if (has_edge(node, each))
            put_edge(&edges, node, each);
    return tell_edges(&edges, count);
}

API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    cudaGraph_t graph = node->graph;
    cudaGraphNode_t before = NULL;
    if (has_memory(graph))
        return done(cudaErrorNotSupported);
    for (cudaGraphNode_t each = graph->first; each; each = each->next) {
        remove_edge(node, each);
        before = each->next == node ? each : before;
    }
    if (before)
        before->next = node->next;
    else
        graph->first = node->next;
    if (graph->last == node)
        graph->last = before;
    free_node(node);
    return done(begin());
}

API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled)
{
    cudaGraphNode_t own = node_in(exec, node);
    if (own)
        own->is_disabled = !enabled;
    return done(own ? begin() : cudaErrorInvalidValue);
}

API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                        unsigned *enabled)
{
    cudaGraphNode_t own = node_in(exec, node);
    if (own)
        *enabled = !own->is_disabled;
    return done(own ? begin() : cudaErrorInvalidValue);
}

/* The addresses of its arguments are the node's own. */
API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                             struct cudaKernelNodeParams *params)
{
    if (node->type != cudaGraphNodeTypeKernel || !node->what)
        return done(cudaErrorInvalidValue);
    struct launch *launch = node->what;
    uint32_t count = launch->function->count;
    void **arguments = calloc(count + 1, sizeof *arguments);
    char *place = launch->arguments;
    for (uint32_t i = 0; i < count; i++) {
        arguments[i] = place;
        place += launch->function->parameters[i].bytes;
    }
    free(node->said);
    node->said = arguments;
    *params = (struct cudaKernelNodeParams){
        .func = launch->function, .gridDim = launch->grid, .blockDim = launch->block,
        .sharedMemBytes = launch->shared, .kernelParams = arguments,
    };
    return done(begin());
}

/* A time is that of the program's own clock. */
static cudaError_t run_record(const void *what)
{
    return cudaEventRecord(*(cudaEvent_t const *)what, NULL);
}

static cudaError_t run_wait(const void *what)
{
    return cudaStreamWaitEvent(NULL, *(cudaEvent_t const *)what, 0);
}

cudaError_t event_of(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event)
{
    if (node->type != type)
        return done(cudaErrorInvalidValue);
    *event = *(cudaEvent_t *)node->what;
    return done(begin());
}

static const char *const types[] = {
    "kernel", "memcpy", "memset", "host", "graph", "empty", "wait event", "record event",
    "signal semaphores", "wait for semaphores", "allocate", "free", "memory operations",
    "conditional",
};

API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
    (void)flags;
    FILE *file = fopen(path, "w");
    if (!file)
        return done(cudaErrorOperatingSystem);
    fprintf(file, "digraph graph_%p {\n", (void *)graph);
    for (cudaGraphNode_t node = graph->first; node; node = node->next) {
        int known = (size_t)node->type < sizeof types / sizeof *types;
        fprintf(file, "  \"%p\" [label=\"%s\"];\n", (void *)node,
                known ? types[node->type] : "node");
        for (size_t i = 0; i < node->count; i++)
            fprintf(file, "  \"%p\" -> \"%p\";\n", (void *)node->needs[i], (void *)node);
    }
    fprintf(file, "}\n");
    return done(fclose(file) ? cudaErrorOperatingSystem : begin());
}

#include "forwards_runtime_graph_edges.h"
