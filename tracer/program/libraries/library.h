/* Libraries whose kernels are machine code: cuBLAS, cuFFT, cuRAND, cuSPARSE. Their calls are computed
   here, on the host, where the program's stream or graph has its turn for them. The recorder is told
   the name of each: nothing of what the library's kernels do on a GPU is counted. */

#ifndef CUTRACE_LIBRARY_H
#define CUTRACE_LIBRARY_H

#include "../runtime/runtime.h"

#define SCALAR_BYTES 16

/* A call with its arguments, in whatever order its `run` has for them. */
struct call {
    const char *name;
    void (*run)(const struct call *call);
    void *array[8];
    void *written; /* the array that the recorder is told of */
    int64_t size[16];
    int option[8];
    struct {
        const void *place; /* where it is read when the call runs, or NULL */
        char value[SCALAR_BYTES];
    } scalar[2];
};

/* Have it run now, or whenever the graph runs that is being captured; 0 or a cudaError_t. */
int submit_call(cudaStream_t stream, const struct call *call);

/* The same of a longer struct that begins with the call. */
int submit_call_of(cudaStream_t stream, const struct call *call, size_t bytes);

/* A scalar that may lie on the device: read at once if `now`. */
void hold_scalar(struct call *call, int number, const void *place, size_t bytes, int now);
const void *scalar_of(const struct call *call, int number);

/* Say that a function is not there; `status` is what the library itself has for that. */
int refuse_call(const char *name, int status);

/* Two functions that set and get a field of a library's handle: PROPERTY(cublas, CUBLAS, Stream, T,
   field) makes cublasSetStream and cublasGetStream. */
#define PROPERTY(library, LIBRARY, Name, T, field) \
    API library##Status_t library##Set##Name(library##Handle_t handle, T value) \
    { \
        if (!handle) \
            return LIBRARY##_STATUS_NOT_INITIALIZED; \
        handle->field = value; \
        return LIBRARY##_STATUS_SUCCESS; \
    } \
    API library##Status_t library##Get##Name(library##Handle_t handle, T *value) \
    { \
        if (!handle) \
            return LIBRARY##_STATUS_NOT_INITIALIZED; \
        *value = handle->field; \
        return LIBRARY##_STATUS_SUCCESS; \
    }

/* double.c: elements of any type of CUDA's libraries as double, and back. */
size_t bytes_of(int type);
double element_of(const void *array, int type, int64_t index);
void set_element(void *array, int type, int64_t index, double value);

/* fourier.c: transform all rows of n elements, `stride` apart, of `total` elements; unscaled.
   The direction is -1 or 1. */
void transform_rows(double _Complex *data, int64_t total, int64_t n, int64_t stride, int direction);

#endif
