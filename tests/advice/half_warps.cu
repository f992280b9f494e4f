// Work in two ways. Bad: each half of a warp goes one way. Good: each half of the block.
// expect: divergence on 8800gtx gtx580 gtx980 h200
// cutrace: bad<<<8, 256>>>(x:f32[2048]=arange)
// cutrace: good<<<8, 256>>>(x)

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

__global__ void bad(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    if (lane < 16)
        x[i] = f(x[i]);
    else
        x[i] = g(x[i]);
}

__global__ void good(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < blockDim.x / 2)
        x[i] = f(x[i]);
    else
        x[i] = g(x[i]);
}
