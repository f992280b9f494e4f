// Kernels in the manner of PolyBench: products with a matrix and its transpose, a correlation
// matrix, finite differences in time, Gram and Schmidt's orthogonal columns.

__global__ void times_vector(double *out, const double *a, const double *x, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) {
        double sum = 0.0;
        for (int j = 0; j < columns; ++j)
            sum += a[i * columns + j] * x[j];
        out[i] = sum;
    }
}

__global__ void transposed_times_vector(double *out, const double *a, const double *x, int rows,
                                        int columns)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < columns) {
        double sum = 0.0;
        for (int i = 0; i < rows; ++i)
            sum += a[i * columns + j] * x[i];
        out[j] = sum;
    }
}

__global__ void mean_and_deviation(float *mean, float *deviation, const float *data, int n, int m)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= m)
        return;
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < n; ++i)
        sum += data[i * m + j];
    float centre = sum / n;
    for (int i = 0; i < n; ++i)
        squares += (data[i * m + j] - centre) * (data[i * m + j] - centre);
    float spread = sqrtf(squares / n);
    mean[j] = centre;
    deviation[j] = spread <= 0.1f ? 1.0f : spread;
}

__global__ void correlation(float *out, const float *data, const float *mean,
                            const float *deviation, int n, int m)
{
    int j1 = blockIdx.x * blockDim.x + threadIdx.x;
    if (j1 >= m)
        return;
    out[j1 * m + j1] = 1.0f;
    for (int j2 = j1 + 1; j2 < m; ++j2) {
        float sum = 0.0f;
        for (int i = 0; i < n; ++i)
            sum += (data[i * m + j1] - mean[j1]) * (data[i * m + j2] - mean[j2]);
        sum /= n * deviation[j1] * deviation[j2];
        out[j1 * m + j2] = out[j2 * m + j1] = sum;
    }
}

__global__ void electric(float *ex, float *ey, const float *hz, const float *source, int step,
                         int nx, int ny)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny)
        return;
    int at = i * ny + j;
    if (i == 0)
        ey[at] = source[step];
    else
        ey[at] -= 0.5f * (hz[at] - hz[at - ny]);
    if (j > 0)
        ex[at] -= 0.5f * (hz[at] - hz[at - 1]);
}

__global__ void magnetic(float *hz, const float *ex, const float *ey, int nx, int ny)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    int at = i * ny + j;
    if (i < nx - 1 && j < ny - 1)
        hz[at] -= 0.7f * (ex[at + 1] - ex[at] + ey[at + ny] - ey[at]);
}

__global__ void gram_schmidt(double *q, double *r, double *a, int rows, int columns)
{
    __shared__ double parts[64];
    for (int k = 0; k < columns; ++k) {
        double square = 0.0;
        for (int i = threadIdx.x; i < rows; i += 64)
            square += a[i * columns + k] * a[i * columns + k];
        parts[threadIdx.x] = square;
        for (int half = 32; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
        double norm = sqrt(parts[0]);
        if (threadIdx.x == 0)
            r[k * columns + k] = norm;
        for (int i = threadIdx.x; i < rows; i += 64)
            q[i * columns + k] = a[i * columns + k] / norm;
        __syncthreads();
        for (int j = k + 1 + threadIdx.x; j < columns; j += 64) {
            double product = 0.0;
            for (int i = 0; i < rows; ++i)
                product += q[i * columns + k] * a[i * columns + j];
            r[k * columns + j] = product;
            for (int i = 0; i < rows; ++i)
                a[i * columns + j] -= q[i * columns + k] * product;
        }
        __syncthreads();
    }
}
