/* Nodes that are added to graphs one by one, by the runtime; what was said of them is kept, to be told
   again. Kernels are told from the launch itself. */

#include "driver.h"

#define ADDED CUgraphNode *made, CUgraph graph, const CUgraphNode *needs, size_t count
#define WHERE made, graph, needs, count

static struct cudaKernelNodeParams kernel_of(const CUDA_KERNEL_NODE_PARAMS_v1 *p, CUkernel kernel)
{
    return (struct cudaKernelNodeParams){
        .func = p->func ? (void *)p->func : (void *)kernel,
        .gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
}

/* Its first members are those of the first version. */
static struct cudaKernelNodeParams kernel_of_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    return kernel_of((const CUDA_KERNEL_NODE_PARAMS_v1 *)p, p->kern);
}

API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct cudaKernelNodeParams own;
    CUresult status = result(cudaGraphKernelNodeGetParams(node, &own));
    if (status)
        return status;
    *params = (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = (CUfunction)own.func, .sharedMemBytes = own.sharedMemBytes,
        .gridDimX = own.gridDim.x, .gridDimY = own.gridDim.y, .gridDimZ = own.gridDim.z,
        .blockDimX = own.blockDim.x, .blockDimY = own.blockDim.y, .blockDimZ = own.blockDim.z,
        .kernelParams = own.kernelParams,
    };
    return CUDA_SUCCESS;
}

CUresult said_params(CUgraphNode node, void *params, size_t bytes)
{
    const void *known = said_of(node, bytes);
    if (!known)
        return refuse_driver("asking what a node does that was captured, or is of another type");
    memcpy(params, known, bytes);
    return CUDA_SUCCESS;
}

/* What was said of a node is kept where that was good. */
static CUresult keep(CUresult status, CUgraphNode node, const void *params, size_t bytes)
{
    if (!status)
        set_said(node, params, bytes);
    return status;
}

CUresult set_copy_node(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    struct copy copy;
    CUresult status = node ? box_of(params, &copy) : CUDA_ERROR_INVALID_VALUE;
    if (status)
        return status;
    return keep(result(change_copy(node, copy)), node, params, sizeof *params);
}

API CUresult cuGraphAddMemcpyNode(ADDED, const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context;
    struct copy copy;
    CUresult status = box_of(params, &copy);
    if (!status)
        status = result(add_copy(WHERE, copy));
    return keep(status, *made, params, sizeof *params);
}

