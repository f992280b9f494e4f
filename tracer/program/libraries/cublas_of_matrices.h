/* cuBLAS for one type of elements, continued: matrices and matrices. */

/* C := alpha op(A) op(B) + beta C */
static void OWN(product)(const int64_t *s, const int *op, T alpha, const T *a, const T *b, T beta,
                         T *c)
{
    int64_t m = s[0], n = s[1], k = s[2], lda = s[3], ldb = s[4], ldc = s[5];
    T *rows = op[0] ? malloc(sizeof(T) * (m * k + 1)) : NULL; /* op(A), column by column */
    for (int64_t l = 0; rows && l < k; l++)
        for (int64_t i = 0; i < m; i++)
            rows[i + l * m] = OWN(element)(a, lda, op[0], i, l);
    for (int64_t j = 0; j < n; j++) {
        T *column = c + j * ldc;
        for (int64_t i = 0; i < m; i++)
            column[i] = beta == 0 ? 0 : beta * column[i];
        for (int64_t l = 0; l < k; l++) {
            T by = alpha * OWN(element)(b, ldb, op[1], l, j);
            const T *left = rows ? rows + l * m : a + l * lda;
            for (int64_t i = 0; i < m; i++)
                column[i] += by * left[i];
        }
    }
    free(rows);
}

static void OWN(gemm)(const struct call *call)
{
    const int64_t *s = call->size;
    T alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    for (int64_t number = 0; number < s[9]; number++) {
        T *const *lists[3] = {call->array[0], call->array[1], call->array[2]};
        T *one[3];
        for (int k = 0; k < 3; k++)
            one[k] = call->option[2] ? lists[k][number] : (T *)lists[k] + number * s[6 + k];
        OWN(product)(s, call->option, alpha, one[0], one[1], beta, one[2]);
    }
}

API cublasStatus_t NAME(gemmStridedBatched)(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const TYPE *alpha, const TYPE *a, int lda, long long stridea, const TYPE *b, int ldb,
    long long strideb, const TYPE *beta, TYPE *c, int ldc, long long stridec, int count)
{
    BLAS(TEXT(NAME(gemmStridedBatched)), alpha, beta, c, .run = OWN(gemm),
         .array = {(void *)a, (void *)b, c},
         .size = {m, n, k, lda, ldb, ldc, stridea, strideb, stridec, count}, .option = {opa, opb});
}

API cublasStatus_t NAME(gemm)(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                              int m, int n, int k, const TYPE *alpha, const TYPE *a, int lda,
                              const TYPE *b, int ldb, const TYPE *beta, TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(gemm)), alpha, beta, c, .run = OWN(gemm), .array = {(void *)a, (void *)b, c},
         .size = {m, n, k, lda, ldb, ldc, 0, 0, 0, 1}, .option = {opa, opb});
}

API cublasStatus_t NAME(gemmBatched)(cublasHandle_t handle, cublasOperation_t opa,
                                     cublasOperation_t opb, int m, int n, int k, const TYPE *alpha,
                                     const TYPE *const a[], int lda, const TYPE *const b[], int ldb,
                                     const TYPE *beta, TYPE *const c[], int ldc, int count)
{
    BLAS(TEXT(NAME(gemmBatched)), alpha, beta, c, .run = OWN(gemm),
         .array = {(void *)a, (void *)b, (void *)c},
         .size = {m, n, k, lda, ldb, ldc, 0, 0, 0, count}, .option = {opa, opb, 1});
}

static void OWN(symm)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0], *b = call->array[1];
    T *c = call->array[2], alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    int left = call->option[0] == CUBLAS_SIDE_LEFT, fill = call->option[1];
    for (int64_t j = 0; j < s[1]; j++)
        for (int64_t i = 0; i < s[0]; i++) {
            T sum = 0, *to = c + i + j * s[5];
            for (int64_t l = 0; l < (left ? s[0] : s[1]); l++)
                sum += left ? OWN(symmetric)(a, s[3], fill, i, l) * b[l + j * s[4]]
                            : b[i + l * s[4]] * OWN(symmetric)(a, s[3], fill, l, j);
            *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
        }
}

API cublasStatus_t NAME(symm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                              int m, int n, const TYPE *alpha, const TYPE *a, int lda,
                              const TYPE *b, int ldb, const TYPE *beta, TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(symm)), alpha, beta, c, .run = OWN(symm), .array = {(void *)a, (void *)b, c},
         .size = {m, n, 0, lda, ldb, ldc}, .option = {side, fill});
}

static void OWN(syrk)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0];
    T *c = call->array[1], alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    int lower = call->option[0] == CUBLAS_FILL_MODE_LOWER, op = call->option[1];
    for (int64_t j = 0; j < s[0]; j++)
        for (int64_t i = lower ? j : 0; i < (lower ? s[0] : j + 1); i++) {
            T sum = 0, *to = c + i + j * s[4];
            for (int64_t l = 0; l < s[1]; l++)
                sum += OWN(element)(a, s[3], op, i, l) * OWN(element)(a, s[3], op, j, l);
            *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
        }
}

API cublasStatus_t NAME(syrk)(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                              int n, int k, const TYPE *alpha, const TYPE *a, int lda,
                              const TYPE *beta, TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(syrk)), alpha, beta, c, .run = OWN(syrk), .array = {(void *)a, c},
         .size = {n, k, 0, lda, ldc}, .option = {fill, op});
}

