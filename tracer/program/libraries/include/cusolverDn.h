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
    CUSOLVER_STATUS_NOT_SUPPORTED = 9,
    CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED = 12,
    CUSOLVER_STATUS_IRS_PARAMS_INVALID = 13,
    CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC = 14,
    CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE = 15,
    CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED = 25
} cusolverStatus_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 } cusolverEigMode_t;
typedef enum {
    CUSOLVER_EIG_TYPE_1 = 1,
    CUSOLVER_EIG_TYPE_2 = 2,
    CUSOLVER_EIG_TYPE_3 = 3
} cusolverEigType_t;
typedef enum {
    CUSOLVER_IRS_REFINE_NOT_SET = 1100,
    CUSOLVER_IRS_REFINE_NONE = 1101,
    CUSOLVER_IRS_REFINE_CLASSICAL = 1102,
    CUSOLVER_IRS_REFINE_CLASSICAL_GMRES = 1103,
    CUSOLVER_IRS_REFINE_GMRES = 1104,
    CUSOLVER_IRS_REFINE_GMRES_GMRES = 1105,
    CUSOLVER_IRS_REFINE_GMRES_NOPCOND = 1106
} cusolverIRSRefinement_t;
typedef enum {
    CUSOLVER_R_64F = 1203,
    CUSOLVER_R_32F = 1204,
    CUSOLVER_R_16F = 1205,
    CUSOLVER_R_16BF = 1206,
    CUSOLVER_R_TF32 = 1207,
    CUSOLVER_C_64F = 1213,
    CUSOLVER_C_32F = 1214,
    CUSOLVER_C_16F = 1215,
    CUSOLVER_C_16BF = 1216,
    CUSOLVER_C_TF32 = 1217
} cusolverPrecType_t;
typedef int cusolver_int_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnIRSParams *cusolverDnIRSParams_t;
typedef struct cusolverDnIRSInfos *cusolverDnIRSInfos_t;
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

#define CUTRACE_IRS(name, ...) \
    cusolverStatus_t cusolverDnIRSParams##name(cusolverDnIRSParams_t __VA_ARGS__);
CUTRACE_IRS(Create, *params)
CUTRACE_IRS(Destroy, params)
CUTRACE_IRS(SetRefinementSolver, params, cusolverIRSRefinement_t)
CUTRACE_IRS(SetSolverMainPrecision, params, cusolverPrecType_t)
CUTRACE_IRS(SetSolverLowestPrecision, params, cusolverPrecType_t)
CUTRACE_IRS(SetSolverPrecisions, params, cusolverPrecType_t, cusolverPrecType_t lowest)
CUTRACE_IRS(SetTol, params, double)
CUTRACE_IRS(SetTolInner, params, double)
CUTRACE_IRS(SetMaxIters, params, cusolver_int_t)
CUTRACE_IRS(SetMaxItersInner, params, cusolver_int_t)
CUTRACE_IRS(GetMaxIters, params, cusolver_int_t *)
CUTRACE_IRS(EnableFallback, params)
CUTRACE_IRS(DisableFallback, params)
#undef CUTRACE_IRS
cusolverStatus_t cusolverDnIRSInfosCreate(cusolverDnIRSInfos_t *infos);
cusolverStatus_t cusolverDnIRSInfosDestroy(cusolverDnIRSInfos_t infos);
cusolverStatus_t cusolverDnIRSInfosGetNiters(cusolverDnIRSInfos_t infos, cusolver_int_t *count);
cusolverStatus_t cusolverDnIRSInfosGetOuterNiters(cusolverDnIRSInfos_t infos, cusolver_int_t *count);
cusolverStatus_t cusolverDnIRSInfosGetMaxIters(cusolverDnIRSInfos_t infos, cusolver_int_t *most);
cusolverStatus_t cusolverDnIRSXgesv_bufferSize(cusolverDnHandle_t, cusolverDnIRSParams_t,
                                               cusolver_int_t n, cusolver_int_t count, size_t *bytes);
cusolverStatus_t cusolverDnIRSXgesv(cusolverDnHandle_t, cusolverDnIRSParams_t, cusolverDnIRSInfos_t,
                                    cusolver_int_t n, cusolver_int_t count, void *a,
                                    cusolver_int_t lda, void *b, cusolver_int_t ldb, void *x,
                                    cusolver_int_t ldx, void *work, size_t bytes,
                                    cusolver_int_t *iterations, cusolver_int_t *info);
#define CUTRACE_GESV(name, T, type, low) \
    cusolverStatus_t cusolverDn##name##gesv_bufferSize( \
        cusolverDnHandle_t, cusolver_int_t n, cusolver_int_t count, T *a, cusolver_int_t lda, \
        cusolver_int_t *pivots, T *b, cusolver_int_t ldb, T *x, cusolver_int_t ldx, void *work, \
        size_t *bytes); \
    cusolverStatus_t cusolverDn##name##gesv( \
        cusolverDnHandle_t, cusolver_int_t n, cusolver_int_t count, T *a, cusolver_int_t lda, \
        cusolver_int_t *pivots, T *b, cusolver_int_t ldb, T *x, cusolver_int_t ldx, void *work, \
        size_t bytes, cusolver_int_t *iterations, cusolver_int_t *info);
/* The two precisions of a name: D double, S float, H half, B bfloat16, X TF32. */
#define CUTRACE_SOLVER_REFINED(GESV) \
    GESV(DD, double, CUDA_R_64F, CUDA_R_64F) \
    GESV(DS, double, CUDA_R_64F, CUDA_R_32F) \
    GESV(DH, double, CUDA_R_64F, CUDA_R_16F) \
    GESV(DB, double, CUDA_R_64F, CUDA_R_16BF) \
    GESV(DX, double, CUDA_R_64F, CUDA_R_32F) \
    GESV(SS, float, CUDA_R_32F, CUDA_R_32F) \
    GESV(SH, float, CUDA_R_32F, CUDA_R_16F) \
    GESV(SB, float, CUDA_R_32F, CUDA_R_16BF) \
    GESV(SX, float, CUDA_R_32F, CUDA_R_32F)
CUTRACE_SOLVER_REFINED(CUTRACE_GESV)
#undef CUTRACE_GESV

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
    CUTRACE_REFUSED(cusolverDnIRSXgels_bufferSize) \
    CUTRACE_REFUSED(cusolverDnIRSXgels) \
    CUTRACE_REFUSED(cusolverDnIRSInfosRequestResidual) \
    CUTRACE_REFUSED(cusolverDnIRSInfosGetResidualHistory) \
    CUTRACE_REFUSED(cusolverDnXgeev_bufferSize) \
    CUTRACE_REFUSED(cusolverDnXgeev)
CUTRACE_SOLVER_REFUSED
#undef CUTRACE_REFUSED

#ifdef __cplusplus
}
#endif
#endif
