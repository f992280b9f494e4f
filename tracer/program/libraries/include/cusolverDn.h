/* The calls of cuSOLVER's dense part that cutrace computes on the host, and names of others, which it
   refuses. Source: cuSOLVER API Reference, "cuSolverDN". */

#ifndef CUSOLVERDN_H_
#define CUSOLVERDN_H_

#include "cublas_v2.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUSOLVER_STATUS_SUCCESS = 0,
    CUSOLVER_STATUS_NOT_INITIALIZED = 1,
    CUSOLVER_STATUS_ALLOC_FAILED = 2,
    CUSOLVER_STATUS_INVALID_VALUE = 3,
    CUSOLVER_STATUS_ARCH_MISMATCH = 4,
    CUSOLVER_STATUS_MAPPING_ERROR = 5,
    CUSOLVER_STATUS_EXECUTION_FAILED = 6,
    CUSOLVER_STATUS_INTERNAL_ERROR = 7,
    CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
    CUSOLVER_STATUS_NOT_SUPPORTED = 9
} cusolverStatus_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 } cusolverEigMode_t;
typedef enum {
    CUSOLVER_EIG_TYPE_1 = 1,
    CUSOLVER_EIG_TYPE_2 = 2,
    CUSOLVER_EIG_TYPE_3 = 3
} cusolverEigType_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct syevjInfo *syevjInfo_t;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream);
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t *info);
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info);
cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance);
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int sweeps);
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sorted);

#define CUTRACE_SOLVER(S, T) \
    cusolverStatus_t cusolverDn##S##potrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int n, \
                                                     T *a, int lda, int *size); \
    cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t, cublasFillMode_t, int n, T *a, \
                                          int lda, T *work, int size, int *info); \
    cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t, cublasFillMode_t, int n, int count, \
                                          const T *a, int lda, T *b, int ldb, int *info); \
    cusolverStatus_t cusolverDn##S##getrf_bufferSize(cusolverDnHandle_t, int m, int n, T *a, \
                                                     int lda, int *size); \
    cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *work, \
                                          int *pivots, int *info); \
    cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t, cublasOperation_t, int n, int count, \
                                          const T *a, int lda, const int *pivots, T *b, int ldb, \
                                          int *info); \
    cusolverStatus_t cusolverDn##S##syevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, \
                                                     cublasFillMode_t, int n, const T *a, int lda, \
                                                     const T *w, int *size); \
    cusolverStatus_t cusolverDn##S##syevd(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, \
                                          int n, T *a, int lda, T *w, T *work, int size, int *info); \
    cusolverStatus_t cusolverDn##S##syevj_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, \
                                                     cublasFillMode_t, int n, const T *a, int lda, \
                                                     const T *w, int *size, syevjInfo_t); \
    cusolverStatus_t cusolverDn##S##syevj(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, \
                                          int n, T *a, int lda, T *w, T *work, int size, int *info, \
                                          syevjInfo_t); \
    cusolverStatus_t cusolverDn##S##syevjBatched_bufferSize( \
        cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int n, const T *a, int lda, \
        const T *w, int *size, syevjInfo_t, int count); \
    cusolverStatus_t cusolverDn##S##syevjBatched(cusolverDnHandle_t, cusolverEigMode_t, \
                                                 cublasFillMode_t, int n, T *a, int lda, T *w, \
                                                 T *work, int size, int *info, syevjInfo_t, \
                                                 int count);
CUTRACE_SOLVER(S, float)
CUTRACE_SOLVER(D, double)
#undef CUTRACE_SOLVER

#ifdef __cplusplus
#define CUTRACE_REFUSED(name) cusolverStatus_t name(...);
#else
#define CUTRACE_REFUSED(name) cusolverStatus_t name();
#endif
#define CUTRACE_SOLVER_REFUSED_OF(S) \
    CUTRACE_REFUSED(cusolverDn##S##geqrf_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##geqrf) \
    CUTRACE_REFUSED(cusolverDn##S##orgqr_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##orgqr) \
    CUTRACE_REFUSED(cusolverDn##S##ormqr_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##ormqr) \
    CUTRACE_REFUSED(cusolverDn##S##gesvd_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##gesvd) \
    CUTRACE_REFUSED(cusolverDn##S##potri_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##potri) \
    CUTRACE_REFUSED(cusolverDn##S##sygvd_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##sygvd)
#define CUTRACE_SOLVER_REFUSED CUTRACE_SOLVER_REFUSED_OF(S) CUTRACE_SOLVER_REFUSED_OF(D)
CUTRACE_SOLVER_REFUSED
#undef CUTRACE_REFUSED

#ifdef __cplusplus
}
#endif
#endif
