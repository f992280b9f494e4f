/* cuSOLVER on the host, continued: QR by Householder's reflections, singular values by Jacobi's
   rotations of columns. Source of what is stored where: LAPACK Users' Guide, GEQRF, ORGQR, ORMQR,
   GESVD. */

#include <math.h>

#include "cusolver.h"

/* Column k of A below its diagonal is v, whose first element is 1: H = I - tau v v^T. */
static double of_reflection(const struct call *call, int64_t k, int64_t i)
{
    return i == k ? 1 : get(call, A, i + k * call->size[LDA]);
}

/* Element i of column or row j of what is reflected. */
struct lines { int array; int64_t step, stride; };

/* H times lines `first` to `last` of an array, from the k-th element on. */
static void reflect(const struct call *call, struct lines x, int64_t k, int64_t length, int64_t first,
                    int64_t last)
{
    double tau = get(call, W, k);
    for (int64_t j = first; tau != 0 && j < last; j++) {
        double sum = 0;
        for (int64_t i = k; i < length; i++)
            sum += of_reflection(call, k, i) * get(call, x.array, i * x.step + j * x.stride);
        for (int64_t i = k; i < length; i++) {
            int64_t at = i * x.step + j * x.stride;
            set(call, x.array, at, get(call, x.array, at) - tau * sum * of_reflection(call, k, i));
        }
    }
}

void run_geqrf(const struct call *call)
{
    int64_t m = call->size[M], n = call->size[N], ld = call->size[LDA];
    for (int64_t k = 0; k < m && k < n; k++) {
        double first = get(call, A, k + k * ld), below = 0;
        for (int64_t i = k + 1; i < m; i++)
            below += get(call, A, i + k * ld) * get(call, A, i + k * ld);
        double beta = first < 0 ? sqrt(first * first + below) : -sqrt(first * first + below);
        set(call, W, k, below == 0 ? 0 : (beta - first) / beta);
        for (int64_t i = k + 1; below != 0 && i < m; i++)
            set(call, A, i + k * ld, get(call, A, i + k * ld) / (first - beta));
        reflect(call, (struct lines){A, 1, ld}, k, m, k + 1, n);
        if (below != 0)
            set(call, A, k + k * ld, beta);
    }
    tell_info(call, 0);
}

/* Q's first columns in place of the reflections, the last reflection first. */
void run_orgqr(const struct call *call)
{
    int64_t m = call->size[M], n = call->size[N], ld = call->size[LDA], count = call->size[K];
    for (int64_t j = count; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            set(call, A, i + j * ld, i == j);
    for (int64_t k = count - 1; k >= 0; k--) {
        reflect(call, (struct lines){A, 1, ld}, k, m, k + 1, n);
        double tau = get(call, W, k);
        for (int64_t i = 0; i < m; i++)
            set(call, A, i + k * ld,
                i < k ? 0 : (i == k) - tau * of_reflection(call, k, i));
    }
    tell_info(call, 0);
}

/* C := Q C, C Q, or with Q transposed; Q = H1 H2 ... Hk. */
void run_ormqr(const struct call *call)
{
    int64_t count = call->size[K], ld = call->size[LDB];
    int right = call->option[RIGHT], upward = call->option[TRANSPOSED] != right;
    int64_t length = right ? call->size[N] : call->size[M];
    struct lines lines = right ? (struct lines){B, ld, 1} : (struct lines){B, 1, ld};
    for (int64_t step = 0; step < count; step++)
        reflect(call, lines, upward ? step : count - 1 - step, length, 0,
                right ? call->size[M] : call->size[N]);
    tell_info(call, 0);
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void turn(double *x, double *y, int64_t n, double c, double s)
{
    for (int64_t i = 0; i < n; i++) {
        double first = x[i];
        x[i] = c * first - s * y[i];
        y[i] = s * first + c * y[i];
    }
}

/* Turn columns of x (n of m elements) and of v (n of n) until those of x are orthogonal. */
static void orthogonalize(double *x, double *v, int64_t m, int64_t n)
{
    int turned = 1;
    for (int sweep = 0; sweep < 60 && turned; sweep++) {
        turned = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double *a = x + p * m, *b = x + q * m;
                double aa = dot(a, a, m), bb = dot(b, b, m), ab = dot(a, b, m);
                if (fabs(ab) <= 1e-15 * sqrt(aa * bb))
                    continue;
                double angle = (bb - aa) / (2 * ab);
                double t = (angle < 0 ? -1 : 1) / (fabs(angle) + sqrt(1 + angle * angle));
                double c = 1 / sqrt(1 + t * t);
                turn(a, b, m, c, t * c);
                turn(v + p * n, v + q * n, n, c, t * c);
                turned = 1;
            }
    }
}

/* Make column `at` of x orthogonal to those before it, of length 1: by the best unit vector. */
static void complete(double *x, int64_t m, int64_t at)
{
    double *column = x + at * m, left = 0;
    for (int64_t unit = 0; unit < m && left < 0.5 / m; unit++) {
        for (int64_t i = 0; i < m; i++)
            column[i] = i == unit;
        for (int time = 0; time < 2; time++)
            for (int64_t j = 0; j < at; j++) {
                double along = dot(x + j * m, column, m);
                for (int64_t i = 0; i < m; i++)
                    column[i] -= along * x[j * m + i];
            }
        left = dot(column, column, m);
    }
    for (int64_t i = 0; i < m; i++)
        column[i] /= sqrt(left);
}

static void exchange(double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double first = x[i];
        x[i] = y[i];
        y[i] = first;
    }
}

