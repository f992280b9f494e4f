// Many systems at once. Bad: one after another in memory. Good: interleaved.
// expect: uncoalesced on 8800gtx gtx580 gtx980 h200
// cutrace: contiguous<<<2, 64>>>(x:f32[128,16]=random:1, a:f32[128,16]=random:2, 16)
// cutrace: interleaved<<<2, 64>>>(xi:f32[16,128]=random:1, ai:f32[16,128]=random:2, 128, 16)

__global__ void contiguous(float *x, const float *a, int n)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 1; k < n; ++k)
        x[s * n + k] -= a[s * n + k] * x[s * n + k - 1];
}

__global__ void interleaved(float *x, const float *a, int systems, int n)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 1; k < n; ++k)
        x[k * systems + s] -= a[k * systems + s] * x[(k - 1) * systems + s];
}
