/* cuBLAS on the host: handles, copies of vectors and matrices, products of mixed types. */

#include "cublas.h"
#include "include/cublasLt.h"
#include "matmul.h"

PROPERTY(cublas, CUBLAS, Stream, cudaStream_t, stream)
PROPERTY(cublas, CUBLAS, PointerMode, cublasPointerMode_t, mode)
PROPERTY(cublas, CUBLAS, MathMode, cublasMath_t, math)

cublasStatus_t submit_blas(cublasHandle_t handle, struct call *call, const void *alpha,
                           const void *beta, size_t bytes)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    for (int k = 0; k < 16; k++)
        if (call->size[k] < 0 && k < SIZES)
            return CUBLAS_STATUS_INVALID_VALUE;
    int now = handle->mode == CUBLAS_POINTER_MODE_HOST;
    hold_scalar(call, 0, alpha, bytes, now);
    hold_scalar(call, 1, beta, bytes, now);
    return submit_call(handle->stream, call) ? CUBLAS_STATUS_EXECUTION_FAILED
                                             : CUBLAS_STATUS_SUCCESS;
}

/* A copy of columns is a copy in the program: `one` element a row if `rows` is of a vector. */
static cublasStatus_t copy(int rows, int columns, int bytes, const void *a, int64_t lda, void *b,
                           int64_t ldb, cudaStream_t stream)
{
    if (rows < 0 || columns < 0 || bytes <= 0 || lda <= 0 || ldb <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    cudaError_t status = cudaMemcpy2DAsync(b, ldb * bytes, a, lda * bytes, (size_t)rows * bytes,
                                           columns, cudaMemcpyDefault, stream);
    return status ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

#define COPIES(Way) \
    API cublasStatus_t cublas##Way##VectorAsync(int n, int bytes, const void *x, int incx, void *y, \
                                                int incy, cudaStream_t stream) \
    { \
        return copy(1, n, bytes, x, incx, y, incy, stream); \
    } \
    API cublasStatus_t cublas##Way##Vector(int n, int bytes, const void *x, int incx, void *y, \
                                           int incy) \
    { \
        return copy(1, n, bytes, x, incx, y, incy, NULL); \
    } \
    API cublasStatus_t cublas##Way##MatrixAsync(int rows, int columns, int bytes, const void *a, \
                                                int lda, void *b, int ldb, cudaStream_t stream) \
    { \
        return copy(rows, columns, bytes, a, lda, b, ldb, stream); \
    } \
    API cublasStatus_t cublas##Way##Matrix(int rows, int columns, int bytes, const void *a, int lda, \
                                           void *b, int ldb) \
    { \
        return copy(rows, columns, bytes, a, lda, b, ldb, NULL); \
    }
COPIES(Set)
COPIES(Get)

static int type_of_scalars(cublasComputeType_t compute)
{
    switch (compute) {
    case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
    default: return CUDA_R_32F;
    }
}

API cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType ta, int lda, long long stridea, const void *b,
    cudaDataType tb, int ldb, long long strideb, const void *beta, void *c, cudaDataType tc,
    int ldc, long long stridec, int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    (void)algorithm;
    if (is_complex(ta) || is_complex(tb) || is_complex(tc))
        return refuse_call("cublasGemmEx of complex numbers", CUBLAS_STATUS_NOT_SUPPORTED);
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct operand result = {c, NULL, tc, 0, ldc, stridec};
    struct matmul what = {
        .a = {(void *)a, NULL, ta, opa != CUBLAS_OP_N, lda, stridea},
        .b = {(void *)b, NULL, tb, opb != CUBLAS_OP_N, ldb, strideb},
        .c = result, .d = result, .m = m, .n = n, .k = k, .count = count,
        .scalars = type_of_scalars(compute), .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
    };
    int now = handle->mode == CUBLAS_POINTER_MODE_HOST;
    return submit_matmul("cublasGemmEx", handle->stream, &what, alpha, beta, now);
}

/* C has no __half. */
API cublasStatus_t cublasHgemmStridedBatched(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, int lda, long long stridea, const void *b, int ldb,
    long long strideb, const void *beta, void *c, int ldc, long long stridec, int count)
{
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, a, CUDA_R_16F, lda, stridea,
                                      b, CUDA_R_16F, ldb, strideb, beta, c, CUDA_R_16F, ldc, stridec,
                                      count, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}

API cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                               int m, int n, int k, const void *alpha, const void *a, int lda,
                               const void *b, int ldb, const void *beta, void *c, int ldc)
{
    return cublasHgemmStridedBatched(handle, opa, opb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c,
                                     ldc, 0, 1);
}

#define NAMES(NAME) \
    NAME(SUCCESS) NAME(NOT_INITIALIZED) NAME(ALLOC_FAILED) NAME(INVALID_VALUE) NAME(ARCH_MISMATCH) \
    NAME(MAPPING_ERROR) NAME(EXECUTION_FAILED) NAME(INTERNAL_ERROR) NAME(NOT_SUPPORTED) \
    NAME(LICENSE_ERROR)

API const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
#define NAME(name) case CUBLAS_STATUS_##name: return "CUBLAS_STATUS_" #name;
        NAMES(NAME)
#undef NAME
    }
    return "unknown";
}

#include "forwards_libraries_cublas.h"
