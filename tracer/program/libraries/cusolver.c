/* cuSOLVER on the host: factors of Cholesky and LU, eigenvalues by Jacobi's rotations, in double. */

#include <math.h>

#include "cusolver.h"

cusolverStatus_t solve(cusolverDnHandle_t handle, const struct call *call)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    int64_t rows = call->option[RIGHT] ? call->size[N] : call->size[M];
    if (call->size[N] < 0 || call->size[LDA] < rows)
        return CUSOLVER_STATUS_INVALID_VALUE;
    return submit_call(handle->stream, call) ? CUSOLVER_STATUS_EXECUTION_FAILED
                                             : CUSOLVER_STATUS_SUCCESS;
}

void tell_info(const struct call *call, int value)
{
    if (call->array[INFO])
        *(int *)call->array[INFO] = value;
}

/* Where element (i, j) of the triangle L of A lies: A is L L^T, or U^T U with U = L^T. */
static int64_t in_factor(const struct call *call, int64_t i, int64_t j)
{
    return call->option[LOWER] ? i + j * call->size[LDA] : j + i * call->size[LDA];
}

void run_potrf(const struct call *call)
{
    for (int64_t j = 0; j < call->size[N]; j++)
        for (int64_t i = j; i < call->size[N]; i++) {
            double sum = get(call, A, in_factor(call, i, j));
            for (int64_t k = 0; k < j; k++)
                sum -= get(call, A, in_factor(call, i, k)) * get(call, A, in_factor(call, j, k));
            if (i == j && !(sum > 0)) { /* the leading minor of this order is not positive */
                tell_info(call, j + 1);
                return;
            }
            sum = i == j ? sqrt(sum) : sum / get(call, A, in_factor(call, j, j));
            set(call, A, in_factor(call, i, j), sum);
        }
    tell_info(call, 0);
}

void run_potrs(const struct call *call)
{
    int64_t n = call->size[N];
    for (int64_t c = 0; c < call->size[NUMBER]; c++) {
        int64_t column = c * call->size[LDB];
        for (int64_t i = 0; i < n; i++) {
            double sum = get(call, B, column + i);
            for (int64_t k = 0; k < i; k++)
                sum -= get(call, A, in_factor(call, i, k)) * get(call, B, column + k);
            set(call, B, column + i, sum / get(call, A, in_factor(call, i, i)));
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            double sum = get(call, B, column + i);
            for (int64_t k = i + 1; k < n; k++)
                sum -= get(call, A, in_factor(call, k, i)) * get(call, B, column + k);
            set(call, B, column + i, sum / get(call, A, in_factor(call, i, i)));
        }
    }
    tell_info(call, 0);
}

static void swap(const struct call *call, int array, int64_t i, int64_t j)
{
    double first = get(call, array, i);
    set(call, array, i, get(call, array, j));
    set(call, array, j, first);
}

void run_getrf(const struct call *call)
{
    int64_t m = call->size[M], n = call->size[N], ld = call->size[LDA];
    void *pivots = call->array[PIVOTS];
    int singular = 0;
    for (int64_t k = 0; k < m && k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; pivots && i < m; i++)
            if (fabs(get(call, A, i + k * ld)) > fabs(get(call, A, best + k * ld)))
                best = i;
        if (pivots)
            set_element(pivots, call->option[WIDE] ? CUDA_R_64I : CUDA_R_32I, k, best + 1);
        for (int64_t j = 0; best != k && j < n; j++)
            swap(call, A, k + j * ld, best + j * ld);
        double pivot = get(call, A, k + k * ld);
        if (pivot == 0 && !singular)
            singular = k + 1;
        for (int64_t i = k + 1; pivot != 0 && i < m; i++) {
            double factor = get(call, A, i + k * ld) / pivot;
            set(call, A, i + k * ld, factor);
            for (int64_t j = k + 1; j < n; j++)
                set(call, A, i + j * ld,
                    get(call, A, i + j * ld) - factor * get(call, A, k + j * ld));
        }
    }
    tell_info(call, singular);
}

static void exchange_rows(const struct call *call, int64_t column, int backwards)
{
    const void *pivots = call->array[PIVOTS];
    int64_t n = pivots ? call->size[N] : 0, type = call->option[WIDE] ? CUDA_R_64I : CUDA_R_32I;
    for (int64_t step = 0; step < n; step++) {
        int64_t k = backwards ? n - 1 - step : step;
        swap(call, B, column + k, column + (int64_t)element_of(pivots, type, k) - 1);
    }
}

