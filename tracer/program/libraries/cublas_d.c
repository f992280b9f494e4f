/* cuBLAS on the host: double. */

#include <complex.h>
#include <math.h>

#include "cublas.h"

#define LETTER D
#define SMALL_LETTER d
#define REAL_LETTER D
#define T double
#define R double
#define TYPE double
#define COMPLEX 0
#define CONJUGATE(x) (x)
#include "cublas_of.h"
#include "cublas_of_matrices.h"
