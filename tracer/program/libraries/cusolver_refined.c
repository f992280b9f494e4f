/* cuSOLVER's linear systems by iterative refinement: factors of LU in a narrow precision, the
   residual in the wide one. Sources: cuSOLVER API Reference, "cusolverDn<T1><T2>gesv" and
   "cusolverDnIRSXgesv" (when it ends: |r| <= sqrt(n) |x| |A| eps of every right side; what a
   negative count of iterations means). Every refinement solver is the classical one here. */

#include <float.h>
#include <math.h>

#include "cusolver.h"

enum { X = V, ITERATIONS = 6, INFOS = 7 };                /* more arrays of a call */
enum { LOW = LOWER, MOST = TRANSPOSED, HOW = VECTORS, IS_STRICT = WIDE }; /* and options */

struct cusolverDnIRSParams {
    int main, lowest, solver, most, most_inner, is_strict; /* strict: no fallback */
    double tolerance;
};
struct cusolverDnIRSInfos {
    int count, most;
};

#define SETTING(name, T, ...) \
    API cusolverStatus_t cusolverDnIRSParams##name(cusolverDnIRSParams_t params T) \
    { \
        if (!params) \
            return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED; \
        __VA_ARGS__; \
        return CUSOLVER_STATUS_SUCCESS; \
    }
#define TELLING(name, T, ...) \
    API cusolverStatus_t cusolverDnIRSInfos##name(cusolverDnIRSInfos_t infos T) \
    { \
        if (!infos) \
            return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED; \
        __VA_ARGS__; \
        return CUSOLVER_STATUS_SUCCESS; \
    }
#define OF(...) , __VA_ARGS__
SETTING(Destroy, , free(params))
SETTING(SetRefinementSolver, OF(cusolverIRSRefinement_t solver), params->solver = solver)
SETTING(SetSolverMainPrecision, OF(cusolverPrecType_t type), params->main = type)
SETTING(SetSolverLowestPrecision, OF(cusolverPrecType_t type), params->lowest = type)
SETTING(SetSolverPrecisions, OF(cusolverPrecType_t type, cusolverPrecType_t lowest),
        params->main = type, params->lowest = lowest)
SETTING(SetTol, OF(double value), params->tolerance = value)
SETTING(SetTolInner, OF(double value), (void)value)
SETTING(SetMaxIters, OF(int most), params->most = most)
SETTING(SetMaxItersInner, OF(int most), params->most_inner = most)
SETTING(GetMaxIters, OF(int *most), *most = params->most)
SETTING(EnableFallback, , params->is_strict = 0)
SETTING(DisableFallback, , params->is_strict = 1)
TELLING(Destroy, , free(infos))
TELLING(GetNiters, OF(int *count), *count = infos->count)
TELLING(GetOuterNiters, OF(int *count), *count = infos->count)
TELLING(GetMaxIters, OF(int *most), *most = infos->most)

/* A in the type `type`, factored; `info` is cuSOLVER's. NULL: not finite, or no memory. */
static void *factor(const struct call *call, int type, int *pivots, int *info)
{
    int64_t n = call->size[N];
    void *low = malloc(bytes_of(type) * (n * n + 1));
    struct call own = {.array = {[A] = low, [INFO] = info, [PIVOTS] = pivots},
                       .size = {[N] = n, [M] = n, [LDA] = n}, .option = {[TYPE] = type}};
    for (int64_t i = 0; low && i < n * n; i++)
        set(&own, A, i, get(call, A, i % n + i / n * call->size[LDA]));
    if (low)
        run_getrf(&own);
    for (int64_t i = 0; low && i < n * n; i++)
        if (!isfinite(get(&own, A, i))) {
            free(low);
            low = NULL;
        }
    return low;
}

static double norm(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Solve for n wide numbers by factors of the type `type`, scaled into its range. */
static void solve_by(void *factors, int type, int *pivots, int64_t n, double *x)
{
    int info;
    double scale = norm(x, n);
    struct call own = {.array = {[A] = factors, [PIVOTS] = pivots, [INFO] = &info},
                       .size = {[N] = n, [NUMBER] = 1, [LDA] = n, [LDB] = n},
                       .option = {[TYPE] = type}};
    void *right = own.array[B] = malloc(bytes_of(type) * (n + 1));
    for (int64_t i = 0; right && i < n; i++)
        set(&own, B, i, scale > 0 ? x[i] / scale : 0);
    if (right)
        run_getrs(&own);
    for (int64_t i = 0; right && i < n; i++)
        x[i] = get(&own, B, i) * scale;
    free(right);
}

/* The largest sum of a row. */
static double norm_of_matrix(const struct call *call)
{
    int64_t n = call->size[N];
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(get(call, A, i + j * call->size[LDA]));
        most = fmax(most, sum);
    }
    return most;
}

/* r = b - A x of column `c`. */
static void take_residual(const struct call *call, int64_t c, const double *x, double *r)
{
    int64_t n = call->size[N];
    for (int64_t i = 0; i < n; i++) {
        r[i] = get(call, B, i + c * call->size[LDB]);
        for (int64_t j = 0; j < n; j++)
            r[i] -= get(call, A, i + j * call->size[LDA]) * x[j];
    }
}