/* B's columns on the left side, its rows on the right one: there of the transpose. */
static void OWN(trm)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *b = call->array[1];
    T *c = call->array[2], alpha = OWN(scalar)(call, 0);
    int left = call->option[3] == CUBLAS_SIDE_LEFT;
    for (int64_t j = 0; j < s[1]; j++)
        for (int64_t i = 0; i < s[0]; i++)
            c[i + j * s[5]] = alpha * b[i + j * s[4]];
    for (int64_t k = 0; k < (left ? s[1] : s[0]); k++)
        OWN(triangle)(call->array[0], s[3], call->option, left ? s[0] : s[1],
                      c + (left ? k * s[5] : k), left ? 1 : s[5], !left, call->option[4]);
}

API cublasStatus_t NAME(trmm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                              cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                              const TYPE *alpha, const TYPE *a, int lda, const TYPE *b, int ldb,
                              TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(trmm)), alpha, NULL, c, .run = OWN(trm), .array = {(void *)a, (void *)b, c},
         .size = {m, n, 0, lda, ldb, ldc}, .option = {fill, op, diagonal, side, 0});
}

API cublasStatus_t NAME(trsm)(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                              cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                              const TYPE *alpha, const TYPE *a, int lda, TYPE *b, int ldb)
{
    BLAS(TEXT(NAME(trsm)), alpha, NULL, b, .run = OWN(trm), .array = {(void *)a, b, b},
         .size = {m, n, 0, lda, ldb, ldb}, .option = {fill, op, diagonal, side, 1});
}

static void OWN(geam)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0], *b = call->array[1];
    T *c = call->array[2], alpha = OWN(scalar)(call, 0), beta = OWN(scalar)(call, 1);
    for (int64_t j = 0; j < s[1]; j++)
        for (int64_t i = 0; i < s[0]; i++) {
            T sum = alpha == 0 ? 0 : alpha * OWN(element)(a, s[3], call->option[0], i, j);
            if (beta != 0)
                sum += beta * OWN(element)(b, s[4], call->option[1], i, j);
            c[i + j * s[5]] = sum;
        }
}

API cublasStatus_t NAME(geam)(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                              int m, int n, const TYPE *alpha, const TYPE *a, int lda,
                              const TYPE *beta, const TYPE *b, int ldb, TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(geam)), alpha, beta, c, .run = OWN(geam), .array = {(void *)a, (void *)b, c},
         .size = {m, n, 0, lda, ldb, ldc}, .option = {opa, opb});
}

static void OWN(dgmm)(const struct call *call)
{
    const int64_t *s = call->size;
    const T *a = call->array[0], *x = call->array[1];
    T *c = call->array[2];
    int left = call->option[0] == CUBLAS_SIDE_LEFT;
    for (int64_t j = 0; j < s[1]; j++)
        for (int64_t i = 0; i < s[0]; i++)
            c[i + j * s[5]] = a[i + j * s[3]]
                              * x[OWN(at)(left ? i : j, left ? s[0] : s[1], s[4])];
}

API cublasStatus_t NAME(dgmm)(cublasHandle_t handle, cublasSideMode_t side, int m, int n,
                              const TYPE *a, int lda, const TYPE *x, int incx, TYPE *c, int ldc)
{
    BLAS(TEXT(NAME(dgmm)), NULL, NULL, c, .run = OWN(dgmm), .array = {(void *)a, (void *)x, c},
         .size = {m, n, 0, lda, incx, ldc}, .option = {side});
}

/* LU in place, each column by its largest element if there are pivots; what is 0 is told in `info`. */
static int OWN(decompose)(int64_t n, T *a, int64_t ld, int *pivots)
{
    int info = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; pivots && i < n; i++)
            if (OWN(size)(a[i + k * ld]) > OWN(size)(a[best + k * ld]))
                best = i;
        if (pivots)
            pivots[k] = best + 1;
        for (int64_t j = 0; best != k && j < n; j++) {
            T held = a[k + j * ld];
            a[k + j * ld] = a[best + j * ld];
            a[best + j * ld] = held;
        }
        if (a[k + k * ld] == 0 && !info)
            info = k + 1;
        for (int64_t i = k + 1; a[k + k * ld] != 0 && i < n; i++) {
            a[i + k * ld] /= a[k + k * ld];
            for (int64_t j = k + 1; j < n; j++)
                a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];
        }
    }
    return info;
}

static void OWN(getrf)(const struct call *call)
{
    const int64_t *s = call->size;
    T *const *a = call->array[0];
    int *pivots = call->array[1], *info = call->array[2];
    for (int64_t number = 0; number < s[1]; number++)
        info[number] = OWN(decompose)(s[0], a[number], s[3], pivots ? pivots + number * s[0] : NULL);
}

API cublasStatus_t NAME(getrfBatched)(cublasHandle_t handle, int n, TYPE *const a[], int lda,
                                      int *pivots, int *info, int count)
{
    BLAS(TEXT(NAME(getrfBatched)), NULL, NULL, a, .run = OWN(getrf),
         .array = {(void *)a, pivots, info}, .size = {n, count, 0, lda});
}

#undef JOIN2
#undef JOIN
#undef NAME
#undef OWN
#undef BLAS
#undef TEXT2
#undef TEXT
#undef LETTER
#undef SMALL_LETTER
#undef REAL_LETTER
#undef T
#undef R
#undef TYPE
#undef COMPLEX
#undef CONJUGATE
