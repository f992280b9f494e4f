// Softmax of rows. Bad: a thread for each row. Good: a block for each.
// expect: uncoalesced on 8800gtx gtx580 gtx980 h200
// cutrace: threadPerRow<<<2, 64>>>(out:f32[128,96], in:f32[128,96]=random:1, 96)
// cutrace: blockPerRow<<<128, 96>>>(out, in, 96)

__global__ void threadPerRow(float *out, const float *in, int n)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    float m = -1e30f, s = 0;
    for (int j = 0; j < n; ++j)
        m = fmaxf(m, in[r * n + j]);
    for (int j = 0; j < n; ++j)
        s += expf(in[r * n + j] - m);
    for (int j = 0; j < n; ++j)
        out[r * n + j] = expf(in[r * n + j] - m) / s;
}

__global__ void blockPerRow(float *out, const float *in, int n)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    float v = in[blockIdx.x * n + t];
    s[t] = v;
    if (t < 32)
        s[96 + t] = -1e30f;
    __syncthreads();
    for (int d = 64; d; d >>= 1) {
        if (t < d)
            s[t] = fmaxf(s[t], s[t + d]);
        __syncthreads();
    }
    float m = s[0];
    __syncthreads();
    v = expf(v - m);
    s[t] = v;
    if (t < 32)
        s[96 + t] = 0;
    __syncthreads();
    for (int d = 64; d; d >>= 1) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    out[blockIdx.x * n + t] = v / s[0];
}
