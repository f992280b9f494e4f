/* Elements of the types that CUDA's libraries know, as double. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <library_types.h>

#include "library.h"

static double of_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

/* Rounded to the nearest, ties to even: a step is 2^-24 below 2^-14, and 2^-10 of the power above. */
static uint16_t to_half(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    int power = size < ldexp(1, -14) ? -14 : ilogb(size);
    int steps = (int)nearbyint(ldexp(size, 10 - power));
    return sign | (power == -14 ? steps : ((power + 15) << 10) + steps - 1024);
}

static double of_bfloat(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t to_bfloat(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (isnan(value))
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

size_t bytes_of(int type)
{
    switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F: case CUDA_R_32I: return 4;
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_R_8I: case CUDA_R_8U: return 1;
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    }
    return 0;
}

double element_of(const void *array, int type, int64_t index)
{
    switch (type) {
    case CUDA_R_64F: return ((const double *)array)[index];
    case CUDA_R_32F: return ((const float *)array)[index];
    case CUDA_R_32I: return ((const int32_t *)array)[index];
    case CUDA_R_16F: return of_half(((const uint16_t *)array)[index]);
    case CUDA_R_16BF: return of_bfloat(((const uint16_t *)array)[index]);
    case CUDA_R_8I: return ((const int8_t *)array)[index];
    case CUDA_R_8U: return ((const uint8_t *)array)[index];
    }
    return NAN;
}

void set_element(void *array, int type, int64_t index, double value)
{
    switch (type) {
    case CUDA_R_64F: ((double *)array)[index] = value; break;
    case CUDA_R_32F: ((float *)array)[index] = (float)value; break;
    case CUDA_R_32I: ((int32_t *)array)[index] = (int32_t)value; break;
    case CUDA_R_16F: ((uint16_t *)array)[index] = to_half(value); break;
    case CUDA_R_16BF: ((uint16_t *)array)[index] = to_bfloat(value); break;
    case CUDA_R_8I: ((int8_t *)array)[index] = (int8_t)value; break;
    case CUDA_R_8U: ((uint8_t *)array)[index] = (uint8_t)value; break;
    }
}
