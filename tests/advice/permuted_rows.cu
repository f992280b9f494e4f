// A transpose without padding. Bad: columns in one bank. Good: rows are permuted.
// expect: bank_conflicts on gtx580 gtx980 h200
// cutrace: plain<<<(2, 2), (32, 8)>>>(out:f32[64,64], in:f32[64,64]=arange, 64)
// cutrace: swizzled<<<(2, 2), (32, 8)>>>(out, in, 64)

__global__ void plain(float *out, const float *in, int n)
{
    __shared__ float t[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}

__global__ void swizzled(float *out, const float *in, int n)
{
    __shared__ float t[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        t[threadIdx.y + j][threadIdx.x ^ (threadIdx.y + j)] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = t[threadIdx.x][threadIdx.x ^ (threadIdx.y + j)];
}
