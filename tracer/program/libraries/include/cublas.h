/* cuBLAS as it was up to CUDA 3, for C++: scalars by value, letters, one handle that is nobody's.
   Source: cuBLAS documentation, "Using the cuBLAS Legacy API". */

#ifndef CUBLAS_H_
#define CUBLAS_H_

#include "cublas_v2.h"

#ifdef __cplusplus

typedef cublasStatus_t cublasStatus;

inline cublasStatus_t &cutrace_blas_error()
{
    static cublasStatus_t last = CUBLAS_STATUS_SUCCESS;
    return last;
}

inline cublasHandle_t &cutrace_blas()
{
    static cublasHandle_t handle;
    if (!handle)
        cublasCreate(&handle);
    return handle;
}

inline void cutrace_blas_did(cublasStatus_t status)
{
    if (status)
        cutrace_blas_error() = status;
}

inline cublasStatus_t cublasInit() { return cutrace_blas() ? CUBLAS_STATUS_SUCCESS
                                                           : CUBLAS_STATUS_NOT_INITIALIZED; }
inline cublasStatus_t cublasShutdown() { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetKernelStream(cudaStream_t stream)
{
    return cublasSetStream(cutrace_blas(), stream);
}
inline cublasStatus_t cublasGetError()
{
    cublasStatus_t last = cutrace_blas_error();
    cutrace_blas_error() = CUBLAS_STATUS_SUCCESS;
    return last;
}
inline cublasStatus_t cublasAlloc(int count, int bytes, void **made)
{
    return cudaMalloc(made, (size_t)count * bytes) ? CUBLAS_STATUS_ALLOC_FAILED
                                                   : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasFree(const void *memory)
{
    return cudaFree(const_cast<void *>(memory)) ? CUBLAS_STATUS_INTERNAL_ERROR
                                                : CUBLAS_STATUS_SUCCESS;
}

inline cublasOperation_t cutrace_op(char letter)
{
    char low = letter | 32;
    return low == 'n' ? CUBLAS_OP_N : low == 't' ? CUBLAS_OP_T : CUBLAS_OP_C;
}
inline cublasFillMode_t cutrace_fill(char letter)
{
    return (letter | 32) == 'l' ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
inline cublasSideMode_t cutrace_side(char letter)
{
    return (letter | 32) == 'l' ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
inline cublasDiagType_t cutrace_diagonal(char letter)
{
    return (letter | 32) == 'u' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

#define CUTRACE_CALL(name, ...) cutrace_blas_did(name(cutrace_blas(), __VA_ARGS__))
#define CUTRACE_BLAS(S, T) \
    inline void cublas##S##gemm(char opa, char opb, int m, int n, int k, T alpha, const T *a, \
                                int lda, const T *b, int ldb, T beta, T *c, int ldc) \
    { \
        CUTRACE_CALL(cublas##S##gemm, cutrace_op(opa), cutrace_op(opb), m, n, k, &alpha, a, lda, b, \
                     ldb, &beta, c, ldc); \
    } \
    inline void cublas##S##symm(char side, char fill, int m, int n, T alpha, const T *a, int lda, \
                                const T *b, int ldb, T beta, T *c, int ldc) \
    { \
        CUTRACE_CALL(cublas##S##symm, cutrace_side(side), cutrace_fill(fill), m, n, &alpha, a, lda, \
                     b, ldb, &beta, c, ldc); \
    } \
    inline void cublas##S##syrk(char fill, char op, int n, int k, T alpha, const T *a, int lda, \
                                T beta, T *c, int ldc) \
    { \
        CUTRACE_CALL(cublas##S##syrk, cutrace_fill(fill), cutrace_op(op), n, k, &alpha, a, lda, \
                     &beta, c, ldc); \
    } \
    inline void cublas##S##trsm(char side, char fill, char op, char diagonal, int m, int n, T alpha, \
                                const T *a, int lda, T *b, int ldb) \
    { \
        CUTRACE_CALL(cublas##S##trsm, cutrace_side(side), cutrace_fill(fill), cutrace_op(op), \
                     cutrace_diagonal(diagonal), m, n, &alpha, a, lda, b, ldb); \
    } \
    inline void cublas##S##gemv(char op, int m, int n, T alpha, const T *a, int lda, const T *x, \
                                int stepx, T beta, T *y, int stepy) \
    { \
        CUTRACE_CALL(cublas##S##gemv, cutrace_op(op), m, n, &alpha, a, lda, x, stepx, &beta, y, \
                     stepy); \
    } \
    inline void cublas##S##axpy(int n, T alpha, const T *x, int stepx, T *y, int stepy) \
    { \
        CUTRACE_CALL(cublas##S##axpy, n, &alpha, x, stepx, y, stepy); \
    } \
    inline void cublas##S##scal(int n, T alpha, T *x, int step) \
    { \
        CUTRACE_CALL(cublas##S##scal, n, &alpha, x, step); \
    } \
    inline void cublas##S##copy(int n, const T *x, int stepx, T *y, int stepy) \
    { \
        CUTRACE_CALL(cublas##S##copy, n, x, stepx, y, stepy); \
    } \
    inline void cublas##S##swap(int n, T *x, int stepx, T *y, int stepy) \
    { \
        CUTRACE_CALL(cublas##S##swap, n, x, stepx, y, stepy); \
    }
CUTRACE_BLAS(S, float)
CUTRACE_BLAS(D, double)
CUTRACE_BLAS(C, cuComplex)
CUTRACE_BLAS(Z, cuDoubleComplex)
#undef CUTRACE_BLAS

#define CUTRACE_BLAS(S, T) \
    inline void cublas##S##ger(int m, int n, T alpha, const T *x, int stepx, const T *y, int stepy, \
                               T *a, int lda) \
    { \
        CUTRACE_CALL(cublas##S##ger, m, n, &alpha, x, stepx, y, stepy, a, lda); \
    } \
    inline T cublas##S##dot(int n, const T *x, int stepx, const T *y, int stepy) \
    { \
        T result = 0; \
        CUTRACE_CALL(cublas##S##dot, n, x, stepx, y, stepy, &result); \
        return result; \
    }
CUTRACE_BLAS(S, float)
CUTRACE_BLAS(D, double)
#undef CUTRACE_BLAS

#define CUTRACE_BLAS(name, T, R) \
    inline R name(int n, const T *x, int step) \
    { \
        R result = 0; \
        CUTRACE_CALL(name, n, x, step, &result); \
        return result; \
    }
CUTRACE_BLAS(cublasSnrm2, float, float)
CUTRACE_BLAS(cublasDnrm2, double, double)
CUTRACE_BLAS(cublasScnrm2, cuComplex, float)
CUTRACE_BLAS(cublasDznrm2, cuDoubleComplex, double)
CUTRACE_BLAS(cublasSasum, float, float)
CUTRACE_BLAS(cublasDasum, double, double)
CUTRACE_BLAS(cublasIsamax, float, int)
CUTRACE_BLAS(cublasIdamax, double, int)
CUTRACE_BLAS(cublasIsamin, float, int)
CUTRACE_BLAS(cublasIdamin, double, int)
#undef CUTRACE_BLAS
#undef CUTRACE_CALL

#endif
#endif