/* CUDA_ERROR_INVALID_VALUE for elements of a size that there is not. */
static CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS *params, struct cudaMemsetParams *own)
{
    *own = (struct cudaMemsetParams){pointer(params->dst), params->pitch, params->value,
                                     params->elementSize, params->width, params->height};
    int is_size = own->elementSize == 1 || own->elementSize == 2 || own->elementSize == 4;
    return is_size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_fill_node(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    struct cudaMemsetParams own;
    CUresult status = fill_of(params, &own);
    if (!status)
        status = result(cudaGraphMemsetNodeSetParams(node, &own));
    return keep(status, node, params, sizeof *params);
}

API CUresult cuGraphAddMemsetNode(ADDED, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    (void)context;
    struct cudaMemsetParams own;
    CUresult status = fill_of(params, &own);
    if (!status)
        status = result(cudaGraphAddMemsetNode(WHERE, &own));
    return keep(status, *made, params, sizeof *params);
}

static struct cudaHostNodeParams call_of(const CUDA_HOST_NODE_PARAMS *params)
{
    return (struct cudaHostNodeParams){params->fn, params->userData};
}

CUresult set_host_node(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    struct cudaHostNodeParams own = call_of(params);
    return keep(result(cudaGraphHostNodeSetParams(node, &own)), node, params, sizeof *params);
}

API CUresult cuGraphAddHostNode(ADDED, const CUDA_HOST_NODE_PARAMS *params)
{
    struct cudaHostNodeParams own = call_of(params);
    CUresult status = result(cudaGraphAddHostNode(WHERE, &own)); /* first: it makes the node */
    return keep(status, *made, params, sizeof *params);
}

API CUresult cuGraphAddMemAllocNode(ADDED, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct cudaMemAllocNodeParams own = {.bytesize = params->bytesize};
    CUresult status = result(cudaGraphAddMemAllocNode(WHERE, &own));
    params->dptr = address(own.dptr);
    return keep(status, *made, params, sizeof *params);
}

API CUresult cuGraphAddMemFreeNode(ADDED, CUdeviceptr place)
{
    CUresult status = result(cudaGraphAddMemFreeNode(WHERE, pointer(place)));
    return keep(status, *made, &place, sizeof place);
}

static CUresult add_conditional_node(ADDED, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    struct cudaConditionalNodeParams own = {
        .handle = params->handle, .type = (enum cudaGraphConditionalNodeType)params->type,
        .size = params->size,
    };
    CUresult status = result(add_conditional(WHERE, &own));
    params->phGraph_out = own.phGraph_out;
    return status;
}

/* A node of any kind. */
API CUresult cuGraphAddNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *needs,
                               const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p)
{
    (void)edges;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphAddKernelNode_v2(WHERE, (const CUDA_KERNEL_NODE_PARAMS_v2 *)&p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphAddMemcpyNode(WHERE, &p->memcpy.copyParams, NULL);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return cuGraphAddMemsetNode(WHERE, (const CUDA_MEMSET_NODE_PARAMS *)&p->memset, NULL);
    case CU_GRAPH_NODE_TYPE_HOST:
        return cuGraphAddHostNode(WHERE, (const CUDA_HOST_NODE_PARAMS *)&p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return cuGraphAddChildGraphNode(WHERE, p->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return cuGraphAddEmptyNode(WHERE);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphAddEventRecordNode(WHERE, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphAddEventWaitNode(WHERE, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return cuGraphAddMemAllocNode(WHERE, (CUDA_MEM_ALLOC_NODE_PARAMS *)&p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return cuGraphAddMemFreeNode(WHERE, p->free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return add_conditional_node(WHERE, &p->conditional);
    default:
        return refuse_driver("cuGraphAddNode with a node of this kind");
    }
}

CUresult set_node(CUgraphNode node, CUgraphNodeParams *p)
{
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphKernelNodeSetParams_v2(node, (const CUDA_KERNEL_NODE_PARAMS_v2 *)&p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return set_copy_node(node, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_fill_node(node, (const CUDA_MEMSET_NODE_PARAMS *)&p->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return set_host_node(node, (const CUDA_HOST_NODE_PARAMS *)&p->host);
    default:
        return refuse_driver("cuGraphNodeSetParams with a node of this kind");
    }
}

static CUresult conditional_params(CUgraphNode node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    struct cudaConditionalNodeParams own;
    CUresult status = result(conditional_of(node, &own));
    if (!status)
        *params = (CUDA_CONDITIONAL_NODE_PARAMS){
            .handle = own.handle, .type = (CUgraphConditionalNodeType)own.type, .size = own.size,
            .phGraph_out = own.phGraph_out,
        };
    return status;
}

API CUresult cuGraphNodeGetParams(CUgraphNode node, CUgraphNodeParams *p)
{
    memset(p, 0, sizeof *p);
    cuGraphNodeGetType(node, &p->type);
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphKernelNodeGetParams_v2(node, (CUDA_KERNEL_NODE_PARAMS_v2 *)&p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return said_params(node, &p->memcpy.copyParams, sizeof p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return said_params(node, &p->memset, sizeof(CUDA_MEMSET_NODE_PARAMS));
    case CU_GRAPH_NODE_TYPE_HOST:
        return said_params(node, &p->host, sizeof(CUDA_HOST_NODE_PARAMS));
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return cuGraphChildGraphNodeGetGraph(node, &p->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphEventRecordNodeGetEvent(node, &p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphEventWaitNodeGetEvent(node, &p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return said_params(node, &p->alloc, sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return said_params(node, &p->free.dptr, sizeof p->free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_params(node, &p->conditional);
    default:
        return refuse_driver("cuGraphNodeGetParams of a node of this kind");
    }
}

API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    CUgraphNode own = node_in(exec, node);
    return own ? set_node(own, params) : CUDA_ERROR_INVALID_VALUE;
}

#include "forwards_driver_graph_node.h"
