/* cuBLAS for one type of elements: T computes, TYPE is what the interface calls it, R its real. */

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(what) JOIN(JOIN(cublas, LETTER), what)
#define OWN(what) JOIN(JOIN(what, _), LETTER)

#define BLAS(what, alpha, beta, out, ...) \
    struct call call = {.name = what, .written = (void *)(out), __VA_ARGS__}; \
    return submit_blas(handle, &call, alpha, beta, sizeof(T))
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

static T OWN(scalar)(const struct call *call, int number)
{
    T value;
    memcpy(&value, scalar_of(call, number), sizeof value);
    return value;
}

/* Where a vector's element `i` lies: behind the others if the step is negative. */
static int64_t OWN(at)(int64_t i, int64_t n, int64_t step)
{
    return step < 0 ? (i - n + 1) * step : i * step;
}

/* Element (i, j) of op(A). */
static T OWN(element)(const T *a, int64_t ld, int op, int64_t i, int64_t j)
{
    T value = op == CUBLAS_OP_N || op == CUBLAS_OP_CONJG ? a[i + j * ld] : a[j + i * ld];
    return op >= CUBLAS_OP_C ? CONJUGATE(value) : value;
}

/* ---- vectors: size n, incx, incy; arrays x, y */

static void OWN(copy)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0];
    T *y = call->array[1];
    for (int64_t i = 0; i < s[0]; i++)
        y[OWN(at)(i, s[0], s[3])] = x[OWN(at)(i, s[0], s[4])];
}

API cublasStatus_t NAME(copy)(cublasHandle_t handle, int n, const TYPE *x, int incx, TYPE *y,
                              int incy)
{
    BLAS(TEXT(NAME(copy)), NULL, NULL, y, .run = OWN(copy), .array = {(void *)x, y},
         .size = {n, 0, 0, incy, incx});
}

static void OWN(swap)(const struct call *call)
{
    const int64_t *s = call->size;
    T *x = call->array[0], *y = call->array[1];
    for (int64_t i = 0; i < s[0]; i++) {
        T *to = y + OWN(at)(i, s[0], s[3]), *from = x + OWN(at)(i, s[0], s[4]), held = *to;
        *to = *from;
        *from = held;
    }
}

API cublasStatus_t NAME(swap)(cublasHandle_t handle, int n, TYPE *x, int incx, TYPE *y, int incy)
{
    BLAS(TEXT(NAME(swap)), NULL, NULL, y, .run = OWN(swap), .array = {x, y},
         .size = {n, 0, 0, incy, incx});
}

static void OWN(scal)(const struct call *call)
{
    const int64_t *s = call->size;
    T *x = call->array[0], alpha = OWN(scalar)(call, 0);
    for (int64_t i = 0; i < s[0]; i++)
        x[OWN(at)(i, s[0], s[4])] *= alpha;
}

API cublasStatus_t NAME(scal)(cublasHandle_t handle, int n, const TYPE *alpha, TYPE *x, int incx)
{
    BLAS(TEXT(NAME(scal)), alpha, NULL, x, .run = OWN(scal), .array = {x}, .size = {n, 0, 0, 0, incx});
}

static void OWN(axpy)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0];
    T *y = call->array[1], alpha = OWN(scalar)(call, 0);
    for (int64_t i = 0; i < s[0]; i++)
        y[OWN(at)(i, s[0], s[3])] += alpha * x[OWN(at)(i, s[0], s[4])];
}

API cublasStatus_t NAME(axpy)(cublasHandle_t handle, int n, const TYPE *alpha, const TYPE *x,
                              int incx, TYPE *y, int incy)
{
    BLAS(TEXT(NAME(axpy)), alpha, NULL, y, .run = OWN(axpy), .array = {(void *)x, y},
         .size = {n, 0, 0, incy, incx});
}

