/* Elements of the types that CUDA's libraries know, as double. */

#include <math.h>
#include <stdint.h>

#include <library_types.h>

#include "library.h"

/* Numbers of a sign, an exponent and a fraction of so many bits. E4M3 has no infinity, and no number
   of 8 bits gets it: what is too large is the largest. Source: OCP 8-bit Floating Point
   Specification; CUDA Math API, "FP8 Intrinsics". */
struct format { int exponent, fraction; };

static const struct format HALF = {5, 10}, BFLOAT = {8, 7}, E4M3 = {4, 3}, E5M2 = {5, 2};

static double of_bits(unsigned bits, struct format f)
{
    int top = (1 << f.exponent) - 1, most = (1 << f.fraction) - 1, bias = top >> 1;
    int exponent = bits >> f.fraction & top, fraction = bits & most;
    int is_special = exponent == top && (f.exponent != E4M3.exponent || fraction == most);
    double value = is_special ? (fraction ? NAN : INFINITY)
                   : exponent ? ldexp(most + 1 + fraction, exponent - bias - f.fraction)
                              : ldexp(fraction, 1 - bias - f.fraction);
    return bits >> (f.exponent + f.fraction) & 1 ? -value : value;
}

/* Rounded to the nearest, ties to even. */
static unsigned to_bits(double value, struct format f)
{
    unsigned sign = !!signbit(value) << (f.exponent + f.fraction);
    unsigned all = (1u << (f.exponent + f.fraction)) - 1, infinity = all & ~((1u << f.fraction) - 1);
    unsigned limit = f.exponent == E4M3.exponent ? all - 1 : f.fraction < 3 ? infinity - 1 : infinity;
    int bias = (1 << (f.exponent - 1)) - 1;
    double size = fabs(value);
    if (isnan(value))
        return all;
    if (size >= ldexp(2, bias + 1))
        return sign | limit;
    int power = size < ldexp(1, 1 - bias) ? 1 - bias : ilogb(size);
    unsigned steps = (unsigned)nearbyint(ldexp(size, f.fraction - power));
    unsigned code = ((power + bias - 1) << f.fraction) + steps;
    return sign | (code < limit ? code : limit);
}

size_t bytes_of(int type)
{
    switch (type) {
    case CUDA_R_64F: case CUDA_R_64I: return 8;
    case CUDA_R_32F: case CUDA_R_32I: return 4;
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_R_8I: case CUDA_R_8U: case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: return 1;
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
    case CUDA_R_64I: return ((const int64_t *)array)[index];
    case CUDA_R_16F: return of_bits(((const uint16_t *)array)[index], HALF);
    case CUDA_R_16BF: return of_bits(((const uint16_t *)array)[index], BFLOAT);
    case CUDA_R_8I: return ((const int8_t *)array)[index];
    case CUDA_R_8U: return ((const uint8_t *)array)[index];
    case CUDA_R_8F_E4M3: return of_bits(((const uint8_t *)array)[index], E4M3);
    case CUDA_R_8F_E5M2: return of_bits(((const uint8_t *)array)[index], E5M2);
    }
    return NAN;
}

void set_element(void *array, int type, int64_t index, double value)
{
    switch (type) {
    case CUDA_R_64F: ((double *)array)[index] = value; break;
    case CUDA_R_32F: ((float *)array)[index] = (float)value; break;
    case CUDA_R_32I: ((int32_t *)array)[index] = (int32_t)value; break;
    case CUDA_R_64I: ((int64_t *)array)[index] = (int64_t)value; break;
    case CUDA_R_16F: ((uint16_t *)array)[index] = to_bits(value, HALF); break;
    case CUDA_R_16BF: ((uint16_t *)array)[index] = to_bits(value, BFLOAT); break;
    case CUDA_R_8I: ((int8_t *)array)[index] = (int8_t)fmax(-128, fmin(127, nearbyint(value))); break;
    case CUDA_R_8U: ((uint8_t *)array)[index] = (uint8_t)value; break;
    case CUDA_R_8F_E4M3: ((uint8_t *)array)[index] = to_bits(value, E4M3); break;
    case CUDA_R_8F_E5M2: ((uint8_t *)array)[index] = to_bits(value, E5M2); break;
    }
}
