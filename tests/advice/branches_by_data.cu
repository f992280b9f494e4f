// Branches by the block, and by random data.
// expect: nothing on 8800gtx gtx580 gtx980 h200
// cutrace: byBlock<<<8, 256>>>(x:f32[2048]=arange)
// cutrace: byData<<<8, 256>>>(y:f32[2048]=random:5)

__device__ float f(float v)
{
    for (int i = 0; i < 6; ++i)
        v = v * v + 1.5f;
    return v;
}

__device__ float g(float v)
{
    for (int i = 0; i < 6; ++i)
        v = sqrtf(v + i);
    return v;
}

__global__ void byBlock(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x & 1)
        x[i] = f(x[i]);
    else
        x[i] = g(x[i]);
}

__global__ void byData(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] < 0.5f)
        x[i] = f(x[i]);
    else
        x[i] = g(x[i]);
}
