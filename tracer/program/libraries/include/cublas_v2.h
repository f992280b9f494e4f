/* The calls of cuBLAS that cutrace computes on the host, and names of others, which it refuses. */

#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_
#define CUBLAS_API_H_
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION 130000

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasContext *cublasHandle_t;

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT } cublasSideMode_t;
typedef enum {
    CUBLAS_OP_N,
    CUBLAS_OP_T,
    CUBLAS_OP_C,
    CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef cudaDataType cublasDataType_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType what, int *value);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetVector(int n, int bytes, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasGetVector(int n, int bytes, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void *a, int lda, void *b,
                               int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void *a, int lda, void *b,
                               int ldb);
cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void *x, int incx, void *y, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void *x, int incx, void *y, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void *a, int lda,
                                    void *b, int ldb, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void *a, int lda,
                                    void *b, int ldb, cudaStream_t stream);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                            int m, int n, int k, const void *alpha, const void *a, cudaDataType ta,
                            int lda, const void *b, cudaDataType tb, int ldb, const void *beta,
                            void *c, cudaDataType tc, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType ta, int lda, long long stridea, const void *b,
    cudaDataType tb, int ldb, long long strideb, const void *beta, void *c, cudaDataType tc,
    int ldc, long long stridec, int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
#ifdef __cplusplus
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                           int m, int n, int k, const __half *alpha, const __half *a, int lda,
                           const __half *b, int ldb, const __half *beta, __half *c, int ldc);
cublasStatus_t cublasHgemmStridedBatched(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const __half *alpha, const __half *a, int lda, long long stridea, const __half *b, int ldb,
    long long strideb, const __half *beta, __half *c, int ldc, long long stridec, int count);
#endif

#define CUTRACE_BLAS(S, T) \
    cublasStatus_t cublas##S##copy(cublasHandle_t, int n, const T *x, int, T *y, int); \
    cublasStatus_t cublas##S##swap(cublasHandle_t, int n, T *x, int, T *y, int); \
    cublasStatus_t cublas##S##scal(cublasHandle_t, int n, const T *alpha, T *x, int); \
    cublasStatus_t cublas##S##axpy(cublasHandle_t, int n, const T *alpha, const T *x, int, T *y, \
                                   int); \
    cublasStatus_t cublas##S##gemv(cublasHandle_t, cublasOperation_t, int m, int n, \
                                   const T *alpha, const T *a, int lda, const T *x, int, \
                                   const T *beta, T *y, int); \
    cublasStatus_t cublas##S##symv(cublasHandle_t, cublasFillMode_t, int n, const T *alpha, \
                                   const T *a, int lda, const T *x, int, const T *beta, T *y, int); \
    cublasStatus_t cublas##S##trmv(cublasHandle_t, cublasFillMode_t, cublasOperation_t, \
                                   cublasDiagType_t, int n, const T *a, int lda, T *x, int); \
    cublasStatus_t cublas##S##trsv(cublasHandle_t, cublasFillMode_t, cublasOperation_t, \
                                   cublasDiagType_t, int n, const T *a, int lda, T *x, int); \
    cublasStatus_t cublas##S##gemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, \
                                   int n, int k, const T *alpha, const T *a, int lda, const T *b, \
                                   int ldb, const T *beta, T *c, int ldc); \
    cublasStatus_t cublas##S##gemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, \
                                          int m, int n, int k, const T *alpha, const T *const a[], \
                                          int lda, const T *const b[], int ldb, const T *beta, \
                                          T *const c[], int ldc, int count); \
    cublasStatus_t cublas##S##gemmStridedBatched( \
        cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const T *alpha, \
        const T *a, int lda, long long stridea, const T *b, int ldb, long long strideb, \
        const T *beta, T *c, int ldc, long long stridec, int count); \
    cublasStatus_t cublas##S##symm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int m, \
                                   int n, const T *alpha, const T *a, int lda, const T *b, \
                                   int ldb, const T *beta, T *c, int ldc); \
    cublasStatus_t cublas##S##syrk(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int n, \
                                   int k, const T *alpha, const T *a, int lda, const T *beta, \
                                   T *c, int ldc); \
    cublasStatus_t cublas##S##trmm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, \
                                   cublasOperation_t, cublasDiagType_t, int m, int n, \
                                   const T *alpha, const T *a, int lda, const T *b, int ldb, T *c, \
                                   int ldc); \
    cublasStatus_t cublas##S##trsm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, \
                                   cublasOperation_t, cublasDiagType_t, int m, int n, \
                                   const T *alpha, const T *a, int lda, T *b, int ldb); \
    cublasStatus_t cublas##S##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, \
                                   int n, const T *alpha, const T *a, int lda, const T *beta, \
                                   const T *b, int ldb, T *c, int ldc); \
    cublasStatus_t cublas##S##dgmm(cublasHandle_t, cublasSideMode_t, int m, int n, const T *a, \
                                   int lda, const T *x, int, T *c, int ldc); \
    cublasStatus_t cublas##S##getrfBatched(cublasHandle_t, int n, T *const a[], int lda, \
                                           int *pivots, int *info, int count);
