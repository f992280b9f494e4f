// Product of small matrices by blocks of 8 x 8 threads. Bad: the first index goes with the lanes.
// Good: the second, while four rows of the other matrix are broadcast.
// expect: uncoalesced on gtx580 h200
// cutrace: badProduct<<<(8, 8), (8, 8)>>>(c:f32[64,64], a:f32[64,64]=arange, b:f32[64,64]=arange)
// cutrace: goodProduct<<<(8, 8), (8, 8)>>>(c, a, b)

__global__ void badProduct(float *c, const float *a, const float *b)
{
    int row = blockIdx.x * 8 + threadIdx.x, column = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[row * 64 + k] * b[k * 64 + column];
    c[row * 64 + column] = sum;
}

__global__ void goodProduct(float *c, const float *a, const float *b)
{
    int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[row * 64 + k] * b[k * 64 + column];
    c[row * 64 + column] = sum;
}
