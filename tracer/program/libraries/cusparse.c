/* cuSPARSE on the host: a sparse matrix times vectors and matrices, and triangles solved, of reals.
   Sums are made in double precision, whatever the type of the values. */

#include "cusparse.h"

int64_t index_of(const void *array, int type, int64_t at)
{
    return type == CUSPARSE_INDEX_64I ? ((const int64_t *)array)[at] : ((const int32_t *)array)[at];
}

void set_index(const void *array, int type, int64_t at, int64_t value)
{
    if (type == CUSPARSE_INDEX_64I)
        ((int64_t *)array)[at] = value;
    else
        ((int32_t *)array)[at] = value;
}

/* The column at place `at` of blocked ELL, whose rows are `ell_columns` long; -1 for padding. */
static int64_t ell_column(const struct cusparseSpMatDescr *a, int64_t at)
{
    int64_t row = at / a->ell_columns, place = at % a->ell_columns;
    int64_t first = row / a->block * (a->ell_columns / a->block);
    int64_t column = index_of(a->minor, a->minor_type, first + place / a->block);
    return column < 0 ? -1 : (column - a->base) * a->block + place % a->block;
}

static int next_of_ell(struct walk *walk)
{
    const struct cusparseSpMatDescr *a = walk->matrix;
    while (walk->at < a->nonzeros && ell_column(a, walk->at) < 0)
        walk->at++;
    if (walk->at >= a->nonzeros)
        return 0;
    int64_t row = walk->at / a->ell_columns, column = ell_column(a, walk->at);
    walk->row = walk->is_turned ? column : row;
    walk->column = walk->is_turned ? row : column;
    walk->value = element_of(a->values, a->type, walk->at++);
    return 1;
}

int next_element(struct walk *walk)
{
    const struct cusparseSpMatDescr *a = walk->matrix;
    if (a->block)
        return next_of_ell(walk);
    if (walk->at >= a->nonzeros)
        return 0;
    int64_t line;
    if (a->is_coo) {
        line = index_of(a->major, a->major_type, walk->at) - a->base;
    } else {
        while (index_of(a->major, a->major_type, walk->line + 1) - a->base <= walk->at)
            walk->line++;
        line = walk->line;
    }
    int64_t other = index_of(a->minor, a->minor_type, walk->at) - a->base;
    int is_swapped = a->is_by_column ^ walk->is_turned;
    walk->row = is_swapped ? other : line;
    walk->column = is_swapped ? line : other;
    walk->value = element_of(a->values, a->type, walk->at++);
    return 1;
}

static double *zeros(int64_t count)
{
    return calloc(count + 1, sizeof(double));
}

/* ---- products: vectors are matrices of one column */

int64_t dense_place(const struct cusparseDnMatDescr *b, int is_turned, int64_t i, int64_t j)
{
    if ((b->order == CUSPARSE_ORDER_ROW) ^ is_turned)
        return i * b->ld + j;
    return i + j * b->ld;
}

static void multiply(const struct cusparseSpMatDescr *a, int turned_a,
                     const struct cusparseDnMatDescr *b, int turned_b,
                     const struct cusparseDnMatDescr *c, double alpha, double beta)
{
    double *sums = zeros(c->rows * c->columns);
    struct walk walk = {.matrix = a, .is_turned = turned_a};
    while (sums && next_element(&walk))
        for (int64_t j = 0; j < c->columns; j++)
            sums[walk.row * c->columns + j] +=
                walk.value * element_of(b->values, b->type, dense_place(b, turned_b, walk.column, j));
    for (int64_t i = 0; sums && i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            int64_t to = dense_place(c, 0, i, j);
            double old = beta == 0 ? 0 : beta * element_of(c->values, c->type, to);
            set_element(c->values, c->type, to, alpha * sums[i * c->columns + j] + old);
        }
    free(sums);
}

static struct cusparseDnMatDescr column_of(const struct cusparseDnVecDescr *x)
{
    return (struct cusparseDnMatDescr){x->n, 1, x->n, x->values, x->type, CUSPARSE_ORDER_COL};
}

double sparse_scalar(const struct call *call, int number)
{
    return element_of(scalar_of(call, number), call->option[3], 0);
}

