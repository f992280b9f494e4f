// Sparse matrix times vector: CSR with a thread a row, CSR with a warp a row, ELLPACK, and COO
// with atomics.

__global__ void csr_scalar(float *y, const int *first, const int *columns, const float *values,
                           const float *__restrict__ x, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = first[row]; k < first[row + 1]; ++k)
        sum += values[k] * x[columns[k]];
    y[row] = sum;
}

__global__ void csr_vector(float *y, const int *first, const int *columns, const float *values,
                           const float *__restrict__ x, int rows)
{
    int lane = threadIdx.x % 32;
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = first[row] + lane; k < first[row + 1]; k += 32)
        sum += values[k] * x[columns[k]];
    for (int reach = 16; reach > 0; reach /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, reach);
    if (lane == 0)
        y[row] = sum;
}

__global__ void ellpack(float *y, const int *columns, const float *values, const float *x,
                        int rows, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = 0; k < width; ++k) {
        int column = columns[k * rows + row];
        if (column >= 0)
            sum = fmaf(values[k * rows + row], __ldg(&x[column]), sum);
    }
    y[row] = sum;
}

__global__ void coordinates(float *y, const int *row, const int *column, const float *values,
                            const float *x, int entries)
{
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < entries; k += gridDim.x * blockDim.x)
        atomicAdd(&y[row[k]], values[k] * x[column[k]]);
}
