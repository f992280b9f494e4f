/* What the files of the driver's interface share. It is a second face on the runtime beside it:
   contexts, modules and functions have handles of their own; memory, streams, events, arrays and
   graphs are the runtime's, whose types have the same layout. */

#ifndef CUTRACE_DRIVER_H
#define CUTRACE_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL /* no macro renames cuMemAlloc to cuMemAlloc_v2 */
#include <cuda.h>

#include "runtime.h"

/* The same error for the driver: errors that only the runtime has are others there. */
CUresult result(cudaError_t status);

/* Say on stderr that a function is missing; CUDA_ERROR_NOT_SUPPORTED. */
CUresult refuse_driver(const char *name);

/* module.c: the logs of a compiler that says nothing. */
void empty_logs(unsigned count, const CUjit_option *options, void **values);

/* copy.c: a copy of rows and slices; CUDA_ERROR_INVALID_VALUE where rows overlap. */
CUresult box_of(const CUDA_MEMCPY3D *given, struct copy *copy);
CUresult copy_row(struct side to, struct side from, size_t bytes, CUstream stream);
CUresult set_elements(CUdeviceptr place, size_t pitch, unsigned value, unsigned element,
                      size_t width, size_t height, CUstream stream);

/* What the forwards of forwards.txt call besides. */
CUresult create_context(CUcontext *context, unsigned flags, CUdevice number);
CUresult push_context(CUcontext context);
CUresult said_params(CUgraphNode node, void *params, size_t bytes);
CUresult set_copy_node(CUgraphNode node, const CUDA_MEMCPY3D *params);
CUresult set_fill_node(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params);
CUresult set_host_node(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params);
CUresult set_node(CUgraphNode node, CUgraphNodeParams *params);
cudaError_t write_value(CUstream stream, CUdeviceptr place, uint64_t value, int bytes);
cudaError_t wait_value(CUstream stream, CUdeviceptr place, uint64_t value, int bytes,
                       unsigned flags);

static inline void *pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static inline CUdeviceptr address(const void *data)
{
    return (CUdeviceptr)(uintptr_t)data;
}

static inline struct side in_array(CUarray array, size_t x)
{
    return array_side((cudaArray_const_t)array, x, 0, 0);
}

/* Devices were numbers before they were places; -1 is the host. */
static inline CUmemLocation numbered(CUdevice number)
{
    CUmemLocation place = {number < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           {number < 0 ? 0 : number}};
    return place;
}

static inline struct cudaMemLocation as_location(CUmemLocation place)
{
    return (struct cudaMemLocation){(enum cudaMemLocationType)place.type, {place.id}};
}

#endif