static void run_product(const struct call *call)
{
    const struct operands *on = call->array[0];
    multiply(&on->a, call->option[0], &on->b, call->option[1], &on->c, sparse_scalar(call, 0),
             sparse_scalar(call, 1));
}

/* The elements sorted by their rows: those of row i are from starts[i] to starts[i + 1]. */
static struct walk *sorted_by_row(const struct cusparseSpMatDescr *a, int turned, int64_t *starts)
{
    struct walk *all = calloc(a->nonzeros + 1, sizeof *all);
    int64_t *next = calloc(a->rows + 2, sizeof *next);
    struct walk walk = {.matrix = a, .is_turned = turned}, again = walk;
    while (all && next && next_element(&walk))
        starts[walk.row + 1]++;
    for (int64_t i = 0; i < a->rows; i++)
        starts[i + 1] += starts[i];
    if (next)
        memcpy(next, starts, sizeof *next * a->rows);
    while (all && next && next_element(&again))
        all[next[again.row]++] = again;
    free(next);
    return all;
}

/* A column of the unknowns of a triangular matrix whose rows are sorted. */
static void solve_column(const struct call *call, const struct walk *all, const int64_t *starts,
                         int64_t j, double *solved)
{
    const struct operands *on = call->array[0];
    int64_t n = on->a.rows;
    int lower = (on->a.fill == CUSPARSE_FILL_MODE_LOWER) ^ call->option[0];
    for (int64_t step = 0; step < n; step++) {
        int64_t i = lower ? step : n - 1 - step, from = dense_place(&on->b, call->option[1], i, j);
        double sum = sparse_scalar(call, 0) * element_of(on->b.values, on->b.type, from);
        double diagonal = 1;
        for (int64_t k = starts[i]; k < starts[i + 1]; k++)
            if (all[k].column == i)
                diagonal = all[k].value;
            else if (lower ? all[k].column < i : all[k].column > i)
                sum -= all[k].value * solved[all[k].column];
        solved[i] = on->a.diagonal == CUSPARSE_DIAG_TYPE_UNIT ? sum : sum / diagonal;
        set_element(on->c.values, on->c.type, dense_place(&on->c, 0, i, j), solved[i]);
    }
}

static void run_solve(const struct call *call)
{
    const struct operands *on = call->array[0];
    int64_t n = on->a.rows, *starts = calloc(n + 2, sizeof *starts);
    double *solved = zeros(n);
    struct walk *all = sorted_by_row(&on->a, call->option[0], starts);
    for (int64_t j = 0; j < on->c.columns; j++)
        solve_column(call, all, starts, j, solved);
    free(solved), free(starts), free(all);
}

/* ---- calls */

cusparseStatus_t submit_operands(cusparseHandle_t handle, struct call *call,
                                 const struct operands *operands)
{
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    struct operands *kept = malloc(sizeof *kept); /* it stays, for a graph may run it again */
    if (!kept)
        return CUSPARSE_STATUS_ALLOC_FAILED;
    *kept = *operands;
    call->array[0] = kept;
    int status = submit_call(handle->stream, call);
    if (!capturing(handle->stream))
        free(kept);
    return status ? CUSPARSE_STATUS_EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t submit_sparse(cusparseHandle_t handle, struct call *call,
                               const struct operands *operands, const void *alpha,
                               const void *beta, int compute)
{
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (compute != CUDA_R_32F && compute != CUDA_R_64F)
        return refuse_call("cuSPARSE of complex or half numbers", CUSPARSE_STATUS_NOT_SUPPORTED);
    if (!call->written)
        call->written = operands->c.values;
    call->option[3] = compute;
    int now = handle->mode == CUSPARSE_POINTER_MODE_HOST;
    hold_scalar(call, 0, alpha, bytes_of(compute), now);
    hold_scalar(call, 1, beta, bytes_of(compute), now);
    return submit_operands(handle, call, operands);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"

cusparseStatus_t need_little(size_t *bytes)
{
    *bytes = 256; /* a program that allocates so many has no NULL to wonder about */
    return CUSPARSE_STATUS_SUCCESS;
}

#include "forwards_libraries_cusparse.h"
