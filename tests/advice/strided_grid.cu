// Add vectors with fewer threads than words. Bad: a thread takes words in a row. Good: threads take
// turns.
// expect: uncoalesced on 8800gtx gtx580 h200
// cutrace: badStride<<<4, 128>>>(c:f32[8192], a:f32[8192]=arange, 8192)
// cutrace: goodStride<<<4, 128>>>(c, a, 8192)

__global__ void badStride(float *c, const float *a, int n)
{
    int each = n / (gridDim.x * blockDim.x), first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    for (int i = first; i < first + each; i++) c[i] = 2 * a[i];
}

__global__ void goodStride(float *c, const float *a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        c[i] = 2 * a[i];
}
