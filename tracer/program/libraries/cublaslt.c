/* cuBLASLt on the host: descriptions of matrices and products, one algorithm, the product itself. */

#include <stddef.h>

#include "include/cublasLt.h"
#include "matmul.h"

struct cublasLtContext { int unused; };

/* What programs hold as `...Opaque_t`: no longer than these. */
struct layout {
    int32_t type, order;
    int64_t rows, columns, ld, stride;
    int32_t count;
};
struct product {
    int32_t compute, scale, pointers, transposed[2], epilogue, bias_type, aux_type;
    int64_t bias_stride, aux_ld, aux_stride;
    void *bias, *aux, *scales[4];
};
_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "a layout");
_Static_assert(sizeof(struct product) <= sizeof(cublasLtMatmulDescOpaque_t), "a product");

/* Where an attribute lies, and its bytes; 0 bytes: what it asks for makes no difference here. */
struct slot { int attribute, offset, bytes; };
#define PLACE(attribute, kind, field) \
    {attribute, offsetof(struct kind, field), sizeof ((struct kind *)0)->field}

static const struct slot LAYOUT[] = {
    PLACE(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
    PLACE(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
    PLACE(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
    PLACE(CUBLASLT_MATRIX_LAYOUT_COLS, layout, columns),
    PLACE(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
    PLACE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, count),
    PLACE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, stride),
    {-1, 0, 0},
};
static const struct slot PRODUCT[] = {
    PLACE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, product, compute),
    PLACE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, product, scale),
    PLACE(CUBLASLT_MATMUL_DESC_POINTER_MODE, product, pointers),
    PLACE(CUBLASLT_MATMUL_DESC_TRANSA, product, transposed[0]),
    PLACE(CUBLASLT_MATMUL_DESC_TRANSB, product, transposed[1]),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE, product, epilogue),
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product, bias),
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, product, bias_stride),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product, aux),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product, aux_ld),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, product, aux_stride),
    {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 0, 0},
    PLACE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, product, scales[0]),
    PLACE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, product, scales[1]),
    PLACE(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, product, scales[2]),
    PLACE(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, product, scales[3]),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, product, aux_type),
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, 0, 0},
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, product, bias_type),
    {-1, 0, 0},
};

static const struct slot *find(const struct slot *places, int attribute)
{
    while (places->attribute >= 0 && places->attribute != attribute)
        places++;
    return places->attribute < 0 ? NULL : places;
}

