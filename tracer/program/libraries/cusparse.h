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

/* Rows (of CSC columns) by where they start, or by a number for each element (COO). */
struct cusparseSpMatDescr {
    int64_t rows, columns, nonzeros;
    const void *major, *minor;
    void *values;
    int major_type, minor_type, base, type, is_coo, is_by_column, fill, diagonal;
};

#endif
