// A relaxation step from global memory, and from a tile with its edge.
// expect: nothing on gtx580 gtx980 h200
// cutrace: plain<<<(4, 16), (32, 8)>>>(out:f32[128,128], in:f32[128,128]=random:1, 128)
// cutrace: tiled<<<(4, 16), (32, 8)>>>(out, in, 128)

__global__ void plain(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        out[y * n + x] = 0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] +
                                  in[(y + 1) * n + x]);
}

__global__ void tiled(float *out, const float *in, int n)
{
    __shared__ float t[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, i = threadIdx.x + 1,
        j = threadIdx.y + 1;
    t[j][i] = in[y * n + x];
    if (threadIdx.x == 0 && x > 0)
        t[j][0] = in[y * n + x - 1];
    if (threadIdx.x == 31 && x < n - 1)
        t[j][33] = in[y * n + x + 1];
    if (threadIdx.y == 0 && y > 0)
        t[0][i] = in[(y - 1) * n + x];
    if (threadIdx.y == 7 && y < n - 1)
        t[9][i] = in[(y + 1) * n + x];
    __syncthreads();
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        out[y * n + x] = 0.25f * (t[j][i - 1] + t[j][i + 1] + t[j - 1][i] + t[j + 1][i]);
}
