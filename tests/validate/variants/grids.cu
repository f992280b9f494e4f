// Variants of one task each, for the order of estimates: test_variants.py has the tasks.
// Kernels of a task have its name, and compute the same.

#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL (gridDim.x * blockDim.x)

// cutrace: doubled<0><<<(32, 128), (32, 8)>>>(a:f32[1048576]=random:1, b:f32[1048576]=random:2)
// cutrace: doubled<1><<<(32, 128), (32, 8)>>>(a, b)
// cutrace: doubled<2><<<1024, 256>>>(a, b)
template <int WAY> __global__ void doubled(float *out, const float *in)
{
    if (WAY == 2) {
        float4 v = ((const float4 *)in)[I];
        ((float4 *)out)[I] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
        return;
    }
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int at = WAY ? y * 1024 + x : x * 1024 + y;
    out[at] = 2 * in[at];
}

// cutrace: turned<0><<<(32, 32), (32, 32)>>>(a, b)
// cutrace: turned<1><<<(32, 32), (32, 32)>>>(a, b)
// cutrace: turned<2><<<(32, 32), (32, 32)>>>(a, b)
// cutrace: turned<3><<<(32, 32), (32, 8)>>>(a, b)
template <int WAY> __global__ void turned(float *out, const float *in)
{
    int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * 32, top = blockIdx.y * 32;
    if (WAY == 0) {
        out[(left + x) * 1024 + top + y] = in[(top + y) * 1024 + left + x];
        return;
    }
    __shared__ float tile[32][WAY == 1 ? 32 : 33];
    int step = WAY == 3 ? 8 : 32;
    for (int k = 0; k < 32; k += step) tile[y + k][x] = in[(top + y + k) * 1024 + left + x];
    __syncthreads();
    for (int k = 0; k < 32; k += step) out[(left + y + k) * 1024 + top + x] = tile[x][y + k];
}

