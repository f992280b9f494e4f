/* cuSOLVER's interface of any type and 64-bit sizes: the same computations. Memory that it asks of
   the program, on the device and on the host, is a byte each. */

#include "cusolver.h"

/* One type for all: of float or double. */
static int is_real(cudaDataType a, cudaDataType b)
{
    return a == b && (a == CUDA_R_32F || a == CUDA_R_64F);
}

#define BYTES cudaDataType compute, size_t *device, size_t *host
#define WORK cudaDataType compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info
#define SOLVE_REALS(type, other, name, ...) \
    if (!is_real(type, other)) \
        return refuse_call("cusolverDn" #name " of these types", CUSOLVER_STATUS_NOT_SUPPORTED); \
    SOLVE(name, __VA_ARGS__)
#define SIZES(name, ...) \
    API cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t handle, \
                                                       cusolverDnParams_t params, __VA_ARGS__, \
                                                       BYTES) \
    { \
        *device = *host = 1; \
        return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED; \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
SIZES(Xpotrf, cublasFillMode_t fill, int64_t n, cudaDataType type, const void *a, int64_t lda)
SIZES(Xgetrf, int64_t m, int64_t n, cudaDataType type, const void *a, int64_t lda)
SIZES(Xgeqrf, int64_t m, int64_t n, cudaDataType type, const void *a, int64_t lda,
      cudaDataType tau_type, const void *tau)
SIZES(Xsyevd, cusolverEigMode_t mode, cublasFillMode_t fill, int64_t n, cudaDataType type,
      const void *a, int64_t lda, cudaDataType w_type, const void *w)
SIZES(Xgesvd, signed char job_u, signed char job_v, int64_t m, int64_t n, cudaDataType type,
      const void *a, int64_t lda, cudaDataType s_type, const void *s, cudaDataType u_type,
      const void *u, int64_t ldu, cudaDataType v_type, const void *vt, int64_t ldvt)
SIZES(Xgesvdp, cusolverEigMode_t mode, int economic, int64_t m, int64_t n, cudaDataType type,
      const void *a, int64_t lda, cudaDataType s_type, const void *s, cudaDataType u_type,
      const void *u, int64_t ldu, cudaDataType v_type, const void *v, int64_t ldv)
SIZES(Xgesvdr, signed char job_u, signed char job_v, int64_t m, int64_t n, int64_t k, int64_t p,
      int64_t times, cudaDataType type, const void *a, int64_t lda, cudaDataType s_type,
      const void *s, cudaDataType u_type, const void *u, int64_t ldu, cudaDataType v_type,
      const void *v, int64_t ldv)

API cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      cublasFillMode_t fill, int64_t n, cudaDataType type, void *a,
                                      int64_t lda, WORK)
{
    SOLVE_REALS(type, compute, Xpotrf, .run = run_potrf, .written = a,
                .array = {[A] = a, [INFO] = info}, .size = {[N] = n, [M] = n, [LDA] = lda},
                .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER});
}

API cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      cublasFillMode_t fill, int64_t n, int64_t count,
                                      cudaDataType type, const void *a, int64_t lda,
                                      cudaDataType type_b, void *b, int64_t ldb, int *info)
{
    SOLVE_REALS(type, type_b, Xpotrs, .run = run_potrs, .written = b,
                .array = {[A] = (void *)a, [INFO] = info, [B] = b},
                .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb},
                .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER});
}

API cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      int64_t m, int64_t n, cudaDataType type, void *a, int64_t lda,
                                      int64_t *pivots, WORK)
{
    SOLVE_REALS(type, compute, Xgetrf, .run = run_getrf, .written = a,
                .array = {[A] = a, [INFO] = info, [PIVOTS] = pivots},
                .size = {[N] = n, [M] = m, [LDA] = lda}, .option = {[TYPE] = type, [WIDE] = 1});
}

API cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      cublasOperation_t op, int64_t n, int64_t count,
                                      cudaDataType type, const void *a, int64_t lda,
                                      const int64_t *pivots, cudaDataType type_b, void *b,
                                      int64_t ldb, int *info)
{
    SOLVE_REALS(type, type_b, Xgetrs, .run = run_getrs, .written = b,
                .array = {[A] = (void *)a, [INFO] = info, [PIVOTS] = (void *)pivots, [B] = b},
                .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb},
                .option = {[TYPE] = type, [TRANSPOSED] = op != CUBLAS_OP_N, [WIDE] = 1});
}

API cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      int64_t m, int64_t n, cudaDataType type, void *a, int64_t lda,
                                      cudaDataType tau_type, void *tau, WORK)
{
    SOLVE_REALS(type, tau_type, Xgeqrf, .run = run_geqrf, .written = a,
                .array = {[A] = a, [W] = tau, [INFO] = info},
                .size = {[N] = n, [M] = m, [LDA] = lda}, .option = {[TYPE] = type});
}

API cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      cusolverEigMode_t mode, cublasFillMode_t fill, int64_t n,
                                      cudaDataType type, void *a, int64_t lda, cudaDataType w_type,
                                      void *w, WORK)
{
    SOLVE_REALS(type, w_type, Xsyevd, .run = run_syev, .written = w,
                .array = {[A] = a, [W] = w, [INFO] = info},
                .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = 1},
                .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER,
                           [VECTORS] = mode});
}

API cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      signed char job_u, signed char job_v, int64_t m, int64_t n,
                                      cudaDataType type, void *a, int64_t lda, cudaDataType s_type,
                                      void *s, cudaDataType u_type, void *u, int64_t ldu,
                                      cudaDataType v_type, void *vt, int64_t ldvt, WORK)
{
    SOLVE_REALS(type, s_type, Xgesvd, .run = run_gesvd, .written = s,
                .array = {[A] = a, [W] = s, [INFO] = info, [B] = u, [V] = vt},
                .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldu, [LDV] = ldvt},
                .option = {[TYPE] = type, [U_JOB] = job_u, [V_JOB] = job_v});
}

/* By the polar decomposition on a GPU; `error` is how far sigma may be off. */
API cusolverStatus_t cusolverDnXgesvdp(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                       cusolverEigMode_t mode, int economic, int64_t m, int64_t n,
                                       cudaDataType type, void *a, int64_t lda, cudaDataType s_type,
                                       void *s, cudaDataType u_type, void *u, int64_t ldu,
                                       cudaDataType v_type, void *v, int64_t ldv, WORK,
                                       double *error)
{
    int job = mode == CUSOLVER_EIG_MODE_NOVECTOR ? 'N' : economic ? 'S' : 'A';
    *error = 0;
    SOLVE_REALS(type, s_type, Xgesvdp, .run = run_gesvd, .written = s,
                .array = {[A] = a, [W] = s, [INFO] = info, [B] = u, [V] = v},
                .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldu, [LDV] = ldv},
                .option = {[TYPE] = type, [U_JOB] = job, [V_JOB] = job, [VECTORS] = 1});
}

/* The k largest singular values: by random projections on a GPU, exactly here. */
API cusolverStatus_t cusolverDnXgesvdr(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                       signed char job_u, signed char job_v, int64_t m, int64_t n,
                                       int64_t k, int64_t p, int64_t times, cudaDataType type,
                                       void *a, int64_t lda, cudaDataType s_type, void *s,
                                       cudaDataType u_type, void *u, int64_t ldu,
                                       cudaDataType v_type, void *v, int64_t ldv, WORK)
{
    SOLVE_REALS(type, s_type, Xgesvdr, .run = run_gesvd, .written = s,
                .array = {[A] = a, [W] = s, [INFO] = info, [B] = u, [V] = v},
                .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldu, [LDV] = ldv, [K] = k},
                .option = {[TYPE] = type, [U_JOB] = job_u, [V_JOB] = job_v, [VECTORS] = 1});
}

API cusolverStatus_t cusolverDnXtrtri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t fill,
                                                 cublasDiagType_t diagonal, int64_t n,
                                                 cudaDataType type, void *a, int64_t lda,
                                                 size_t *device, size_t *host)
{
    *device = *host = 1;
    return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

API cusolverStatus_t cusolverDnXtrtri(cusolverDnHandle_t handle, cublasFillMode_t fill,
                                      cublasDiagType_t diagonal, int64_t n, cudaDataType type,
                                      void *a, int64_t lda, void *work, size_t bytes, void *host,
                                      size_t host_bytes, int *info)
{
    SOLVE_REALS(type, type, Xtrtri, .run = run_trtri, .written = a,
                .array = {[A] = a, [INFO] = info}, .size = {[N] = n, [M] = n, [LDA] = lda},
                .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER,
                           [IS_UNIT] = diagonal == CUBLAS_DIAG_UNIT});
}

#include "forwards_libraries_cusolver_generic.h"