static void OWN(dot)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0], *y = call->array[1];
    T sum = 0;
    for (int64_t i = 0; i < s[0]; i++) {
        T left = x[OWN(at)(i, s[0], s[4])];
        sum += (call->option[0] ? CONJUGATE(left) : left) * y[OWN(at)(i, s[0], s[3])];
    }
    *(T *)call->array[2] = sum;
}

#define DOT(name, conjugated) \
    API cublasStatus_t NAME(name)(cublasHandle_t handle, int n, const TYPE *x, int incx, \
                                  const TYPE *y, int incy, TYPE *result) \
    { \
        BLAS(TEXT(NAME(name)), NULL, NULL, result, .run = OWN(dot), \
             .array = {(void *)x, (void *)y, result}, .size = {n, 0, 0, incy, incx}, \
             .option = {conjugated}); \
    }
#if COMPLEX
DOT(dotu, 0)
DOT(dotc, 1)
#else
DOT(dot, 0)
#endif
#undef DOT

static R OWN(size)(T value)
{
    return COMPLEX ? fabs(creal(value)) + fabs(cimag(value)) : fabs(creal(value));
}

static void OWN(sums)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0];
    double sum = 0;
    for (int64_t i = 0; s[4] > 0 && i < s[0]; i++) {
        double real = creal(x[i * s[4]]), imaginary = cimag(x[i * s[4]]);
        sum += call->option[0] ? real * real + imaginary * imaginary : OWN(size)(x[i * s[4]]);
    }
    *(R *)call->array[1] = call->option[0] ? sqrt(sum) : sum;
}

static void OWN(extreme)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0];
    int found = 0;
    for (int64_t i = 0; s[4] > 0 && i < s[0]; i++) {
        R one = OWN(size)(x[i * s[4]]), best = found ? OWN(size)(x[(found - 1) * s[4]]) : 0;
        if (!found || (call->option[0] ? one < best : one > best))
            found = i + 1;
    }
    *(int *)call->array[1] = found;
}

#define REDUCE(name, RESULT, what, option0) \
    API cublasStatus_t name(cublasHandle_t handle, int n, const TYPE *x, int incx, RESULT *result) \
    { \
        BLAS(TEXT(name), NULL, NULL, result, .run = OWN(what), .array = {(void *)x, result}, \
             .size = {n, 0, 0, 0, incx}, .option = {option0}); \
    }
REDUCE(JOIN(JOIN(cublas, REAL_LETTER), nrm2), R, sums, 1)
REDUCE(JOIN(JOIN(cublas, REAL_LETTER), asum), R, sums, 0)
REDUCE(JOIN(JOIN(cublasI, SMALL_LETTER), amax), int, extreme, 0)
REDUCE(JOIN(JOIN(cublasI, SMALL_LETTER), amin), int, extreme, 1)
#undef REDUCE

/* ---- a matrix and vectors */

static void OWN(gemv)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0], *x = call->array[1];
    T *y = call->array[2], alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    int op = call->option[0];
    int64_t rows = op ? s[1] : s[0], columns = op ? s[0] : s[1];
    for (int64_t i = 0; i < rows; i++) {
        T sum = 0, *to = y + OWN(at)(i, rows, s[5]);
        for (int64_t j = 0; j < columns; j++)
            sum += OWN(element)(a, s[3], op, i, j) * x[OWN(at)(j, columns, s[4])];
        *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
    }
}

API cublasStatus_t NAME(gemv)(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                              const TYPE *alpha, const TYPE *a, int lda, const TYPE *x, int incx,
                              const TYPE *beta, TYPE *y, int incy)
{
    BLAS(TEXT(NAME(gemv)), alpha, beta, y, .run = OWN(gemv), .array = {(void *)a, (void *)x, y},
         .size = {m, n, 0, lda, incx, incy}, .option = {op});
}

static void OWN(ger)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *x = call->array[0], *y = call->array[1];
    T *a = call->array[2], alpha = OWN(scalar)(call, 0);
    for (int64_t j = 0; j < s[1]; j++) {
        T right = y[OWN(at)(j, s[1], s[5])];
        for (int64_t i = 0; i < s[0]; i++)
            a[i + j * s[3]] += alpha * x[OWN(at)(i, s[0], s[4])]
                               * (call->option[0] ? CONJUGATE(right) : right);
    }
}

