/* Nodes of graphs that copy, set, or call the program: made, and changed later. */

#include "runtime.h"

/* What is wrong with a copy is told when its node is made, not when the graph runs. */
cudaError_t add_copy(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                     size_t count, struct copy copy)
{
    cudaError_t status = check_copy(&copy);
    return status ? status : add_work(made, graph, needs, count, cudaGraphNodeTypeMemcpy, run_copy,
                                      &copy, sizeof copy);
}

static struct copy copy_of_bytes(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return (struct copy){{.data = to}, {.data = (char *)from}, bytes, 1, 1, kind};
}

static struct set set_of(const struct cudaMemsetParams *params)
{
    return (struct set){
        {.data = params->dst, .pitch = params->pitch}, params->width, params->height, 1,
        params->value, params->elementSize,
    };
}

API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *made, cudaGraph_t graph,
                                       const cudaGraphNode_t *needs, size_t count,
                                       const struct cudaMemsetParams *params)
{
    struct set set = set_of(params);
    cudaError_t status = check_set(&set);
    return done(status ? status : add_work(made, graph, needs, count, cudaGraphNodeTypeMemset, run_set, &set,
                         sizeof set));
}

static cudaError_t run_host(const void *what)
{
    const struct cudaHostNodeParams *params = what;
    params->fn(params->userData);
    return cudaSuccess;
}

/* What a node does from now on; no node is one that an executable graph does not have. */
static cudaError_t change(cudaGraphNode_t node, action run, const void *what, size_t bytes)
{
    cudaError_t status = node ? begin() : cudaErrorInvalidValue;
    if (!status)
        set_work(node, run, what, bytes);
    return done(status);
}

cudaError_t change_copy(cudaGraphNode_t node, struct copy copy)
{
    cudaError_t status = check_copy(&copy);
    return status ? done(status) : change(node, run_copy, &copy, sizeof copy);
}

API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params)
{
    struct set set = set_of(params);
    cudaError_t status = check_set(&set);
    return status ? done(status) : change(node, run_set, &set, sizeof set);
}

#include "forwards_runtime_graph_node.h"
