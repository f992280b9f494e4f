// Kernels of the kind that people write, large enough that more than a megabyte moves.

typedef unsigned int u32;
#define BARRIER asm volatile("bar.sync 0;" ::: "memory")

// cutrace: transpose<<<(32, 32), (32, 32)>>>(b:f32[1048576], a:f32[1048576]=random:1, 1024)
extern "C" __global__ void transpose(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}
// cutrace: transpose_rows<<<(32, 32), (32, 8)>>>(b, a, 1024)
extern "C" __global__ void transpose_rows(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) out[x * n + y + j] = in[(y + j) * n + x];
}
// cutrace: transpose_read<<<(32, 32), (32, 8)>>>(b, a, 1024)
extern "C" __global__ void transpose_read(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = in[x * n + y + j];
}
// cutrace: transpose_tile<<<(32, 32), (32, 8)>>>(b, a, 1024)
extern "C" __global__ void transpose_tile(float *out, const float *in, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    BARRIER;
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
// cutrace: product<<<(16, 16), (16, 16)>>>(c:f32[65536], p:f32[65536]=random:2, q:f32[65536]=random:3, 256)
extern "C" __global__ void product(float *c, const float *a, const float *b, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
// cutrace: product_tile<<<(16, 16), (16, 16)>>>(c, p, q, 256)
// cutrace: product_tile<<<(32, 32), (16, 16)>>>(b, a, d:f32[1048576]=random:5, 512)
extern "C" __global__ void product_tile(float *c, const float *a, const float *b, int n)
{
    __shared__ float s[16][16], t[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float sum = 0;
    #pragma unroll 1
    for (int m = 0; m < n; m += 16)
    {
        s[ty][tx] = a[y * n + m + tx];
        t[ty][tx] = b[(m + ty) * n + x];
        BARRIER;
        #pragma unroll 1
        for (int k = 0; k < 16; k++) sum += s[ty][k] * t[k][tx];
        BARRIER;
    }
    c[y * n + x] = sum;
}
// cutrace: five_points<<<(32, 128), (32, 8)>>>(b, a, 1024)
// cutrace: five_points<<<(8, 128), (128, 8)>>>(b, a, 1024)
// cutrace: five_points<<<(64, 64), (16, 16)>>>(b, a, 1024)
extern "C" __global__ void five_points(float *out, const float *in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
    {
        int i = y * n + x;
        out[i] = in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n];
    }
}
// cutrace: seven_points<<<(4, 16, 1), (32, 8)>>>(b, a, 128, 64)
extern "C" __global__ void seven_points(float *out, const float *in, int n, int depth)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) return;
    #pragma unroll 1
    for (int z = 1; z < depth - 1; z++)
    {
        int i = (z * n + y) * n + x;
        out[i] = in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n];
    }
}
// cutrace: saxpy<<<4096, 256>>>(b, a)
extern "C" __global__ void saxpy(float *y, const float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i] + y[i];
}
// cutrace: sum_rows<<<4, 256>>>(c, a, 1024)
// cutrace: sum_rows<<<32, 32>>>(c, a, 1024)
extern "C" __global__ void sum_rows(float *out, const float *in, int n)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int x = 0; x < n; x++) sum += in[y * n + x];
    out[y] = sum;
}
// cutrace: sum_columns<<<4, 256>>>(c, a, 1024)
extern "C" __global__ void sum_columns(float *out, const float *in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int y = 0; y < n; y++) sum += in[y * n + x];
    out[x] = sum;
}
// cutrace: reduce<<<1024, 256>>>(c, a)
extern "C" __global__ void reduce(float *out, const float *in)
{
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 1024 + t;
    part[t] = in[i] + in[i + 256] + in[i + 512] + in[i + 768];
    #pragma unroll 1
    for (int s = 128; s > 0; s >>= 1) { BARRIER; if (t < s) part[t] += part[t + s]; }
    if (t == 0) out[blockIdx.x] = part[0];
}
// cutrace: gather<<<1024, 256>>>(b, a, at:i32[1048576]=random:6)
extern "C" __global__ void gather(float *out, const float *in, const int *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[at[i]];
}
// cutrace: scatter<<<1024, 256>>>(b, a, at)
extern "C" __global__ void scatter(float *out, const float *in, const int *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[at[i]] = in[i];
}
// cutrace: near<<<1024, 256>>>(b, a, at)
extern "C" __global__ void near(float *out, const float *in, const int *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i & ~4095) + (at[i] & 4095)];
}
// cutrace: histogram<<<64, 256>>>(bins:u32[4096], at, 262144)
extern "C" __global__ void histogram(u32 *bins, const int *at, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(bins + (at[i] & 4095), 1);
}
// cutrace: structures<<<1024, 256>>>(b, a)
extern "C" __global__ void structures(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile const float *own = (volatile const float *)in + 4 * i;
    out[i] = own[0] * own[1] + own[2];
}
// cutrace: sparse<<<64, 256>>>(c, a, at, p, 16)
extern "C" __global__ void sparse(float *out, const float *values, const int *at, const float *x, int each)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < each; k++) sum += values[row * each + k] * x[at[row * each + k] & 65535];
    out[row] = sum;
}
// cutrace: sparse_warp<<<256, 256>>>(c, a, at, p)
extern "C" __global__ void sparse_warp(float *out, const float *values, const int *at, const float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i >> 5, lane = i & 31;
    float sum = 0;
    #pragma unroll 1
    for (int k = lane; k < 128; k += 32) sum += values[row * 128 + k] * x[at[row * 128 + k] & 65535];
    #pragma unroll 1
    for (int s = 16; s > 0; s >>= 1) sum += __shfl_down_sync(~0u, sum, s);
    if (lane == 0) out[row] = sum;
}
// cutrace: bodies<<<16, 256>>>(b, a, 4096)
extern "C" __global__ void bodies(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float mine = in[4 * i], sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) sum += in[4 * k] - mine;
    out[i] = sum;
}
// cutrace: blur<<<(16, 64), (64, 16)>>>(b, a, 1024, 3)
extern "C" __global__ void blur(float *out, const float *in, int n, int radius)
{
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    #pragma unroll 1
    for (int j = -radius; j <= radius; j++)
        #pragma unroll 1
        for (int i = -radius; i <= radius; i++)
            sum += in[min(max(y + j, 0), n - 1) * n + min(max(x + i, 0), n - 1)];
    out[y * n + x] = sum;
}
// cutrace: butterfly<<<1024, 256>>>(b, a, 1)
// cutrace: butterfly<<<1024, 256>>>(b, a, 64)
// cutrace: butterfly<<<1024, 256>>>(b, a, 4096)
extern "C" __global__ void butterfly(float *out, const float *in, int half)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, low = (i / half) * 2 * half + i % half;
    float u = in[low], v = in[low + half];
    out[low] = u + v;
    out[low + half] = u - v;
}