/* One triangle of LU, or of its transpose: `upper` is how it lies in what is solved. */
static void substitute(const struct call *call, int64_t column, int upper, int is_unit)
{
    int64_t n = call->size[N], ld = call->size[LDA];
    for (int64_t step = 0; step < n; step++) {
        int64_t i = upper ? n - 1 - step : step;
        double sum = get(call, B, column + i);
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++)
            sum -= get(call, A, call->option[TRANSPOSED] ? k + i * ld : i + k * ld) *
                   get(call, B, column + k);
        set(call, B, column + i, is_unit ? sum : sum / get(call, A, i + i * ld));
    }
}

void run_getrs(const struct call *call)
{
    for (int64_t c = 0; c < call->size[NUMBER]; c++) {
        int64_t column = c * call->size[LDB];
        if (!call->option[TRANSPOSED])
            exchange_rows(call, column, 0);
        substitute(call, column, 0, !call->option[TRANSPOSED]);
        substitute(call, column, 1, call->option[TRANSPOSED]);
        if (call->option[TRANSPOSED])
            exchange_rows(call, column, 1);
    }
    tell_info(call, 0);
}

/* One rotation of rows and columns p and q that makes a[p][q] zero; v collects them. */
static void rotate(double *a, double *v, int64_t n, int64_t p, int64_t q)
{
    if (a[p * n + q] == 0)
        return;
    double angle = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    double t = (angle < 0 ? -1 : 1) / (fabs(angle) + sqrt(1 + angle * angle));
    double c = 1 / sqrt(1 + t * t), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        x = v[p * n + k], y = v[q * n + k]; /* row p of v is eigenvector p */
        v[p * n + k] = c * x - s * y;
        v[q * n + k] = s * x + c * y;
    }
}

static double beside_diagonal(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        sum += i % (n + 1) ? a[i] * a[i] : 0;
    return sum;
}

static void find_eigenvalues(const struct call *call, int64_t number, double *a, double *v)
{
    int64_t n = call->size[N], ld = call->size[LDA], first = number * n * ld;
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t row = call->option[LOWER] == (i > j) ? i : j, column = row == i ? j : i;
            a[i * n + j] = get(call, A, first + row + column * ld);
            v[i * n + j] = i == j;
            all += a[i * n + j] * a[i * n + j];
        }
    for (int sweep = 0; sweep < 100 && beside_diagonal(a, n) > 1e-30 * all; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                rotate(a, v, n, p, q);
    for (int64_t k = 0; k < n; k++) { /* the least that is left, by its place on the diagonal */
        int64_t least = k;
        for (int64_t i = k + 1; i < n; i++)
            if (a[i * n + i] < a[least * n + least])
                least = i;
        double value = a[least * n + least];
        a[least * n + least] = a[k * n + k];
        set(call, W, number * n + k, value);
        for (int64_t i = 0; i < n; i++) {
            double x = v[least * n + i];
            v[least * n + i] = v[k * n + i];
            v[k * n + i] = x;
            if (call->option[VECTORS])
                set(call, A, first + i + k * ld, x);
        }
    }
}

void run_syev(const struct call *call)
{
    int64_t n = call->size[N];
    double *a = malloc(sizeof(double) * (n * n + 1)), *v = malloc(sizeof(double) * (n * n + 1));
    for (int64_t number = 0; a && v && number < call->size[NUMBER]; number++) {
        find_eigenvalues(call, number, a, v);
        if (call->array[INFO])
            ((int *)call->array[INFO])[number] = 0;
    }
    free(a);
    free(v);
}

static cusolverStatus_t need(cusolverDnHandle_t handle, int *size)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    *size = 1; /* what is computed on the host needs no memory of the program's */
    return CUSOLVER_STATUS_SUCCESS;
}

/* How far Jacobi's rotations go is not the program's choice here. */
#define SETTING(what, Name, T) \
    API cusolverStatus_t cusolverDnX##what##Set##Name(what##Info_t info, T value) \
    { \
        (void)value; \
        return info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE; \
    }
