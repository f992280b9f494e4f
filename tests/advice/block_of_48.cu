// Add vectors. Bad: 48 threads a block. Good: 64.
// expect: padding_lanes on 8800gtx gtx580 h200
// cutrace: badBlock<<<64, 48>>>(c:f32[3072], a:f32[3072]=arange, b:f32[3072]=arange)
// cutrace: goodBlock<<<48, 64>>>(c, a, b)

__global__ void badBlock(float *c, const float *a, const float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}

__global__ void goodBlock(float *c, const float *a, const float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}
