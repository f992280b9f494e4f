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
typedef struct gesvdjInfo *gesvdjInfo_t;
typedef struct cusolverDnParams *cusolverDnParams_t;
typedef enum { CUSOLVERDN_GETRF = 0, CUSOLVERDN_POTRF = 1 } cusolverDnFunction_t;
typedef enum { CUSOLVER_ALG_0 = 0, CUSOLVER_ALG_1 = 1, CUSOLVER_ALG_2 = 2 } cusolverAlgMode_t;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream);
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t *info);
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info);
cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance);
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int sweeps);
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sorted);
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info);
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info);
cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t info, double tolerance);
cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t info, int sweeps);
cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t info, int sorted);
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params);
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params);
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                         cusolverAlgMode_t algorithm);

#define CUTRACE_SIZE(name, ...) \
    cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t, __VA_ARGS__);
#define CUTRACE_SOLVER(S, T) \
    CUTRACE_SIZE(S##geqrf, int m, int n, T *a, int lda, int *size) \
    CUTRACE_SIZE(S##orgqr, int m, int n, int k, const T *a, int lda, const T *tau, int *size) \
    CUTRACE_SIZE(S##ormqr, cublasSideMode_t, cublasOperation_t, int m, int n, int k, const T *a, \
                 int lda, const T *tau, const T *c, int ldc, int *size) \
    CUTRACE_SIZE(S##gesvd, int m, int n, int *size) \
    CUTRACE_SIZE(S##gesvdj, cusolverEigMode_t, int economic, int m, int n, const T *a, int lda, \
                 const T *s, const T *u, int ldu, const T *v, int ldv, int *size, gesvdjInfo_t) \
    cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *tau, \
                                          T *work, int size, int *info); \
    cusolverStatus_t cusolverDn##S##orgqr(cusolverDnHandle_t, int m, int n, int k, T *a, int lda, \
                                          const T *tau, T *work, int size, int *info); \
    cusolverStatus_t cusolverDn##S##ormqr( \
        cusolverDnHandle_t, cublasSideMode_t, cublasOperation_t, int m, int n, int k, const T *a, \
        int lda, const T *tau, T *c, int ldc, T *work, int size, int *info); \
    cusolverStatus_t cusolverDn##S##gesvd(cusolverDnHandle_t, signed char job_u, signed char job_v, \
                                          int m, int n, T *a, int lda, T *s, T *u, int ldu, T *vt, \
                                          int ldvt, T *work, int size, T *rwork, int *info); \
    cusolverStatus_t cusolverDn##S##gesvdj( \
        cusolverDnHandle_t, cusolverEigMode_t, int economic, int m, int n, T *a, int lda, T *s, T *u, \
        int ldu, T *v, int ldv, T *work, int size, int *info, gesvdjInfo_t); \
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
#undef CUTRACE_SIZE

#define CUTRACE_SIZES(name, ...) \
    cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, \
                                                   __VA_ARGS__, cudaDataType compute, \
                                                   size_t *device, size_t *host);
#define CUTRACE_GENERIC(name, ...) \
    cusolverStatus_t cusolverDn##name(cusolverDnHandle_t, cusolverDnParams_t, __VA_ARGS__);
#define CUTRACE_WORK \
    cudaDataType compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info
CUTRACE_SIZES(Xpotrf, cublasFillMode_t, int64_t n, cudaDataType, const void *a, int64_t lda)
CUTRACE_GENERIC(Xpotrf, cublasFillMode_t, int64_t n, cudaDataType, void *a, int64_t lda, CUTRACE_WORK)
CUTRACE_GENERIC(Xpotrs, cublasFillMode_t, int64_t n, int64_t count, cudaDataType, const void *a,
                int64_t lda, cudaDataType, void *b, int64_t ldb, int *info)
CUTRACE_SIZES(Xgetrf, int64_t m, int64_t n, cudaDataType, const void *a, int64_t lda)
CUTRACE_GENERIC(Xgetrf, int64_t m, int64_t n, cudaDataType, void *a, int64_t lda, int64_t *pivots,
                CUTRACE_WORK)
CUTRACE_GENERIC(Xgetrs, cublasOperation_t, int64_t n, int64_t count, cudaDataType, const void *a,
                int64_t lda, const int64_t *pivots, cudaDataType, void *b, int64_t ldb, int *info)
CUTRACE_SIZES(Xgeqrf, int64_t m, int64_t n, cudaDataType, const void *a, int64_t lda, cudaDataType,
              const void *tau)
