/* Programs include it by this name, too. */
#include "cublas_v2.h"
