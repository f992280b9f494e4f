/* cuSPARSE's handles and descriptors: what they hold is all in the program. */

#include <stdlib.h>

#include "cusparse.h"

#define OK CUSPARSE_STATUS_SUCCESS

API cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return begin() ? CUSPARSE_STATUS_NOT_INITIALIZED : OK;
}

API cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version)
{
    (void)handle;
    *version = CUSPARSE_VERSION;
    return OK;
}

API cusparseStatus_t cusparseGetProperty(libraryPropertyType what, int *value)
{
    *value = what == MAJOR_VERSION ? CUSPARSE_VER_MAJOR : 0;
    return OK;
}

PROPERTY(cusparse, CUSPARSE, Stream, cudaStream_t, stream)
PROPERTY(cusparse, CUSPARSE, PointerMode, cusparsePointerMode_t, mode)

API cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t *matrix)
{
    *matrix = calloc(1, sizeof **matrix);
    return OK;
}

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

API cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t *descriptor)
{
    *descriptor = calloc(1, sizeof **descriptor);
    return OK;
}

API cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t *descriptor)
{
    return cusparseSpSV_createDescr(descriptor);
}

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

API cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *vector, int64_t n, void *values,
                                         cudaDataType type)
{
    *vector = calloc(1, sizeof **vector);
    **vector = (struct cusparseDnVecDescr){n, values, type};
    return OK;
}

API cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t vector, void **values)
{
    *values = vector->values;
    return OK;
}

API cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void *values)
{
    vector->values = values;
    return OK;
}

API cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *matrix, int64_t rows, int64_t columns,
                                         int64_t ld, void *values, cudaDataType type,
                                         cusparseOrder_t order)
{
    *matrix = calloc(1, sizeof **matrix);
    **matrix = (struct cusparseDnMatDescr){rows, columns, ld, values, type, order};
    return OK;
}

static cusparseStatus_t create(cusparseSpMatDescr_t *made, struct cusparseSpMatDescr matrix)
{
    *made = malloc(sizeof **made);
    **made = matrix;
    return OK;
}

API cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,
                                       int64_t nonzeros, void *starts, void *indices, void *values,
                                       cusparseIndexType_t start_type,
                                       cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                       cudaDataType type)
{
    return create(matrix, (struct cusparseSpMatDescr){rows, columns, nonzeros, starts, indices, values,
                                                      start_type, index_type, base, type, 0, 0, 0, 0, 0, 0});
}

API cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,
                                       int64_t nonzeros, void *starts, void *indices, void *values,
                                       cusparseIndexType_t start_type,
                                       cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                       cudaDataType type)
{
    return create(matrix, (struct cusparseSpMatDescr){rows, columns, nonzeros, starts, indices, values,
                                                      start_type, index_type, base, type, 0, 1, 0, 0, 0, 0});
}

API cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,
                                       int64_t nonzeros, void *row_indices, void *indices,
                                       void *values, cusparseIndexType_t index_type,
                                       cusparseIndexBase_t base, cudaDataType type)
{
    return create(matrix,
                  (struct cusparseSpMatDescr){rows, columns, nonzeros, row_indices, indices, values,
                                              index_type, index_type, base, type, 1, 0, 0, 0, 0, 0});
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

API cusparseStatus_t cusparseBlockedEllGet(cusparseSpMatDescr_t matrix, int64_t *rows,
                                           int64_t *columns, int64_t *block, int64_t *ell_columns,
                                           void **indices, void **values,
                                           cusparseIndexType_t *index_type,
                                           cusparseIndexBase_t *base, cudaDataType *type)
{
    *rows = matrix->rows, *columns = matrix->columns, *block = matrix->block;
    *ell_columns = matrix->ell_columns, *indices = (void *)matrix->minor;
    *values = matrix->values, *index_type = matrix->minor_type, *base = matrix->base;
    *type = matrix->type;
    return OK;
}

API cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t *rows,
                                          int64_t *columns, int64_t *nonzeros)
{
    *rows = matrix->rows, *columns = matrix->columns, *nonzeros = matrix->nonzeros;
    return OK;
}

API cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t matrix, void **values)
{
    *values = matrix->values;
    return OK;
}

API cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void *values)
{
    matrix->values = values;
    return OK;
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

API cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix,
                                               cusparseSpMatAttribute_t what, void *value,
                                               size_t bytes)
{
    if (bytes != sizeof(int))
        return CUSPARSE_STATUS_INVALID_VALUE;
    *(what == CUSPARSE_SPMAT_FILL_MODE ? &matrix->fill : &matrix->diagonal) = *(int *)value;
    return OK;
}

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

API const char *cusparseGetErrorString(cusparseStatus_t status)
{
    return cusparseGetErrorName(status);
}
