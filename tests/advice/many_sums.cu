// Sums over a window, many a thread. Bad: 96 sums in registers at once. Good: 4.
// expect: few_registers on gtx980 h200
// cutrace: badSums<<<4096, 64>>>(out:f32[262144], in:f32[96]=arange, 2)
// cutrace: goodSums<<<4096, 64>>>(out, in, 2)

template <int SUMS>
__device__ void accumulate(float *out, const float *in, int rounds)
{
    float sum[SUMS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int n = 0; n < SUMS; n++) sum[n] = i + n;
    for (int k = 0; k < rounds; k++)
        for (int n = 0; n < SUMS; n++) sum[n] = sum[n] * sum[(n + 1) % SUMS] + in[k];
    float all = 0;
    for (int n = 0; n < SUMS; n++) all = all * 0.5f + sum[n];
    out[i] = all;
}

__global__ void badSums(float *out, const float *in, int rounds) { accumulate<96>(out, in, rounds); }

__global__ void goodSums(float *out, const float *in, int rounds) { accumulate<4>(out, in, rounds); }
