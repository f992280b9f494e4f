/* cuSPARSE on the host: products whose result is sparse, and sparse vectors. */

#include "cusparse.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- a product of dense matrices where a sparse one has elements */

static void run_sampled(const struct call *call)
{
    const struct operands *on = call->array[0];
    int turned = call->option[0];
    int64_t inner = turned ? on->b.rows : on->b.columns;
    struct walk walk = {.matrix = &on->d};
    while (next_element(&walk)) {
        double sum = 0, beta = sparse_scalar(call, 1);
        for (int64_t k = 0; k < inner; k++)
            sum += element_of(on->b.values, on->b.type, dense_place(&on->b, turned, walk.row, k)) *
                   element_of(on->c.values, on->c.type,
                              dense_place(&on->c, call->option[1], k, walk.column));
        double old = beta == 0 ? 0 : beta * walk.value;
        set_element(on->d.values, on->d.type, walk.at - 1, sparse_scalar(call, 0) * sum + old);
    }
}

/* ---- a product of sparse matrices: its size is known when it is computed, then it is copied */

static void empty(struct cusparseSpGEMMDescr *product)
{
    free(product->starts), free(product->columns), free(product->values);
    memset(product, 0, sizeof *product);
}

static void push(struct cusparseSpGEMMDescr *product, int64_t column, double value)
{
    int64_t at = product->nonzeros++;
    if (!(at & (at - 1))) { /* room for twice as many at each power of two */
        product->columns = realloc(product->columns, 2 * (at + 1) * sizeof *product->columns);
        product->values = realloc(product->values, 2 * (at + 1) * sizeof *product->values);
        if (!product->columns || !product->values)
            abort();
    }
    product->columns[at] = column;
    product->values[at] = value;
}

/* Row by row of both: a row of sums, and which of it were met. Both are by rows. */
static void multiply_sparse(const struct cusparseSpMatDescr *a, const struct cusparseSpMatDescr *b,
                            struct cusparseSpGEMMDescr *product)
{
    double *sums = calloc(b->columns + 1, sizeof *sums);
    char *met = calloc(b->columns + 1, 1);
    empty(product);
    product->rows = a->rows;
    product->starts = calloc(a->rows + 2, sizeof *product->starts);
    if (!sums || !met || !product->starts)
        abort();
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t last = index_of(a->major, a->major_type, i + 1) - a->base;
        for (int64_t k = index_of(a->major, a->major_type, i) - a->base; k < last; k++) {
            int64_t row = index_of(a->minor, a->minor_type, k) - a->base;
            double factor = element_of(a->values, a->type, k);
            int64_t end = index_of(b->major, b->major_type, row + 1) - b->base;
            for (int64_t l = index_of(b->major, b->major_type, row) - b->base; l < end; l++) {
                int64_t column = index_of(b->minor, b->minor_type, l) - b->base;
                sums[column] += factor * element_of(b->values, b->type, l);
                met[column] = 1;
            }
        }
        for (int64_t column = 0; column < b->columns; column++)
            if (met[column]) {
                push(product, column, sums[column]);
                sums[column] = met[column] = 0;
            }
        product->starts[i + 1] = product->nonzeros;
    }
    free(sums), free(met);
}

static int is_plain(const struct cusparseSpMatDescr *matrix, cusparseOperation_t op)
{
    return op == CUSPARSE_OPERATION_NON_TRANSPOSE && !matrix->is_coo && !matrix->is_by_column;
}

API cusparseStatus_t cusparseSpGEMM_compute(
    cusparseHandle_t handle, cusparseOperation_t opa, cusparseOperation_t opb, const void *alpha,
    cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b, const void *beta,
    cusparseSpMatDescr_t c, cudaDataType compute, cusparseSpGEMMAlg_t algorithm,
    cusparseSpGEMMDescr_t descriptor, size_t *bytes, void *buffer)
{
    if (!buffer)
        return need_little(bytes);
    if (!is_plain(a, opa) || !is_plain(b, opb))
        return refuse_call("cusparseSpGEMM of matrices that are not CSR, or turned",
                           CUSPARSE_STATUS_NOT_SUPPORTED);
    multiply_sparse(a, b, descriptor);
    c->nonzeros = descriptor->nonzeros;
    return CUSPARSE_STATUS_SUCCESS;
}

static void run_store(const struct call *call)
{
    const struct operands *on = call->array[0];
    const struct cusparseSpGEMMDescr *product = call->array[1];
    double alpha = sparse_scalar(call, 0), beta = sparse_scalar(call, 1);
    for (int64_t i = 0; i <= product->rows; i++)
        set_index(on->d.major, on->d.major_type, i, product->starts[i] + on->d.base);
    for (int64_t k = 0; k < product->nonzeros; k++) {
        double old = beta == 0 ? 0 : beta * element_of(on->d.values, on->d.type, k);
        set_index(on->d.minor, on->d.minor_type, k, product->columns[k] + on->d.base);
        set_element(on->d.values, on->d.type, k, alpha * product->values[k] + old);
    }
}

/* ---- sparse vectors */

/* The place in a dense vector of element k of a sparse one. */
static int64_t spot_of(const struct cusparseSpVecDescr *x, int64_t k)
{
    return index_of(x->indices, x->index_type, k) - x->base;
}

static void run_gather(const struct call *call)
{
    const struct operands *on = call->array[0];
    size_t bytes = bytes_of(on->x.type);
    for (int64_t k = 0; k < on->x.nonzeros; k++) {
        char *sparse = (char *)on->x.values + k * bytes;
        char *dense = (char *)on->c.values + spot_of(&on->x, k) * bytes;
        if (call->option[0])
            memcpy(dense, sparse, bytes);
        else
            memcpy(sparse, dense, bytes);
    }
}

static void run_add(const struct call *call)
{
    const struct operands *on = call->array[0];
    const struct cusparseDnMatDescr *y = &on->c;
    double alpha = sparse_scalar(call, 0), beta = sparse_scalar(call, 1);
    for (int64_t i = 0; i < y->rows; i++)
        set_element(y->values, y->type, i, beta == 0 ? 0 : beta * element_of(y->values, y->type, i));
    for (int64_t k = 0; k < on->x.nonzeros; k++) {
        int64_t to = spot_of(&on->x, k);
        double more = alpha * element_of(on->x.values, on->x.type, k);
        set_element(y->values, y->type, to, element_of(y->values, y->type, to) + more);
    }
}

static void run_dot(const struct call *call)
{
    const struct operands *on = call->array[0];
    double sum = 0;
    for (int64_t k = 0; k < on->x.nonzeros; k++)
        sum += element_of(on->x.values, on->x.type, k) *
               element_of(on->c.values, on->c.type, spot_of(&on->x, k));
    set_element(call->array[1], call->option[3], 0, sum);
}

#include "forwards_libraries_cusparse_products.h"
