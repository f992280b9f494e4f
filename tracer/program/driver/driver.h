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

/* module.c: a file as it is, with a zero behind it (NULL if it cannot be read); the logs of a compiler
   that says nothing. */
char *read_file(const char *path, size_t *bytes);
void empty_logs(unsigned count, const CUjit_option *options, void **values);

/* copy.c: a copy of rows and slices; CUDA_ERROR_INVALID_VALUE where rows overlap. */
CUresult box_of(const CUDA_MEMCPY3D *given, struct copy *copy);

static inline void *pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static inline CUdeviceptr address(const void *data)
{
    return (CUdeviceptr)(uintptr_t)data;
}

#endif
