// The work of the bench's kernels as plain loops on one core: the limit of what recording could be.
// All arrays are given in the order of the kernels' arguments, the result first.

#include <algorithm>

extern "C" {

void tiled_product(float *c, const float *a, const float *b, int n)
{
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            float sum = 0.0f;
            for (int k = 0; k < n; ++k)
                sum += a[row * n + k] * b[k * n + column];
            c[row * n + column] = sum;
        }
}

void reverse_array(int *out, const int *in, int n)
{
    for (int i = 0; i < n; ++i)
        out[n - 1 - i] = in[i];
}

void transpose(float *out, const float *in, int width, int height)
{
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            out[x * height + y] = in[y * width + x];
}

void histogram(unsigned *bins, const int *in, int n)
{
    for (int i = 0; i < n; ++i)
        bins[in[i] % 256]++;
}

void bitonic_sort(int *keys, int n)
{
    for (int first = 0; first < n; first += 256)
        for (int run = 2; run <= 256; run *= 2)
            for (int distance = run / 2; distance > 0; distance /= 2)
                for (int t = 0; t < 256; ++t) {
                    int partner = t ^ distance;
                    int &mine = keys[first + t], &theirs = keys[first + partner];
                    if (t < partner && (mine > theirs) == ((t & run) == 0))
                        std::swap(mine, theirs);
                }
}

void mandelbrot(int *counts, int size, int limit)
{
    for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x) {
            float cr = x * 0.005859375f - 2.0f, ci = y * 0.005859375f - 1.5f, zr = 0, zi = 0;
            int count = 0;
            while (count < limit && zr * zr + zi * zi < 4.0f) {
                float next = zr * zr - zi * zi + cr;
                zi = 2.0f * zr * zi + ci;
                zr = next;
                count++;
            }
            counts[y * size + x] = count;
        }
}

void sparse_product(float *y, const int *start, const int *column, const float *value,
                    const float *x, int rows)
{
    for (int row = 0; row < rows; ++row) {
        float sum = 0.0f;
        for (int k = start[row]; k < start[row + 1]; ++k)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}

void search(int *levels, const int *start, const int *edges, int nodes, int level)
{
    for (int node = 0; node < nodes; ++node)
        if (levels[node] == level)
            for (int k = start[node]; k < start[node + 1]; ++k)
                if (levels[edges[k]] < 0)
                    levels[edges[k]] = level + 1;
}
}
