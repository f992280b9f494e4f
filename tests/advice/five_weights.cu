// A filter of five weights on a chip that loads 16 words in order, or each alone. Bad: from global
// memory. Good: from a stretch of shared memory.
// expect: misaligned on 8800gtx
// cutrace: conv<<<16, 128>>>(out:f32[2048], in:f32[2052]=random:1)
// cutrace: convShared<<<16, 128>>>(out, in)

__constant__ float k[5] = {1, 2, 3, 2, 1};
__global__ void conv(float *out, const float *in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = 0;
    for (int j = 0; j < 5; ++j)
        s += k[j] * in[i + j];
    out[i] = s;
}

__global__ void convShared(float *out, const float *in)
{
    __shared__ float t[132];
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = 0;
    t[threadIdx.x] = in[i];
    if (threadIdx.x < 4)
        t[128 + threadIdx.x] = in[i + 128];
    __syncthreads();
    for (int j = 0; j < 5; ++j)
        s += k[j] * t[threadIdx.x + j];
    out[i] = s;
}
