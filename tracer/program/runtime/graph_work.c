/* What graphs are made of: nodes of work, run in an order that keeps to the dependencies, that of
   the program where it does; the graphs inside nodes; the program's objects that graphs hold. */

#include "graph.h"

cudaGraph_t make_graph(void)
{
    cudaGraph_t made = calloc(1, sizeof *made);
    if (!made)
        abort();
    return made;
}

static void *duplicate(const void *data, size_t bytes)
{
    void *made = malloc(bytes + 1);
    if (!made)
        abort();
    if (bytes)
        memcpy(made, data, bytes);
    return made;
}

void set_work(cudaGraphNode_t node, action run, const void *what, size_t bytes)
{
    void *own = duplicate(what, bytes);
    free(node->what);
    node->run = run;
    node->what = own;
    node->bytes = bytes;
}

void set_said(cudaGraphNode_t node, const void *said, size_t bytes)
{
    void *own = bytes ? duplicate(said, bytes) : NULL;
    free(node->said);
    node->said = own;
    node->said_bytes = bytes;
}

static cudaGraphNode_t add(cudaGraph_t graph, enum cudaGraphNodeType type)
{
    cudaGraphNode_t node = calloc(1, sizeof *node);
    if (!node)
        abort();
    node->type = type;
    node->graph = graph;
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    return node;
}

void depend(cudaGraphNode_t node, const cudaGraphNode_t *needs, size_t count)
{
    node->needs = realloc(node->needs, (node->count + count + 1) * sizeof *node->needs);
    if (count)
        memcpy(node->needs + node->count, needs, count * sizeof *needs);
    node->count += count;
}

/* Captured work needs what was captured before it. */
cudaError_t add_captured(cudaGraph_t graph, enum cudaGraphNodeType type, action run,
                         const void *what, size_t bytes)
{
    cudaGraphNode_t before = graph->last, node = add(graph, type);
    set_work(node, run, what, bytes);
    if (before)
        depend(node, &before, 1);
    return cudaSuccess;
}

static cudaError_t run_node(cudaGraphNode_t node)
{
    cudaError_t status = cudaSuccess;
    if (node->is_done)
        return status;
    node->is_done = 1;
    for (size_t i = 0; !status && i < node->count; i++)
        status = run_node(node->needs[i]);
    if (!status && node->run && !node->is_disabled)
        status = node->run(node->what);
    return status;
}

cudaError_t run_graph(cudaGraph_t graph)
{
    cudaError_t status = cudaSuccess;
    for (cudaGraphNode_t each = graph->first; each; each = each->next)
        each->is_done = 0;
    for (cudaGraphNode_t each = graph->first; !status && each; each = each->next)
        status = run_node(each);
    return status;
}

cudaGraph_t *graphs_of(cudaGraphNode_t node, size_t *count)
{
    struct conditional *own = node->what;
    *count = 0;
    if (!own)
        return NULL;
    if (node->type == cudaGraphNodeTypeGraph) {
        *count = 1;
        return node->what;
    }
    if (node->type != cudaGraphNodeTypeConditional)
        return NULL;
    *count = own->count;
    return own->graphs;
}

void retain_object(struct user_object *object, unsigned count)
{
    object->held += count;
}

void release_object(struct user_object *object, unsigned count)
{
    object->held -= count;
    if (!object->held) {
        object->destroy(object->data);
        free(object);
    }
}

cudaGraphNode_t copy_in(cudaGraph_t graph, cudaGraphNode_t origin)
{
    cudaGraphNode_t each = graph->first;
    while (each && each->origin != origin)
        each = each->next;
    return each;
}

cudaGraphNode_t node_in(cudaGraphExec_t exec, cudaGraphNode_t origin)
{
    return copy_in(exec->graph, origin);
}

void hold_object(cudaGraph_t graph, struct user_object *object, unsigned count)
{
    struct holding *held = malloc(sizeof *held);
    if (!held)
        abort();
    *held = (struct holding){graph->held, object, count};
    graph->held = held;
}

cudaGraph_t clone_graph(cudaGraph_t graph)
{
    cudaGraph_t made = make_graph();
    for (struct holding *each = graph->held; each; each = each->next)
        if (each->count) {
            retain_object(each->object, 1);
            hold_object(made, each->object, 1);
        }
    for (cudaGraphNode_t each = graph->first; each; each = each->next) {
        cudaGraphNode_t node = add(made, each->type);
        node->origin = each;
        set_work(node, each->run, each->what, each->bytes);
        set_said(node, each->said, each->said_bytes);
        size_t count;
        cudaGraph_t *graphs = graphs_of(node, &count);
        for (size_t i = 0; i < count; i++)
            graphs[i] = clone_graph(graphs[i]);
    }
    for (cudaGraphNode_t node = made->first; node; node = node->next)
        for (size_t i = 0; i < node->origin->count; i++) {
            cudaGraphNode_t need = copy_in(made, node->origin->needs[i]);
            depend(node, &need, 1);
        }
    return made;
}

void free_node(cudaGraphNode_t node)
{
    size_t count = 0;
    cudaGraph_t *graphs = graphs_of(node, &count);
    for (size_t i = 0; i < count; i++)
        free_graph(graphs[i]);
    free(node->what);
    free(node->said);
    free(node->needs);
    free(node);
}

void free_graph(cudaGraph_t graph)
{
    for (cudaGraphNode_t each = graph->first, next; each; each = next) {
        next = each->next;
        free_node(each);
    }
    for (struct holding *each = graph->held, *next; each; each = next) {
        next = each->next;
        if (each->count)
            release_object(each->object, each->count);
        free(each);
    }
    free(graph);
}

cudaError_t add_work(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                     size_t count, enum cudaGraphNodeType type, action run, const void *what,
                     size_t bytes)
{
    cudaGraphNode_t node = add(graph, type);
    set_work(node, run, what, bytes);
    depend(node, needs, count);
    if (made)
        *made = node;
    return cudaSuccess;
}
