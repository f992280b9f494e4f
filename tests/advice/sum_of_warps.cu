// A sum in memory. Bad: every thread adds to it. Good: each warp does, once.
// expect: contention on gtx580 gtx980 h200
// cutrace: naive<<<8, 128>>>(sum:f32[1], in:f32[1024]=random:1)
// cutrace: reduced<<<8, 128>>>(sum, in)

__global__ void naive(float *sum, const float *in)
{
    atomicAdd(sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

__global__ void reduced(float *sum, const float *in)
{
    float v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d; d /= 2)
        v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, v);
}
