/* Products of matrices of any real types, in double, with an activation behind them. */

#include <math.h>

#include "include/cublasLt.h"
#include "matmul.h"

struct matmul_call {
    struct call call;
    struct matmul what;
};

enum { RELU = 2, BIAS = 4, GELU = 32, AUX = 128 }; /* the bits of cublasLtEpilogue_t */

int is_complex(int type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F;
}

int is_epilogue(int epilogue)
{
    int kind = epilogue & ~(AUX | BIAS);
    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == BIAS || kind == RELU || kind == GELU;
}

static int64_t place(const struct operand *x, int64_t number, int64_t i, int64_t j)
{
    return number * x->stride + (x->by_rows ? j + i * x->ld : i + j * x->ld);
}

static double scale_of(const struct operand *x)
{
    return x->scale ? *x->scale : 1;
}

/* All elements as double, rows side by side; columns if `columns`. */
static double *gather(const struct operand *x, int64_t number, int64_t rows, int64_t inner,
                      int columns)
{
    double *all = malloc(sizeof(double) * (rows * inner + 1)), scale = scale_of(x);
    for (int64_t i = 0; all && i < rows; i++)
        for (int64_t l = 0; l < inner; l++)
            all[i * inner + l] = scale * element_of(x->data, x->type,
                columns ? place(x, number, l, i) : place(x, number, i, l));
    return all;
}

/* Source: "Gaussian Error Linear Units", by its approximation with tanh, which cuBLASLt has. */
static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* What the epilogue makes of an element; the auxiliary array gets GELU's input, or a bit: positive. */
static double finish(const struct matmul *what, int64_t number, int64_t i, int64_t j, double value)
{
    int epilogue = what->epilogue;
    if (epilogue & BIAS)
        value += element_of(what->bias.data, what->bias.type, number * what->bias.stride + i);
    if (epilogue & AUX && epilogue & GELU)
        set_element(what->aux.data, what->aux.type, place(&what->aux, number, i, j), value);
    if (epilogue & AUX && epilogue & RELU) {
        int64_t bit = place(&what->aux, number, i, j);
        unsigned char *byte = (unsigned char *)what->aux.data + bit / 8;
        *byte = (*byte & ~(1 << bit % 8)) | (value > 0) << bit % 8;
    }
    if (epilogue & GELU)
        return gelu(value);
    return epilogue & RELU && value < 0 ? 0 : value;
}

static void multiply_one(const struct call *call, const struct matmul *what, int64_t number)
{
    double alpha = element_of(scalar_of(call, 0), what->scalars, 0);
    double beta = element_of(scalar_of(call, 1), what->scalars, 0);
    double *a = gather(&what->a, number, what->m, what->k, 0);
    double *b = gather(&what->b, number, what->n, what->k, 1);
    for (int64_t j = 0; a && b && j < what->n; j++)
        for (int64_t i = 0; i < what->m; i++) {
            double sum = 0;
            for (int64_t l = 0; l < what->k; l++)
                sum += a[i * what->k + l] * b[j * what->k + l];
            sum *= alpha;
            if (beta != 0)
                sum += beta * scale_of(&what->c) *
                       element_of(what->c.data, what->c.type, place(&what->c, number, i, j));
            sum = finish(what, number, i, j, sum) * scale_of(&what->d);
            set_element(what->d.data, what->d.type, place(&what->d, number, i, j), sum);
        }
    free(a);
    free(b);
}

static void multiply(const struct call *call)
{
    const struct matmul *what = &((const struct matmul_call *)call)->what;
    for (int64_t number = 0; number < what->count; number++)
        multiply_one(call, what, number);
}

int submit_matmul(const char *name, cudaStream_t stream, const struct matmul *what,
                  const void *alpha, const void *beta, int now)
{
    struct matmul_call all = {{.name = name, .run = multiply, .written = what->d.data}, *what};
    hold_scalar(&all.call, 0, alpha, bytes_of(what->scalars), now);
    hold_scalar(&all.call, 1, beta, bytes_of(what->scalars), now);
    return submit_call_of(stream, &all.call, sizeof all) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                         : CUBLAS_STATUS_SUCCESS;
}
