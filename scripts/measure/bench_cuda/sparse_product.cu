// A sparse matrix in rows times a vector, a thread a row: the longest row decides how long it takes.

__global__ void sparseProduct(float *y, const int *start, const int *column, const float *value,
                              const float *x, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = start[row]; k < start[row + 1]; ++k)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}