static cublasStatus_t set(const char *name, const struct slot *places, void *object, int attribute,
                          const void *value, size_t bytes)
{
    const struct slot *place = find(places, attribute);
    if (!place)
        return refuse_call(name, CUBLAS_STATUS_NOT_SUPPORTED);
    if (!object || !value || bytes < (size_t)place->bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)object + place->offset, value, place->bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const struct slot *places, const void *object, int attribute, void *value,
                          size_t bytes, size_t *written)
{
    const struct slot *place = find(places, attribute);
    if (written)
        *written = place ? place->bytes : 0;
    if (!place || !object || (value && bytes < (size_t)place->bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (value)
        memcpy(value, (const char *)object + place->offset, place->bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define OBJECT(Name, Attribute, places) \
    API cublasStatus_t cublasLt##Name##Destroy(cublasLt##Name##_t object) \
    { \
        free(object); \
        return CUBLAS_STATUS_SUCCESS; \
    } \
    API cublasStatus_t cublasLt##Name##SetAttribute(cublasLt##Name##_t object, Attribute attribute, \
                                                    const void *value, size_t bytes) \
    { \
        return set("this attribute of cublasLt" #Name, places, object, attribute, value, bytes); \
    } \
    API cublasStatus_t cublasLt##Name##GetAttribute(cublasLt##Name##_t object, Attribute attribute, \
                                                    void *value, size_t bytes, size_t *written) \
    { \
        return get(places, object, attribute, value, bytes, written); \
    }
OBJECT(MatrixLayout, cublasLtMatrixLayoutAttribute_t, LAYOUT)
OBJECT(MatmulDesc, cublasLtMatmulDescAttributes_t, PRODUCT)

API cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes,
                                                     cudaDataType type, uint64_t rows,
                                                     uint64_t columns, int64_t ld)
{
    struct layout made = {.type = type, .rows = rows, .columns = columns, .ld = ld, .count = 1};
    if (bytes < sizeof made)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(layout, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t how, size_t bytes,
                                                   cublasComputeType_t compute,
                                                   cudaDataType_t scale)
{
    struct product made = {.compute = compute, .scale = scale, .bias_type = -1, .aux_type = -1,
                           .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    if (bytes < sizeof made)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(how, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether a product can be computed here, and whether its matrices fit. */
static cublasStatus_t check(const struct product *p, const struct layout *a, const struct layout *b,
                            const struct layout *c, const struct layout *d)
{
    int ta = p->transposed[0] != CUBLAS_OP_N, tb = p->transposed[1] != CUBLAS_OP_N;
    const struct layout *all[] = {a, b, c, d};
    for (int k = 0; k < 4; k++)
        if (all[k]->order > CUBLASLT_ORDER_ROW || !bytes_of(all[k]->type) || is_complex(all[k]->type))
            return refuse_call("cublasLtMatmul of complex numbers, or of matrices in tiles",
                               CUBLAS_STATUS_NOT_SUPPORTED);
    if (p->pointers > CUBLASLT_POINTER_MODE_DEVICE || !is_epilogue(p->epilogue))
        return refuse_call("cublasLtMatmul with this epilogue, or with vectors of scalars",
                           CUBLAS_STATUS_NOT_SUPPORTED);
    int64_t m = ta ? a->columns : a->rows, k = ta ? a->rows : a->columns;
    int64_t n = tb ? b->rows : b->columns;
    int fits = k == (tb ? b->columns : b->rows) && d->rows == m && d->columns == n &&
               c->rows == m && c->columns == n;
    return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

API cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                           cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                           cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                           const cublasLtMatmulAlgo_t *algorithm,
                                           cublasLtMatmulHeuristicResult_t *result)
{
    if (!handle || !how || !a || !b || !c || !d)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check((void *)how, (void *)a, (void *)b, (void *)c, (void *)d);
    *result = (cublasLtMatmulHeuristicResult_t){.state = status, .wavesCount = 1};
    if (algorithm)
        result->algo = *algorithm;
    return status;
}

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t results[],
    int *found)
{
    (void)preference;
    if (asked < 1 || !found)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, how, a, b, c, d, NULL, results);
    *found = !status;
    return status;
}

static struct operand operand_of(const struct layout *layout, void *data, int transposed,
                                 void *scale)
{
    int by_rows = layout->order == CUBLASLT_ORDER_ROW;
    return (struct operand){data, scale, layout->type, by_rows != transposed, layout->ld,
                            layout->stride};
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                  const void *alpha, const void *a, cublasLtMatrixLayout_t la,
                                  const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                                  const void *c, cublasLtMatrixLayout_t lc, void *d,
                                  cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algorithm,
                                  void *workspace, size_t bytes, cudaStream_t stream)
{
    (void)workspace, (void)bytes;
    cublasLtMatmulHeuristicResult_t result;
    cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, how, la, lb, lc, ld, algorithm, &result);
    if (status)
        return status;
    const struct product *p = (void *)how;
    const struct layout *of_a = (void *)la, *of_d = (void *)ld;
    int ta = p->transposed[0] != CUBLAS_OP_N, tb = p->transposed[1] != CUBLAS_OP_N;
    struct matmul what = {
        .a = operand_of(of_a, (void *)a, ta, p->scales[0]),
        .b = operand_of((void *)lb, (void *)b, tb, p->scales[1]),
        .c = operand_of((void *)lc, (void *)c, 0, p->scales[2]),
        .d = operand_of(of_d, d, 0, p->scales[3]),
        .m = of_d->rows, .n = of_d->columns, .k = ta ? of_a->rows : of_a->columns,
        .count = of_d->count, .scalars = p->scale, .epilogue = p->epilogue,
        .bias = {p->bias, NULL, p->bias_type < 0 ? of_d->type : p->bias_type, 0, 0, p->bias_stride},
        .aux = {p->aux, NULL, p->aux_type < 0 ? of_d->type : p->aux_type, 0, p->aux_ld,
                p->aux_stride},
    };
    return submit_matmul("cublasLtMatmul", stream, &what, alpha, beta,
                         p->pointers == CUBLASLT_POINTER_MODE_HOST);
}

#include "forwards_libraries_cublaslt.h"