CUTRACE_BLAS(S, float)
CUTRACE_BLAS(D, double)
CUTRACE_BLAS(C, cuComplex)
CUTRACE_BLAS(Z, cuDoubleComplex)
#undef CUTRACE_BLAS

#define CUTRACE_BLAS(name, T, R) \
    cublasStatus_t name(cublasHandle_t, int n, const T *x, int, R *result);
CUTRACE_BLAS(cublasSnrm2, float, float)
CUTRACE_BLAS(cublasDnrm2, double, double)
CUTRACE_BLAS(cublasScnrm2, cuComplex, float)
CUTRACE_BLAS(cublasDznrm2, cuDoubleComplex, double)
CUTRACE_BLAS(cublasSasum, float, float)
CUTRACE_BLAS(cublasDasum, double, double)
CUTRACE_BLAS(cublasScasum, cuComplex, float)
CUTRACE_BLAS(cublasDzasum, cuDoubleComplex, double)
CUTRACE_BLAS(cublasIsamax, float, int)
CUTRACE_BLAS(cublasIdamax, double, int)
CUTRACE_BLAS(cublasIcamax, cuComplex, int)
CUTRACE_BLAS(cublasIzamax, cuDoubleComplex, int)
CUTRACE_BLAS(cublasIsamin, float, int)
CUTRACE_BLAS(cublasIdamin, double, int)
CUTRACE_BLAS(cublasIcamin, cuComplex, int)
CUTRACE_BLAS(cublasIzamin, cuDoubleComplex, int)
#undef CUTRACE_BLAS

#define CUTRACE_BLAS(name, T) \
    cublasStatus_t name(cublasHandle_t, int n, const T *x, int, const T *y, int, T *result);
CUTRACE_BLAS(cublasSdot, float)
CUTRACE_BLAS(cublasDdot, double)
CUTRACE_BLAS(cublasCdotu, cuComplex)
CUTRACE_BLAS(cublasCdotc, cuComplex)
CUTRACE_BLAS(cublasZdotu, cuDoubleComplex)
CUTRACE_BLAS(cublasZdotc, cuDoubleComplex)
#undef CUTRACE_BLAS

#define CUTRACE_BLAS(name, T) \
    cublasStatus_t name(cublasHandle_t, int m, int n, const T *alpha, const T *x, int, const T *y, \
                        int, T *a, int lda);
CUTRACE_BLAS(cublasSger, float)
CUTRACE_BLAS(cublasDger, double)
CUTRACE_BLAS(cublasCgeru, cuComplex)
CUTRACE_BLAS(cublasCgerc, cuComplex)
CUTRACE_BLAS(cublasZgeru, cuDoubleComplex)
CUTRACE_BLAS(cublasZgerc, cuDoubleComplex)
#undef CUTRACE_BLAS

const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);
size_t cublasGetCudartVersion(void);

#ifdef __cplusplus
#define CUTRACE_REFUSED(name) cublasStatus_t name(...);
#else
#define CUTRACE_REFUSED(name) cublasStatus_t name();
#endif
#include "cublas_refused.h"
#undef CUTRACE_REFUSED

#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm

#ifdef __cplusplus
}

/* Up to CUDA 10 a type of data said how products are summed: cuBLAS 13.0, 2.8.12. */
static inline cublasComputeType_t cutrace_compute(cudaDataType type)
{
    return type == CUDA_R_16F ? CUBLAS_COMPUTE_16F
           : type == CUDA_R_32I ? CUBLAS_COMPUTE_32I
           : type == CUDA_R_64F || type == CUDA_C_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

static inline cublasStatus_t cublasGemmEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType ta, int lda, const void *b, cudaDataType tb,
    int ldb, const void *beta, void *c, cudaDataType tc, int ldc, cudaDataType compute,
    cublasGemmAlgo_t algorithm)
{
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc,
                        cutrace_compute(compute), algorithm);
}

static inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType ta, int lda, long long stridea, const void *b,
    cudaDataType tb, int ldb, long long strideb, const void *beta, void *c, cudaDataType tc,
    int ldc, long long stridec, int count, cudaDataType compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, a, ta, lda, stridea, b, tb,
                                      ldb, strideb, beta, c, tc, ldc, stridec, count,
                                      cutrace_compute(compute), algorithm);
}
#endif
#endif
