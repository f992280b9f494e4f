// c = a b: every thread reads its row of a and its column of b from global memory.
// cutrace: productPlain<<<(4, 4), (16, 16)>>>(c:f32[64,64],
//     a:f32[64,64]=random:1, b:f32[64,64]=random:2, 64)

__global__ void productPlain(float *c, const float *a, const float *b, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || column >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
