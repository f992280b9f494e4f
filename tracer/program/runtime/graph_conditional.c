/* Conditional nodes of graphs: a handle is the address of the condition, a word of device memory
   that kernels set by cudaGraphSetConditional; the node runs one of its graphs by it. */

#include "graph.h"

struct handle {
    struct handle *next;
    uint32_t *place, value;
    unsigned flags;
    cudaGraph_t graph;
};
static struct handle *handles;

static cudaGraph_t root_of(cudaGraph_t graph)
{
    return graph->within ? root_of(graph->within) : graph;
}

/* A handle is good for the graph that it was made for, and for those of its conditional nodes. */
static int is_handle_of(uint32_t *place, cudaGraph_t graph)
{
    struct handle *each = handles;
    while (each && each->place != place)
        each = each->next;
    return each && each->graph == root_of(graph);
}

static int is_size(enum cudaGraphConditionalNodeType type, unsigned size)
{
    unsigned most = type == cudaGraphCondTypeWhile ? 1 : type == cudaGraphCondTypeIf ? 2 : -1u;
    return size && size <= most;
}

API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *made,
                                                 cudaGraph_t graph, unsigned value, unsigned flags)
{
    void *place;
    cudaError_t status = allocate(&place, sizeof(uint32_t), DEVICE, "condition");
    if (status)
        return done(status);
    struct handle *handle = malloc(sizeof *handle);
    *handle = (struct handle){handles, place, value, flags, root_of(graph)};
    handles = handle;
    *made = (uintptr_t)place;
    return done(cudaSuccess);
}

static cudaError_t repeat(const struct conditional *node)
{
    cudaError_t status = begin();
    while (!status && *(volatile uint32_t *)node->condition) {
        status = run_graph(node->graphs[0]);
        status = status ? status : begin(); /* a kernel's fault */
    }
    return status;
}

static cudaError_t run_conditional(const void *what)
{
    const struct conditional *node = what;
    uint32_t value = *node->condition;
    if (node->type == cudaGraphCondTypeWhile)
        return repeat(node);
    if (node->type == cudaGraphCondTypeIf)
        value = !value; /* the second graph is that of `else` */
    return value < node->count ? run_graph(node->graphs[value]) : cudaSuccess;
}

cudaError_t add_conditional(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                            size_t count, struct cudaConditionalNodeParams *params)
{
    if (!is_size(params->type, params->size) ||
        !is_handle_of((uint32_t *)(uintptr_t)params->handle, graph))
        return cudaErrorInvalidValue;
    size_t bytes = sizeof(struct conditional) + params->size * sizeof(cudaGraph_t);
    struct conditional *node = calloc(1, bytes);
    node->condition = (uint32_t *)(uintptr_t)params->handle;
    node->type = params->type;
    node->count = params->size;
    params->phGraph_out = calloc(params->size, sizeof(cudaGraph_t));
    for (unsigned i = 0; i < params->size; i++) {
        node->graphs[i] = make_graph();
        node->graphs[i]->within = graph;
        params->phGraph_out[i] = node->graphs[i];
    }
    cudaError_t status = add_work(made, graph, needs, count, cudaGraphNodeTypeConditional,
                                  run_conditional, node, bytes);
    free(node);
    return status;
}

/* Conditions have their defaults when a graph is launched. */
static void set_default(const struct conditional *node)
{
    for (struct handle *each = handles; each; each = each->next)
        if (each->place == node->condition && each->flags & cudaGraphCondAssignDefault)
            *each->place = each->value;
}

void begin_graph(cudaGraph_t graph)
{
    for (cudaGraphNode_t each = graph->first; each; each = each->next) {
        size_t count;
        cudaGraph_t *graphs = graphs_of(each, &count);
        if (each->type == cudaGraphNodeTypeConditional)
            set_default(each->what);
        for (size_t i = 0; i < count; i++)
            begin_graph(graphs[i]);
    }
}

cudaError_t conditional_of(cudaGraphNode_t node, struct cudaConditionalNodeParams *params)
{
    struct conditional *own = node->what;
    if (node->type != cudaGraphNodeTypeConditional)
        return cudaErrorInvalidValue;
    *params = (struct cudaConditionalNodeParams){
        .handle = (uintptr_t)own->condition, .type = own->type, .size = own->count,
        .phGraph_out = own->graphs,
    };
    return cudaSuccess;
}