/* x = u s v^T of m by n, m no less than n: x has room for m columns, and becomes all of u. */
static void decompose(double *x, double *s, double *v, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        v[i] = i % (n + 1) == 0;
    orthogonalize(x, v, m, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t most = k;
        for (int64_t j = k; j < n; j++) {
            s[j] = sqrt(dot(x + j * m, x + j * m, m));
            most = s[j] > s[most] ? j : most;
        }
        if (most != k) {
            exchange(x + k * m, x + most * m, m);
            exchange(v + k * n, v + most * n, n);
            exchange(s + k, s + most, 1);
        }
    }
    for (int64_t k = 0; k < m; k++) {
        if (k < n && s[k] > 1e-14 * s[0]) {
            for (int64_t i = 0; i < m; i++)
                x[k * m + i] /= s[k];
        } else {
            complete(x, m, k);
        }
    }
}

/* Columns to an array; rows if `turned`. */
static void put(const struct call *call, int array, int64_t ld, const double *x, int64_t rows,
                int64_t columns, int turned)
{
    for (int64_t j = 0; call->array[array] && j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            set(call, array, turned ? j + i * ld : i + j * ld, x[j * rows + i]);
}

/* How many columns of U, or rows of V^T, a job letter asks for. */
static int64_t wanted(int job, int64_t all, int64_t few)
{
    return job == 'A' ? all : job == 'N' ? 0 : few;
}

/* The options U_JOB and V_JOB: A (all), S (as many as there are values), O (in place of A), N (none).
   V is given as rows, V^T, or as columns if VECTORS; K values are given, or all. */
void run_gesvd(const struct call *call)
{
    int64_t m = call->size[M], n = call->size[N], ld = call->size[LDA];
    int flat = m < n; /* decompose the transposed matrix, and exchange U and V */
    int64_t tall = flat ? n : m, few = flat ? m : n;
    double *x = calloc(tall * tall + 1, sizeof(double)), *v = calloc(few * few + 1, sizeof(double));
    double *s = calloc(few + 1, sizeof(double));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            x[flat ? j + i * n : i + j * m] = get(call, A, i + j * ld);
    decompose(x, s, v, tall, few);
    if (call->size[K])
        few = call->size[K]; /* the largest alone */
    for (int64_t k = 0; k < few; k++)
        set(call, W, k, s[k]);
    int u_job = call->option[U_JOB], v_job = call->option[V_JOB];
    const double *u = flat ? v : x, *w = flat ? x : v;
    put(call, u_job == 'O' ? A : B, u_job == 'O' ? ld : call->size[LDB], u, m, wanted(u_job, m, few),
        0);
    put(call, v_job == 'O' ? A : V, v_job == 'O' ? ld : call->size[LDV], w, n, wanted(v_job, n, few),
        !call->option[VECTORS]);
    free(x);
    free(v);
    free(s);
    tell_info(call, 0);
}

/* A triangle becomes its inverse, column by column; IS_UNIT: its diagonal is 1 and not read. */
void run_trtri(const struct call *call)
{
    int64_t n = call->size[N], ld = call->size[LDA];
    int lower = call->option[LOWER], unit = call->option[IS_UNIT];
    double *x = calloc(n * n + 1, sizeof(double));
    for (int64_t j = 0; j < n; j++)
        for (int64_t step = 0; step < n; step++) {
            int64_t i = lower ? step : n - 1 - step;
            double sum = i == j;
            for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++)
                sum -= get(call, A, i + k * ld) * x[k + j * n];
            x[i + j * n] = unit ? sum : sum / get(call, A, i + i * ld);
        }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            if ((lower ? i > j : i < j) || (i == j && !unit))
                set(call, A, i + j * ld, x[i + j * n]);
    free(x);
    tell_info(call, 0);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define SIZE(name, ...) \
    API cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t handle, __VA_ARGS__) \
    { \
        *size = 1; \
        return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED; \
    }
