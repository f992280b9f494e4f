// Sums of blocks through shared memory, and of warps by shuffles.
// expect: nothing on 8800gtx gtx580 gtx980 h200
// cutrace: blockSum<<<8, 256>>>(out:f32[1], in:f32[2048]=arange)
// cutrace: shuffleSum<<<8, 256>>>(out, in)

__global__ void blockSum(float *out, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(out, s[0]);
}

__global__ void shuffleSum(float *out, const float *in)
{
    float v = in[blockIdx.x * 256 + threadIdx.x];
    for (int d = 16; d > 0; d >>= 1)
        v += __shfl_down_sync(~0u, v, d);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(out, v);
}
