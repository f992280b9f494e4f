// The OpenCL twin of scripts/measure/bench_cuda/sparse_product.cu, for Oclgrind.

kernel void sparseProduct(global float *y, global const int *start, global const int *column,
                          global const float *value, global const float *x, int rows)
{
    int row = get_global_id(0);
    if (row < rows) {
        float sum = 0.0f;
        for (int k = start[row]; k < start[row + 1]; ++k)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}