#define JACOBI cusolverEigMode_t mode, int economic, int m, int n
#define FACTORS(S, T, type, named) \
    SIZE(S##geqrf, int m, int n, T *a, int lda, int *size) \
    SIZE(S##named##gqr, int m, int n, int k, const T *a, int lda, const T *tau, int *size) \
    SIZE(S##named##mqr, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, \
         const T *a, int lda, const T *tau, const T *c, int ldc, int *size) \
    SIZE(S##gesvd, int m, int n, int *size) \
    SIZE(S##gesvdj, JACOBI, const T *a, int lda, const T *s, const T *u, int ldu, const T *v, \
         int ldv, int *size, gesvdjInfo_t how) \
    API cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t handle, int m, int n, T *a, \
                                              int lda, T *tau, T *work, int bytes, int *info) \
    { \
        SOLVE(S##geqrf, .run = run_geqrf, .written = a, \
              .array = {[A] = a, [W] = tau, [INFO] = info}, \
              .size = {[N] = n, [M] = m, [LDA] = lda}, .option = {[TYPE] = type}); \
    } \
    API cusolverStatus_t cusolverDn##S##named##gqr(cusolverDnHandle_t handle, int m, int n, int k, \
                                                   T *a, int lda, const T *tau, T *work, int bytes, \
                                                   int *info) \
    { \
        SOLVE(S##named##gqr, .run = run_orgqr, .written = a, \
              .array = {[A] = a, [W] = (T *)tau, [INFO] = info}, \
              .size = {[N] = n, [M] = m, [LDA] = lda, [K] = k}, .option = {[TYPE] = type}); \
    } \
    API cusolverStatus_t cusolverDn##S##named##mqr( \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, \
        const T *a, int lda, const T *tau, T *c, int ldc, T *work, int bytes, int *info) \
    { \
        SOLVE(S##named##mqr, .run = run_ormqr, .written = c, \
              .array = {[A] = (T *)a, [W] = (T *)tau, [INFO] = info, [B] = c}, \
              .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldc, [K] = k}, \
              .option = {[TYPE] = type, [TRANSPOSED] = op != CUBLAS_OP_N, \
                         [RIGHT] = side == CUBLAS_SIDE_RIGHT}); \
    } \
    API cusolverStatus_t cusolverDn##S##gesvd( \
        cusolverDnHandle_t handle, signed char job_u, signed char job_v, int m, int n, T *a, int lda, \
        T *s, T *u, int ldu, T *vt, int ldvt, T *work, int bytes, T *rwork, int *info) \
    { \
        SOLVE(S##gesvd, .run = run_gesvd, .written = s, \
              .array = {[A] = a, [W] = s, [INFO] = info, [B] = u, [V] = vt}, \
              .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldu, [LDV] = ldvt}, \
              .option = {[TYPE] = type, [U_JOB] = job_u, [V_JOB] = job_v}); \
    } \
    API cusolverStatus_t cusolverDn##S##gesvdj( \
        cusolverDnHandle_t handle, JACOBI, T *a, int lda, T *s, T *u, int ldu, T *v, int ldv, \
        T *work, int bytes, int *info, gesvdjInfo_t how) \
    { \
        int job = mode == CUSOLVER_EIG_MODE_NOVECTOR ? 'N' : economic ? 'S' : 'A'; \
        SOLVE(S##gesvdj, .run = run_gesvd, .written = s, \
              .array = {[A] = a, [W] = s, [INFO] = info, [B] = u, [V] = v}, \
              .size = {[N] = n, [M] = m, [LDA] = lda, [LDB] = ldu, [LDV] = ldv}, \
              .option = {[TYPE] = type, [U_JOB] = job, [V_JOB] = job, [VECTORS] = 1}); \
    }
FACTORS(S, float, CUDA_R_32F, or)
FACTORS(D, double, CUDA_R_64F, or)
