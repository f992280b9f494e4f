/* What the files of cuBLAS share. */

#ifndef CUTRACE_CUBLAS_H
#define CUTRACE_CUBLAS_H

#include "library.h"

#include "include/cublas_v2.h"

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t mode;
    cublasMath_t math;
};

#define SIZES 3 /* m, n, k come first: what may not be negative */

/* Hold the scalars, and have the call run in the handle's stream. */
cublasStatus_t submit_blas(cublasHandle_t handle, struct call *call, const void *alpha,
                           const void *beta, size_t bytes);

#endif