#define GER(name, conjugated) \
    API cublasStatus_t NAME(name)(cublasHandle_t handle, int m, int n, const TYPE *alpha, \
                                  const TYPE *x, int incx, const TYPE *y, int incy, TYPE *a, int lda) \
    { \
        BLAS(TEXT(NAME(name)), alpha, NULL, a, .run = OWN(ger), \
             .array = {(void *)x, (void *)y, a}, .size = {m, n, 0, lda, incx, incy}, \
             .option = {conjugated}); \
    }
#if COMPLEX
GER(geru, 0)
GER(gerc, 1)
#else
GER(ger, 0)
#endif
#undef GER

/* Element (i, j) of a symmetric matrix of which one triangle is stored. */
static T OWN(symmetric)(const T *a, int64_t ld, int fill, int64_t i, int64_t j)
{
    int is_stored = fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
    return is_stored ? a[i + j * ld] : a[j + i * ld];
}

static void OWN(symv)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0], *x = call->array[1];
    T *y = call->array[2], alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    for (int64_t i = 0; i < s[0]; i++) {
        T sum = 0, *to = y + OWN(at)(i, s[0], s[5]);
        for (int64_t j = 0; j < s[0]; j++)
            sum += OWN(symmetric)(a, s[3], call->option[0], i, j) * x[OWN(at)(j, s[0], s[4])];
        *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
    }
}

API cublasStatus_t NAME(symv)(cublasHandle_t handle, cublasFillMode_t fill, int n,
                              const TYPE *alpha, const TYPE *a, int lda, const TYPE *x, int incx,
                              const TYPE *beta, TYPE *y, int incy)
{
    BLAS(TEXT(NAME(symv)), alpha, beta, y, .run = OWN(symv), .array = {(void *)a, (void *)x, y},
         .size = {n, 0, 0, lda, incx, incy}, .option = {fill});
}

/* ---- triangles: x := op(A) x, or what solves op(A) x = it; `turned` takes A's transpose of that */

static void OWN(triangle)(const T *a, int64_t ld, const int *option, int64_t n, T *x, int64_t step,
                          int turned, int solves)
{
    int fill = option[0], op = option[1], unit = option[2];
    int lower = (fill == CUBLAS_FILL_MODE_LOWER) ^ (op != CUBLAS_OP_N) ^ turned;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = lower == solves ? k : n - 1 - k;
        T *own = x + OWN(at)(i, n, step), sum = 0, diagonal = OWN(element)(a, ld, op, i, i);
        for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++)
            sum += (turned ? OWN(element)(a, ld, op, j, i) : OWN(element)(a, ld, op, i, j))
                   * x[OWN(at)(j, n, step)];
        if (solves)
            *own = unit ? *own - sum : (*own - sum) / diagonal;
        else
            *own = (unit ? *own : diagonal * *own) + sum;
    }
}

static void OWN(trv)(const struct call *call)
{
    const int64_t *s = call->size;
    OWN(triangle)(call->array[0], s[3], call->option, s[0], call->array[1], s[4], 0, call->option[3]);
}

#define TRIANGLE(name, solves) \
    API cublasStatus_t NAME(name)(cublasHandle_t handle, cublasFillMode_t fill, \
                                  cublasOperation_t op, cublasDiagType_t diagonal, int n, \
                                  const TYPE *a, int lda, TYPE *x, int incx) \
    { \
        BLAS(TEXT(NAME(name)), NULL, NULL, x, .run = OWN(trv), .array = {(void *)a, x}, \
             .size = {n, 0, 0, lda, incx}, .option = {fill, op, diagonal, solves}); \
    }
TRIANGLE(trmv, 0)
TRIANGLE(trsv, 1)
#undef TRIANGLE
