// Dense systems: Gaussian elimination step by step, LU in place, and Cholesky in one block.

__global__ void multipliers(float *m, const float *a, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1 - k)
        m[n * (i + k + 1) + k] = a[n * (i + k + 1) + k] / a[n * k + k];
}

__global__ void eliminate(float *a, float *b, const float *m, int n, int k)
{
    int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= n - 1 - k || x >= n - k)
        return;
    float factor = m[n * (y + k + 1) + k];
    a[n * (y + k + 1) + x + k] -= factor * a[n * k + x + k];
    if (x == 0)
        b[y + k + 1] -= factor * b[k];
}

__global__ void lu_in_place(double *a, int n)
{
    for (int k = 0; k < n - 1; ++k) {
        double pivot = a[k * n + k];
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x)
            a[i * n + k] /= pivot;
        __syncthreads();
        int side = n - k - 1;
        for (int j = threadIdx.x; j < side * side; j += blockDim.x) {
            int y = k + 1 + j / side, x = k + 1 + j % side;
            a[y * n + x] -= a[y * n + k] * a[k * n + x];
        }
        __syncthreads();
    }
}

__global__ void cholesky(double *l, const double *a, int n)
{
    __shared__ double diagonal;
    int row = threadIdx.x;
    for (int k = 0; k < n; ++k) {
        double sum = row >= k && row < n ? a[row * n + k] : 0.0;
        for (int j = 0; j < k; ++j)
            if (row >= k && row < n)
                sum -= l[row * n + j] * l[k * n + j];
        if (row == k)
            l[k * n + k] = diagonal = sqrt(sum);
        __syncthreads();
        if (row > k && row < n)
            l[row * n + k] = sum / diagonal;
        __syncthreads();
    }
}
