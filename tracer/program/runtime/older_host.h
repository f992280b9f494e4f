/* Functions of the runtime as CUDA 12 and older declare them, for host code in C++. The headers of
   cutrace's toolkit include it, and so does older.h.
   Sources: CUDA Runtime API 12.9; 9.2, "Execution Control [DEPRECATED]". */

#if defined(__cplusplus) && !defined(CUTRACE_OLDER_HOST)
#define CUTRACE_OLDER_HOST

#include <cuda_runtime_api.h>

/* Up to CUDA 12 a place of memory was the number of a device, or cudaCpuDeviceId. */
static inline cudaMemLocation cutrace_location(int device)
{
    cudaMemLocation location = {};
    location.type =
        device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = device == cudaCpuDeviceId ? 0 : device;
    return location;
}

static inline cudaError_t cudaMemPrefetchAsync(const void *memory, size_t bytes, int device,
                                               cudaStream_t stream = 0)
{
    return cudaMemPrefetchAsync(memory, bytes, cutrace_location(device), 0, stream);
}

static inline cudaError_t cudaMemAdvise(const void *memory, size_t bytes, cudaMemoryAdvise advice,
                                        int device)
{
    return cudaMemAdvise(memory, bytes, advice, cutrace_location(device));
}

/* Up to CUDA 12 edges of graphs had no data. */
static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to, size_t count)
{
    return cudaGraphAddDependencies(graph, from, to, NULL, count);
}

static inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                      const cudaGraphNode_t *to, size_t count)
{
    return cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}

static inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                                            cudaGraphNode_t *to, size_t *count)
{
    return cudaGraphGetEdges(graph, from, to, NULL, count);
}

static inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                       size_t *count)
{
    return cudaGraphNodeGetDependencies(node, nodes, NULL, count);
}

static inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                                         cudaGraphNode_t *nodes, size_t *count)
{
    return cudaGraphNodeGetDependentNodes(node, nodes, NULL, count);
}

static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *before, size_t count,
                                           cudaGraphNodeParams *what)
{
    return cudaGraphAddNode(node, graph, before, NULL, count, what);
}

/* Up to CUDA 9 a launch was a call for its configuration, one for each argument, and one for it. */
extern "C" cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
extern "C" cudaError_t cudaSetupArgument(const void *argument, size_t bytes, size_t offset);
extern "C" cudaError_t cudaLaunch(const void *function);

static inline cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0)
{
    return cudaConfigureCall(grid, block, shared, 0);
}

template <class T> static inline cudaError_t cudaSetupArgument(T argument, size_t offset)
{
    return cudaSetupArgument(&argument, sizeof argument, offset);
}

template <class T> static inline cudaError_t cudaLaunch(T *function)
{
    return cudaLaunch(reinterpret_cast<const void *>(function));
}

#endif
