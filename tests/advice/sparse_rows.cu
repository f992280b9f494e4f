// Sparse matrix times vector, rows of unequal length. Bad: a thread a row. Good: a warp a row, whose
// loads begin wherever the row does.
// expect: uncoalesced on gtx580 h200
// cutrace: badSparse<<<2, 64>>>(y:f32[128], values:f32[8192]=arange, columns:i32[8192]=zeros, x:f32[128]=arange)
// cutrace: goodSparse<<<32, 128>>>(y, values, columns, x)

__device__ int begin(int row) { return row * 37 + row * row * 11 % 23; }

__global__ void badSparse(float *y, const float *values, const int *columns, const float *x)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int j = begin(row); j < begin(row + 1); j++)
        sum += values[j] * x[columns[j]];
    y[row] = sum;
}

__global__ void goodSparse(float *y, const float *values, const int *columns, const float *x)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int j = begin(row) + lane; j < begin(row + 1); j += 32)
        sum += values[j] * x[columns[j]];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0)
        y[row] = sum;
}
