/* What the files of cuSPARSE share. */

#ifndef CUTRACE_CUSPARSE_H
#define CUTRACE_CUSPARSE_H

#include "library.h"

#include "include/cusparse.h"

struct cusparseContext {
    cudaStream_t stream;
    cusparsePointerMode_t mode;
};
struct cusparseMatDescr {
    int type;
};
struct cusparseDnVecDescr {
    int64_t n;
    void *values;
    int type;
};
struct cusparseDnMatDescr {
    int64_t rows, columns, ld;
    void *values;
    int type, order;
};
struct cusparseSpSVDescr {
    int unused;
};
struct cusparseSpVecDescr {
    int64_t n, nonzeros;
    const void *indices;
    void *values;
    int index_type, base, type;
};

/* Rows (of CSC columns) by where they start, or by a number for each element (COO). */
struct cusparseSpMatDescr {
    int64_t rows, columns, nonzeros;
    const void *major, *minor;
    void *values;
    int major_type, minor_type, base, type, is_coo, is_by_column, fill, diagonal;
    int64_t block, ell_columns; /* of blocked ELL: `minor` are columns of blocks, -1 for none */
};

/* A product of sparse matrices between the calls that make it: rows, columns and values. */
struct cusparseSpGEMMDescr {
    int64_t rows, nonzeros, *starts, *columns;
    double *values;
};

/* The descriptors that a call was given, as they were then: graphs run later. */
struct operands {
    struct cusparseSpMatDescr a, d;
    struct cusparseDnMatDescr b, c;
    struct cusparseSpVecDescr x;
};

/* The elements of a matrix, one after the other: `at` counts them. */
struct walk {
    const struct cusparseSpMatDescr *matrix;
    int is_turned;
    int64_t at, line, row, column;
    double value;
};

int next_element(struct walk *walk);
int64_t index_of(const void *array, int type, int64_t at);
void set_index(const void *array, int type, int64_t at, int64_t value);
int64_t dense_place(const struct cusparseDnMatDescr *b, int is_turned, int64_t i, int64_t j);

/* Have a call run in its turn, with its own copy of its operands in array[0]. */
cusparseStatus_t submit_operands(cusparseHandle_t handle, struct call *call,
                                 const struct operands *operands);
/* The same with scalars of the type `compute`, which has to be real. */
cusparseStatus_t submit_sparse(cusparseHandle_t handle, struct call *call,
                               const struct operands *operands, const void *alpha,
                               const void *beta, int compute);
double sparse_scalar(const struct call *call, int number);
cusparseStatus_t need_little(size_t *bytes);

#endif
