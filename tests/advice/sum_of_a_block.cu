// A sum of a block. Bad: partners lie ever further apart. Good: in the other half.
// expect: bank_conflicts on 8800gtx gtx580 gtx980 h200
// cutrace: interleaved<<<8, 256>>>(out:f32[8], in:f32[2048]=random:1)
// cutrace: sequential<<<8, 256>>>(out, in)

__global__ void interleaved(float *out, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int k = 2 * d * t;
        if (k < 256)
            s[k] += s[k + d];
        __syncthreads();
    }
    if (!t)
        out[blockIdx.x] = s[0];
}

__global__ void sequential(float *out, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d; d /= 2) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    if (!t)
        out[blockIdx.x] = s[0];
}
