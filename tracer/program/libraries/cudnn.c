/* cuDNN: there, with handles, and without operations, which are refused by name. XLA requires a handle
   at its start, and generates kernels of its own for what cuDNN refuses. */

#include "library.h"

/* cudnnStatus_t and libraryPropertyType, of NVIDIA's cudnn_graph.h and library_types.h */
enum { DONE = 0, NOT_INITIALIZED = 1001, ALLOCATION_FAILED = 1003, BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
/* The release with the names of names.txt: JAX requires that which it was built with, or a later one. */
enum { MAJOR = 9, MINOR = 28, PATCH = 1 };

struct cudnnContext {
    cudaStream_t stream;
};

API size_t cudnnGetVersion(void)
{
    return MAJOR * 10000 + MINOR * 100 + PATCH;
}

API size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

API size_t cudnnGetMaxDeviceVersion(void)
{
    return CUDART_VERSION;
}

API int cudnnGetProperty(int property, int *value)
{
    static const int version[] = {MAJOR, MINOR, PATCH};
    if (property < 0 || property > 2 || !value)
        return BAD_PARAM;
    *value = version[property];
    return DONE;
}

API int cudnnCreate(struct cudnnContext **handle)
{
    if (!handle)
        return BAD_PARAM;
    if (begin())
        return NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return *handle ? DONE : ALLOCATION_FAILED;
}

API int cudnnDestroy(struct cudnnContext *handle)
{
    free(handle);
    return DONE;
}

API int cudnnSetStream(struct cudnnContext *handle, cudaStream_t stream)
{
    if (!handle)
        return NOT_INITIALIZED;
    handle->stream = stream;
    return DONE;
}

API int cudnnGetStream(struct cudnnContext *handle, cudaStream_t *stream)
{
    if (!handle)
        return NOT_INITIALIZED;
    *stream = handle->stream;
    return DONE;
}

API const char *cudnnGetErrorString(int status)
{
    switch (status) {
    case DONE: return "CUDNN_STATUS_SUCCESS";
    case NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case ALLOCATION_FAILED: return "CUDNN_STATUS_ALLOCATION_FAILED";
    case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    default: return "CUDNN_UNKNOWN_STATUS";
    }
}

API void cudnnGetLastErrorString(char *message, size_t size)
{
    if (size)
        *message = 0;
}
