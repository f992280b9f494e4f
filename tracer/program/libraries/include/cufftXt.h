/* cuFFT on several GPUs and with callbacks, which cutrace refuses: see cufft.h. */

#ifndef _CUFFTXT_H_
#define _CUFFTXT_H_

#include "cufft.h"

#endif
