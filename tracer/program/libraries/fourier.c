/* Fourier transforms of rows of any size, by the smallest factor of the size, again and again. */

#include <complex.h>
#include <math.h>

#include "library.h"

#define PI 3.14159265358979323846

static int64_t factor_of(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* `roots` are those of `whole`, a multiple of n; every `step`th is one of n. */
static void turn(const double complex *from, int64_t step_from, double complex *to, int64_t n,
                 const double complex *roots, int64_t whole, double complex *room)
{
    if (n == 1) {
        *to = *from;
        return;
    }
    int64_t p = factor_of(n), m = n / p, step = whole / n;
    for (int64_t k = 0; k < p; k++)
        turn(from + k * step_from, step_from * p, to + k * m, m, roots, whole, room);
    for (int64_t j = 0; j < m; j++) {
        for (int64_t k = 0; k < p; k++)
            room[k] = to[k * m + j] * roots[k * j * step % whole];
        for (int64_t q = 0; q < p; q++) {
            double complex sum = room[0];
            for (int64_t k = 1; k < p; k++)
                sum += room[k] * roots[k * q % p * (whole / p)];
            to[q * m + j] = sum;
        }
    }
}

void transform_rows(double complex *data, int64_t total, int64_t n, int64_t stride,
                    int direction)
{
    double complex *roots = malloc(sizeof *roots * 3 * (n + 1)), *row = roots + n, *room = row + n;
    for (int64_t k = 0; roots && k < n; k++)
        roots[k] = cexp(direction * 2 * PI * I * (double)k / (double)n);
    for (int64_t at = 0; roots && at < total; at++) {
        if (at / stride % n)
            continue; /* within a row that was done */
        turn(data + at, stride, row, n, roots, n, room);
        for (int64_t k = 0; k < n; k++)
            data[at + k * stride] = row[k];
    }
    free(roots);
}