// cutrace: product<0><<<(16, 16), (16, 16)>>>(c:f32[65536], a, b)
// cutrace: product<1><<<(16, 16), (16, 16)>>>(c, a, b)
// cutrace: product<2><<<(16, 16), (16, 16)>>>(c, a, b)
// cutrace: product<3><<<(16, 4), (16, 16)>>>(c, a, b)
template <int WAY> __global__ void product(float *c, const float *a, const float *b)
{
    const int n = 256;
    int x = threadIdx.x, y = threadIdx.y;
    if (WAY < 2) {
        int row = blockIdx.x * 16 + (WAY ? y : x), column = blockIdx.y * 16 + (WAY ? x : y);
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
        c[row * n + column] = sum;
        return;
    }
    const int each = WAY == 2 ? 1 : 4;
    __shared__ float left[16 * each][16], right[16][16];
    float sums[each] = {};
    int column = blockIdx.x * 16 + x, top = blockIdx.y * 16 * each;
    for (int first = 0; first < n; first += 16) {
        for (int e = 0; e < each; e++) left[y + 16 * e][x] = a[(top + y + 16 * e) * n + first + x];
        right[y][x] = b[(first + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            for (int e = 0; e < each; e++) sums[e] += left[y + 16 * e][k] * right[k][x];
        __syncthreads();
    }
    for (int e = 0; e < each; e++) c[(top + y + 16 * e) * n + column] = sums[e];
}

// cutrace: cross<0><<<(32, 128), (32, 8)>>>(a, b)
// cutrace: cross<1><<<(32, 128), (32, 8)>>>(a, b)
// cutrace: cross<2><<<(32, 32), (32, 8)>>>(a, b)
template <int WAY> __global__ void cross(float *out, const float *in)
{
    const int n = 1024;
    int x = blockIdx.x * 32 + threadIdx.x;
    if (WAY == 1) {
        __shared__ float tile[10][34];
        int y = blockIdx.y * 8 + threadIdx.y;
        for (int r = threadIdx.y; r < 10; r += 8)
            for (int c = threadIdx.x; c < 34; c += 32) {
                int from_y = min(max((int)(blockIdx.y * 8 + r) - 1, 0), n - 1);
                int from_x = min(max((int)(blockIdx.x * 32 + c) - 1, 0), n - 1);
                tile[r][c] = in[from_y * n + from_x];
            }
        __syncthreads();
        int r = threadIdx.y + 1, c = threadIdx.x + 1;
        if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
            out[y * n + x] = tile[r][c] + tile[r - 1][c] + tile[r + 1][c] + tile[r][c - 1] + tile[r][c + 1];
        return;
    }
    const int rows = WAY ? 4 : 1;
    int top = (blockIdx.y * 8 + threadIdx.y) * rows;
    for (int y = top; y < top + rows; y++)
        if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
            out[y * n + x] = in[y * n + x] + in[(y - 1) * n + x] + in[(y + 1) * n + x]
                + in[y * n + x - 1] + in[y * n + x + 1];
}

// cutrace: column_sums<0><<<8, 128>>>(c, a)
// cutrace: column_sums<1><<<32, (32, 8)>>>(c, a)
// cutrace: column_sums<2><<<32, (32, 32)>>>(c, a)
template <int WAY> __global__ void column_sums(float *out, const float *in)
{
    float sum = 0;
    if (WAY == 0) {
        for (int y = 0; y < 1024; y++) sum += in[y * 1024 + I];
        out[I] = sum;
        return;
    }
    __shared__ float part[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, step = WAY == 1 ? 8 : 32;
    for (int y = threadIdx.y; y < 1024; y += step) sum += in[y * 1024 + x];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y) return;
    for (int k = 1; k < step; k++) sum += part[k][threadIdx.x];
    out[x] = sum;
}

// cutrace: row_sums<0><<<8, 128>>>(c, a)
// cutrace: row_sums<1><<<256, 128>>>(c, a)
// cutrace: row_sums<2><<<1024, 128>>>(c, a)
template <int WAY> __global__ void row_sums(float *out, const float *in)
{
    float sum = 0;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = WAY == 0 ? I : WAY == 1 ? blockIdx.x * 4 + warp : blockIdx.x;
    int first = WAY == 0 ? 0 : WAY == 1 ? lane : threadIdx.x;
    for (int k = first; k < 1024; k += WAY == 0 ? 1 : WAY == 1 ? 32 : 128) sum += in[row * 1024 + k];
    if (WAY) for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (WAY == 2) {
        __shared__ float part[4];
        if (!lane) part[warp] = sum;
        __syncthreads();
        sum = part[0] + part[1] + part[2] + part[3];
    }
    if (!first) out[row] = sum;
}

// cutrace: softmax<0><<<4, 128>>>(a, b)
// cutrace: softmax<1><<<128, 128>>>(a, b)
// cutrace: softmax<2><<<512, 256>>>(a, b)
template <int WAY> __global__ void softmax(float *out, const float *in)
{
    const int n = 512;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = WAY == 0 ? I : WAY == 1 ? blockIdx.x * 4 + warp : blockIdx.x;
    int first = WAY == 0 ? 0 : WAY == 1 ? lane : threadIdx.x, step = WAY == 0 ? 1 : WAY == 1 ? 32 : 256;
    float sum = 0;
    for (int k = first; k < n; k += step) sum += __expf(in[row * n + k]);
    if (WAY) for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (WAY == 2) {
        __shared__ float part[8];
        if (!lane) part[warp] = sum;
        __syncthreads();
        sum = 0;
        for (int k = 0; k < 8; k++) sum += part[k];
    }
    for (int k = first; k < n; k += step) out[row * n + k] = __expf(in[row * n + k]) / sum;
}

// cutrace: by_vector<0><<<8, 128>>>(c, a, b)
// cutrace: by_vector<1><<<256, 128>>>(c, a, b)
// cutrace: by_vector<2><<<8, 128>>>(c, a, b)
template <int WAY> __global__ void by_vector(float *out, const float *m, const float *v)
{
    float sum = 0;
    if (WAY == 1) {
        int row = blockIdx.x * 4 + threadIdx.x / 32;
        for (int k = threadIdx.x % 32; k < 1024; k += 32) sum += m[row * 1024 + k] * v[k];
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x % 32 == 0) out[row] = sum;
        return;
    }
    for (int k = 0; k < 1024; k++) sum += m[WAY ? k * 1024 + I : I * 1024 + k] * v[k];
    out[I] = sum;
}