#define SETTINGS(What, what) \
    API cusolverStatus_t cusolverDnCreate##What##Info(what##Info_t *info) \
    { \
        *info = calloc(1, sizeof(int)); \
        return CUSOLVER_STATUS_SUCCESS; \
    } \
    API cusolverStatus_t cusolverDnDestroy##What##Info(what##Info_t info) \
    { \
        free(info); \
        return CUSOLVER_STATUS_SUCCESS; \
    } \
    SETTING(what, Tolerance, double) \
    SETTING(what, MaxSweeps, int) \
    SETTING(what, SortEig, int)
SETTINGS(Syevj, syevj)
SETTINGS(Gesvdj, gesvdj)

#define SIZE(name, ...) \
    API cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t handle, __VA_ARGS__) \
    { \
        return need(handle, size); \
    }
#define EIGENVALUES(what, T, type, number) \
    SOLVE(what, .run = run_syev, .written = w, .array = {[A] = a, [W] = w, [INFO] = info}, \
          .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = number}, \
          .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER, [VECTORS] = mode})
#define EIGEN cusolverEigMode_t mode, cublasFillMode_t fill, int n

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define SOLVERS(S, T, type) \
    SIZE(S##potrf, cublasFillMode_t fill, int n, T *a, int lda, int *size) \
    SIZE(S##getrf, int m, int n, T *a, int lda, int *size) \
    SIZE(S##syevd, EIGEN, const T *a, int lda, const T *w, int *size) \
    SIZE(S##syevj, EIGEN, const T *a, int lda, const T *w, int *size, syevjInfo_t how) \
    SIZE(S##syevjBatched, EIGEN, const T *a, int lda, const T *w, int *size, syevjInfo_t how, \
         int count) \
    API cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t handle, cublasFillMode_t fill, \
                                              int n, T *a, int lda, T *work, int bytes, int *info) \
    { \
        SOLVE(S##potrf, .run = run_potrf, .written = a, .array = {[A] = a, [INFO] = info}, \
              .size = {[N] = n, [M] = n, [LDA] = lda}, \
              .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER}); \
    } \
    API cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t handle, cublasFillMode_t fill, \
                                              int n, int count, const T *a, int lda, T *b, int ldb, \
                                              int *info) \
    { \
        SOLVE(S##potrs, .run = run_potrs, .written = b, \
              .array = {[A] = (T *)a, [INFO] = info, [B] = b}, \
              .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb}, \
              .option = {[TYPE] = type, [LOWER] = fill == CUBLAS_FILL_MODE_LOWER}); \
    } \
    API cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t handle, int m, int n, T *a, int lda, \
                                              T *work, int *pivots, int *info) \
    { \
        SOLVE(S##getrf, .run = run_getrf, .written = a, \
              .array = {[A] = a, [INFO] = info, [PIVOTS] = pivots}, \
              .size = {[N] = n, [M] = m, [LDA] = lda}, .option = {[TYPE] = type}); \
    } \
    API cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t handle, cublasOperation_t op, int n, \
                                              int count, const T *a, int lda, const int *pivots, \
                                              T *b, int ldb, int *info) \
    { \
        SOLVE(S##getrs, .run = run_getrs, .written = b, \
              .array = {[A] = (T *)a, [INFO] = info, [PIVOTS] = (int *)pivots, [B] = b}, \
              .size = {[N] = n, [M] = n, [LDA] = lda, [NUMBER] = count, [LDB] = ldb}, \
              .option = {[TYPE] = type, [TRANSPOSED] = op != CUBLAS_OP_N}); \
    } \
    API cusolverStatus_t cusolverDn##S##syevd(cusolverDnHandle_t handle, EIGEN, T *a, int lda, T *w, \
                                              T *work, int bytes, int *info) \
    { \
        EIGENVALUES(S##syevd, T, type, 1); \
    } \
    API cusolverStatus_t cusolverDn##S##syevj(cusolverDnHandle_t handle, EIGEN, T *a, int lda, T *w, \
                                              T *work, int bytes, int *info, syevjInfo_t how) \
    { \
        EIGENVALUES(S##syevj, T, type, 1); \
    } \
    API cusolverStatus_t cusolverDn##S##syevjBatched(cusolverDnHandle_t handle, EIGEN, T *a, int lda, \
                                                     T *w, T *work, int bytes, int *info, \
                                                     syevjInfo_t how, int count) \
    { \
        EIGENVALUES(S##syevjBatched, T, type, count); \
    }
SOLVERS(S, float, CUDA_R_32F)
SOLVERS(D, double, CUDA_R_64F)

#include "forwards_libraries_cusolver.h"
