/* cuSPARSE's handles and descriptors: what they hold is all in the program. */

#include "cusparse.h"

#define OK CUSPARSE_STATUS_SUCCESS

PROPERTY(cusparse, CUSPARSE, Stream, cudaStream_t, stream)
PROPERTY(cusparse, CUSPARSE, PointerMode, cusparsePointerMode_t, mode)

/* What the old descriptors say is for calls that are refused. */
#define SETTING(name, T) \
    API cusparseStatus_t name(cusparseMatDescr_t matrix, T value) \
    { \
        (void)value; \
        return matrix ? OK : CUSPARSE_STATUS_INVALID_VALUE; \
    }
SETTING(cusparseSetMatType, cusparseMatrixType_t)
SETTING(cusparseSetMatIndexBase, cusparseIndexBase_t)
SETTING(cusparseSetMatFillMode, cusparseFillMode_t)
SETTING(cusparseSetMatDiagType, cusparseDiagType_t)

#define DESTROY(name, T) \
    API cusparseStatus_t name(T what) \
    { \
        free((void *)what); \
        return OK; \
    }
DESTROY(cusparseDestroy, cusparseHandle_t)
DESTROY(cusparseDestroyMatDescr, cusparseMatDescr_t)
DESTROY(cusparseDestroyDnVec, cusparseConstDnVecDescr_t)
DESTROY(cusparseDestroyDnMat, cusparseConstDnMatDescr_t)
DESTROY(cusparseDestroySpMat, cusparseConstSpMatDescr_t)
DESTROY(cusparseSpSV_destroyDescr, cusparseSpSVDescr_t)
DESTROY(cusparseSpSM_destroyDescr, cusparseSpSMDescr_t)

static cusparseStatus_t create(cusparseSpMatDescr_t *made, struct cusparseSpMatDescr matrix)
{
    *made = malloc(sizeof **made);
    **made = matrix;
    return OK;
}

API cusparseStatus_t cusparseCreateBlockedEll(cusparseSpMatDescr_t *matrix, int64_t rows,
                                              int64_t columns, int64_t block, int64_t ell_columns,
                                              void *indices, void *values,
                                              cusparseIndexType_t index_type,
                                              cusparseIndexBase_t base, cudaDataType type)
{
    if (block < 1 || ell_columns < 0 || rows % block || columns % block || ell_columns % block)
        return CUSPARSE_STATUS_INVALID_VALUE;
    return create(matrix, (struct cusparseSpMatDescr){rows, columns, rows * ell_columns, NULL, indices,
                                                      values, index_type, index_type, base, type, 0,
                                                      0, 0, 0, block, ell_columns});
}

#define SET_POINTERS(name) \
    API cusparseStatus_t name(cusparseSpMatDescr_t matrix, void *major, void *minor, void *values) \
    { \
        matrix->major = major, matrix->minor = minor, matrix->values = values; \
        return OK; \
    }
SET_POINTERS(cusparseCsrSetPointers)
SET_POINTERS(cusparseCscSetPointers)
SET_POINTERS(cusparseCooSetPointers)

#define NAMES(NAME) \
    NAME(SUCCESS) NAME(NOT_INITIALIZED) NAME(ALLOC_FAILED) NAME(INVALID_VALUE) NAME(ARCH_MISMATCH) \
    NAME(MAPPING_ERROR) NAME(EXECUTION_FAILED) NAME(INTERNAL_ERROR) \
    NAME(MATRIX_TYPE_NOT_SUPPORTED) NAME(ZERO_PIVOT) NAME(NOT_SUPPORTED) \
    NAME(INSUFFICIENT_RESOURCES)

API const char *cusparseGetErrorName(cusparseStatus_t status)
{
    switch (status) {
#define NAME(name) case CUSPARSE_STATUS_##name: return "CUSPARSE_STATUS_" #name;
        NAMES(NAME)
#undef NAME
    }
    return "unknown";
}

#include "forwards_libraries_cusparse_handle.h"
