/* cuBLAS on the host: complex of doubles. */

#include <complex.h>
#include <math.h>

#include "cublas.h"

#define LETTER Z
#define SMALL_LETTER z
#define REAL_LETTER Dz
#define T double _Complex
#define R double
#define TYPE cuDoubleComplex
#define COMPLEX 1
#define CONJUGATE(x) conj(x)
#include "cublas_of.h"
#include "cublas_of_matrices.h"
