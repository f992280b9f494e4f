// Half of a red-black relaxation. Bad: every other thread works. Good: red and black are arrays of
// their own.
// expect: divergence on gtx580 gtx980 h200
// cutrace: redBlack<<<(4, 16), (32, 8)>>>(u:f32[128,128]=random:1, 128, 0)
// cutrace: compact<<<(2, 16), (32, 8)>>>(red:f32[128,64]=random:1, black:f32[128,64]=random:2, 64)

__device__ float relax(float a, float b, float c, float d, float e)
{
    return 0.1f * a + 0.225f * (b + c + d + e) - 0.01f * a * a * a;
}

__global__ void redBlack(float *u, int n, int colour)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    if ((x + y) % 2 == colour)
        u[y * n + x] = relax(u[y * n + x], u[y * n + x - 1], u[y * n + x + 1], u[(y - 1) * n + x],
                             u[(y + 1) * n + x]);
}

__global__ void compact(float *red, const float *black, int half)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 1 || y < 1 || x >= half - 1 || y >= 127)
        return;
    int side = y & 1 ? x + 1 : x - 1;
    red[y * half + x] = relax(red[y * half + x], black[y * half + x], black[y * half + side],
                              black[(y - 1) * half + x], black[(y + 1) * half + x]);
}
