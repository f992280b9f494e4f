/* D = alpha scales op(A) op(B) + beta C, and what comes behind it: cuBLAS's products of mixed types. */

#ifndef CUTRACE_MATMUL_H
#define CUTRACE_MATMUL_H

#include "library.h"

/* A matrix: element (i, j) of what is multiplied is at i + j * ld, or j + i * ld if `by_rows`. */
struct operand {
    void *data;
    const float *scale; /* what its elements are multiplied by; may be NULL */
    int type, by_rows;
    int64_t ld, stride;
};

struct matmul {
    struct operand a, b, c, d, bias, aux;
    int64_t m, n, k, count;
    int scalars, epilogue;
};

int is_complex(int type);
int is_epilogue(int epilogue);
int submit_matmul(const char *name, cudaStream_t stream, const struct matmul *what,
                  const void *alpha, const void *beta, int now);

#endif
