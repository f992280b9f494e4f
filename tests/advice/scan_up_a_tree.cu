// A scan up a tree. Bad: strides of powers of two. Good: a word is left out after 32.
// expect: bank_conflicts on gtx580 gtx980 h200
// cutrace: plain<<<4, 256>>>(out:f32[2048], in:f32[2048]=arange)
// cutrace: padded<<<4, 256>>>(out, in)

#define N 512
#define P(i) ((i) + ((i) >> 5))
__global__ void plain(float *out, const float *in)
{
    __shared__ float s[N];
    int t = threadIdx.x, o = 1, b = blockIdx.x * N;
    s[t] = in[b + t];
    s[t + 256] = in[b + t + 256];
    for (int d = N >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            s[o * (2 * t + 2) - 1] += s[o * (2 * t + 1) - 1];
        o *= 2;
    }
    __syncthreads();
    out[b + t] = s[t];
    out[b + t + 256] = s[t + 256];
}

__global__ void padded(float *out, const float *in)
{
    __shared__ float s[P(N)];
    int t = threadIdx.x, o = 1, b = blockIdx.x * N;
    s[P(t)] = in[b + t];
    s[P(t + 256)] = in[b + t + 256];
    for (int d = N >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            s[P(o * (2 * t + 2) - 1)] += s[P(o * (2 * t + 1) - 1)];
        o *= 2;
    }
    __syncthreads();
    out[b + t] = s[P(t)];
    out[b + t + 256] = s[P(t + 256)];
}