/* Solve column `c`; how many corrections that took, or more than allowed. */
static int refine(const struct call *call, void *factors, int type, int *pivots, int64_t c,
                  double limit)
{
    int64_t n = call->size[N];
    double *x = calloc(n + 1, sizeof *x), *r = calloc(n + 1, sizeof *r);
    int count = -1, most = call->option[HOW] == CUSOLVER_IRS_REFINE_NONE ? 0 : call->option[MOST];
    for (int is_near = 0; x && r && !is_near && count <= most;) {
        take_residual(call, c, x, r);
        is_near = count >= 0 && norm(r, n) <= limit * norm(x, n);
        if (is_near || ++count > most)
            break;
        solve_by(factors, type, pivots, n, r);
        for (int64_t i = 0; i < n; i++)
            x[i] += r[i];
    }
    for (int64_t i = 0; x && i < n; i++)
        set(call, X, i + c * call->size[LDV], x[i]);
    free(x), free(r);
    return call->option[HOW] == CUSOLVER_IRS_REFINE_NONE ? 0 : count;
}

/* By factors of one type; the most corrections of a column, -2 where they overflow. */
static int solve_all(const struct call *call, int type, int *info)
{
    int64_t n = call->size[N];
    double epsilon = call->option[TYPE] == CUDA_R_64F ? DBL_EPSILON : FLT_EPSILON, tolerance;
    memcpy(&tolerance, scalar_of(call, 0), sizeof tolerance);
    double limit = sqrt(n) * norm_of_matrix(call) * (tolerance > 0 ? tolerance : epsilon);
    int *pivots = calloc(n + 1, sizeof *pivots), count = 0;
    void *factors = factor(call, type, pivots, info);
    for (int64_t c = 0; factors && !*info && c < call->size[NUMBER]; c++) {
        int own = refine(call, factors, type, pivots, c, limit);
        count = own > count ? own : count;
    }
    free(factors), free(pivots);
    return factors ? count : -2;
}

static void run_refined(const struct call *call)
{
    struct cusolverDnIRSInfos *infos = call->array[INFOS];
    int info = 0, most = call->option[MOST], count = solve_all(call, call->option[LOW], &info);
    if (count > most)
        count = -most;
    if ((count < 0 || info) && !call->option[IS_STRICT])
        solve_all(call, call->option[TYPE], &info);
    tell_info(call, info);
    if (call->array[ITERATIONS])
        *(int *)call->array[ITERATIONS] = count;
    if (infos)
        *infos = (struct cusolverDnIRSInfos){count, most};
}

/* The element type of a precision; 0 for those that are not computed. TF32 is taken as float. */
static int type_of(int precision)
{
    switch (precision) {
    case CUSOLVER_R_64F: return CUDA_R_64F;
    case CUSOLVER_R_32F: case CUSOLVER_R_TF32: return CUDA_R_32F;
    case CUSOLVER_R_16F: return CUDA_R_16F;
    case CUSOLVER_R_16BF: return CUDA_R_16BF;
    }
    return -1;
}

static cusolverStatus_t submit_refined(cusolverDnHandle_t handle, struct call *call, double tolerance)
{
    hold_scalar(call, 0, &tolerance, sizeof tolerance, 1);
    return solve(handle, call);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
API cusolverStatus_t cusolverDnIRSXgesv_bufferSize(cusolverDnHandle_t handle,
                                                   cusolverDnIRSParams_t params, int n, int count,
                                                   size_t *bytes)
{
    *bytes = 1;
    return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

API cusolverStatus_t cusolverDnIRSXgesv(cusolverDnHandle_t handle, cusolverDnIRSParams_t params,
                                        cusolverDnIRSInfos_t infos, int n, int count, void *a, int lda,
                                        void *b, int ldb, void *x, int ldx, void *work, size_t bytes,
                                        int *iterations, int *info)
{
    if (!params || !infos)
        return params ? CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED
                      : CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
    if (!params->main || !params->lowest)
        return CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC;
    if (params->solver == CUSOLVER_IRS_REFINE_NOT_SET)
        return CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE;
    int type = type_of(params->main), low = type_of(params->lowest);
    if (low < 0 || (type != CUDA_R_32F && type != CUDA_R_64F))
        return refuse_call("cusolverDnIRSXgesv of complex numbers", CUSOLVER_STATUS_NOT_SUPPORTED);
    struct call call = {.name = "cusolverDnIRSXgesv", .run = run_refined, .written = x,
                        .array = {[A] = a, [INFO] = info, [B] = b, [X] = x, [ITERATIONS] = iterations,
                                  [INFOS] = infos},
                        .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb,
                                 [LDV] = ldx},
                        .option = {[TYPE] = type, [LOW] = low, [MOST] = params->most,
                                   [HOW] = params->solver, [IS_STRICT] = params->is_strict}};
    return submit_refined(handle, &call, params->tolerance);
}

#define GESV(S, T, wide, low) \
    API cusolverStatus_t cusolverDn##S##gesv_bufferSize( \
        cusolverDnHandle_t handle, int n, int count, T *a, int lda, int *pivots, T *b, int ldb, T *x, \
        int ldx, void *work, size_t *bytes) \
    { \
        return cusolverDnIRSXgesv_bufferSize(handle, NULL, n, count, bytes); \
    } \
    API cusolverStatus_t cusolverDn##S##gesv(cusolverDnHandle_t handle, int n, int count, T *a, \
                                                int lda, int *pivots, T *b, int ldb, T *x, int ldx, \
                                                void *work, size_t bytes, int *iterations, int *info) \
    { \
        struct call call = { \
            .name = "cusolverDn" #S "gesv", .run = run_refined, .written = x, \
            .array = {[A] = a, [INFO] = info, [B] = b, [X] = x, [ITERATIONS] = iterations}, \
            .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb, [LDV] = ldx}, \
            .option = {[TYPE] = wide, [LOW] = low, [MOST] = 50}}; \
        return submit_refined(handle, &call, 0); \
    }
CUTRACE_SOLVER_REFINED(GESV)

#include "forwards_libraries_cusolver_refined.h"
