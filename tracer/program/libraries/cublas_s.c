/* cuBLAS on the host: float. */

#include <complex.h>
#include <math.h>

#include "cublas.h"

#define LETTER S
#define SMALL_LETTER s
#define REAL_LETTER S
#define T float
#define R float
#define TYPE float
#define COMPLEX 0
#define CONJUGATE(x) (x)
#include "cublas_of.h"
#include "cublas_of_matrices.h"