CUTRACE_GENERIC(Xgeqrf, int64_t m, int64_t n, cudaDataType, void *a, int64_t lda, cudaDataType,
                void *tau, CUTRACE_WORK)
CUTRACE_SIZES(Xsyevd, cusolverEigMode_t, cublasFillMode_t, int64_t n, cudaDataType, const void *a,
              int64_t lda, cudaDataType, const void *w)
CUTRACE_GENERIC(Xsyevd, cusolverEigMode_t, cublasFillMode_t, int64_t n, cudaDataType, void *a,
                int64_t lda, cudaDataType, void *w, CUTRACE_WORK)
CUTRACE_SIZES(Xgesvd, signed char job_u, signed char job_v, int64_t m, int64_t n, cudaDataType,
              const void *a, int64_t lda, cudaDataType, const void *s, cudaDataType, const void *u,
              int64_t ldu, cudaDataType, const void *vt, int64_t ldvt)
CUTRACE_GENERIC(Xgesvd, signed char job_u, signed char job_v, int64_t m, int64_t n, cudaDataType,
                void *a, int64_t lda, cudaDataType, void *s, cudaDataType, void *u, int64_t ldu,
                cudaDataType, void *vt, int64_t ldvt, CUTRACE_WORK)
CUTRACE_SIZES(Xgesvdp, cusolverEigMode_t, int economic, int64_t m, int64_t n, cudaDataType,
              const void *a, int64_t lda, cudaDataType, const void *s, cudaDataType, const void *u,
              int64_t ldu, cudaDataType, const void *v, int64_t ldv)
CUTRACE_GENERIC(Xgesvdp, cusolverEigMode_t, int economic, int64_t m, int64_t n, cudaDataType, void *a,
                int64_t lda, cudaDataType, void *s, cudaDataType, void *u, int64_t ldu, cudaDataType,
                void *v, int64_t ldv, CUTRACE_WORK, double *error)
CUTRACE_SIZES(Xgesvdr, signed char job_u, signed char job_v, int64_t m, int64_t n, int64_t k,
              int64_t p, int64_t times, cudaDataType, const void *a, int64_t lda, cudaDataType,
              const void *s, cudaDataType, const void *u, int64_t ldu, cudaDataType, const void *v,
              int64_t ldv)
CUTRACE_GENERIC(Xgesvdr, signed char job_u, signed char job_v, int64_t m, int64_t n, int64_t k,
                int64_t p, int64_t times, cudaDataType, void *a, int64_t lda, cudaDataType, void *s,
                cudaDataType, void *u, int64_t ldu, cudaDataType, void *v, int64_t ldv, CUTRACE_WORK)
cusolverStatus_t cusolverDnXtrtri_bufferSize(cusolverDnHandle_t, cublasFillMode_t, cublasDiagType_t,
                                             int64_t n, cudaDataType, void *a, int64_t lda,
                                             size_t *device, size_t *host);
cusolverStatus_t cusolverDnXtrtri(cusolverDnHandle_t, cublasFillMode_t, cublasDiagType_t, int64_t n,
                                  cudaDataType, void *a, int64_t lda, void *work, size_t bytes,
                                  void *host, size_t host_bytes, int *info);
#undef CUTRACE_SIZES
#undef CUTRACE_GENERIC
#undef CUTRACE_WORK

#ifdef __cplusplus
#define CUTRACE_REFUSED(name) cusolverStatus_t name(...);
#else
#define CUTRACE_REFUSED(name) cusolverStatus_t name();
#endif
#define CUTRACE_SOLVER_REFUSED_OF(S) \
    CUTRACE_REFUSED(cusolverDn##S##potri_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##potri) \
    CUTRACE_REFUSED(cusolverDn##S##potrfBatched) \
    CUTRACE_REFUSED(cusolverDn##S##sygvd_bufferSize) \
    CUTRACE_REFUSED(cusolverDn##S##sygvd)
#define CUTRACE_SOLVER_REFUSED \
    CUTRACE_SOLVER_REFUSED_OF(S) CUTRACE_SOLVER_REFUSED_OF(D) \
    CUTRACE_REFUSED(cusolverDnXgeev_bufferSize) \
    CUTRACE_REFUSED(cusolverDnXgeev)
CUTRACE_SOLVER_REFUSED
#undef CUTRACE_REFUSED

#ifdef __cplusplus
}
#endif
#endif
