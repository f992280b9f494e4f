/* cuBLAS on the host: complex of floats. */

#include <complex.h>
#include <math.h>

#include "cublas.h"

#define LETTER C
#define SMALL_LETTER c
#define REAL_LETTER Sc
#define T float _Complex
#define R float
#define TYPE cuComplex
#define COMPLEX 1
#define CONJUGATE(x) conjf(x)
#include "cublas_of.h"
#include "cublas_of_matrices.h"
