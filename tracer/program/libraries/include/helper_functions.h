/* The helpers of CUDA's samples without pictures. It is taken where a program's own folders have
   none. */

#ifndef COMMON_HELPER_FUNCTIONS_H_
#define COMMON_HELPER_FUNCTIONS_H_

#include <cassert>
#include <cmath>

#include "helper_string.h"
#include "helper_timer.h"

/* Whether the root of the sum of squared differences is below a share of the reference's. */
inline bool sdkCompareL2fe(const float *reference, const float *data, unsigned int count,
                           float epsilon)
{
    double error = 0, size = 0;
    for (unsigned int i = 0; i < count; i++) {
        error += ((double)reference[i] - data[i]) * ((double)reference[i] - data[i]);
        size += (double)reference[i] * reference[i];
    }
    return size > 0 && std::sqrt(error / size) < epsilon;
}

#endif
