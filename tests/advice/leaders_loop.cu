// Sums of warps. Bad: the first lane adds up while the others wait. Good: all add by shuffles.
// expect: divergence on 8800gtx gtx580 gtx980 h200
// cutrace: badLeader<<<8, 128>>>(out:f32[32], in:f32[1024]=random:1)
// cutrace: goodShuffles<<<8, 128>>>(out, in)

__global__ void badLeader(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 == 0) {
        float sum = 0;
        for (int lane = 0; lane < 32; ++lane)
            sum += in[i + lane];
        out[i / 32] = sum;
    }
}

__global__ void goodShuffles(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = in[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0)
        out[i / 32] = sum;
}
