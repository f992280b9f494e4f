// Variants of one task each, as grids.cu has them: loops that barriers part, private histograms,
// and work that is shared out unevenly.

#define I (blockIdx.x * blockDim.x + threadIdx.x)

// cutrace: tiles<0><<<(32, 32), (16, 16)>>>(c:f32[262144], a:f32[1048576]=random:1, b:f32[1048576]=random:2, 512)
// cutrace: tiles<1><<<(16, 16), (32, 32)>>>(c, a, b, 512)
// cutrace: tiles<2><<<(32, 32), (16, 16)>>>(c, a, b, 512)
// cutrace: tiles<3><<<(16, 16), (16, 16)>>>(c, a, b, 512)
// cutrace: tiles<4><<<(64, 64), (8, 8)>>>(c, a, b, 512)
template <int WAY> __global__ void tiles(float *c, const float *a, const float *b, int n)
{
    const int T = WAY == 1 ? 32 : WAY == 4 ? 8 : 16, each = WAY == 3 ? 2 : 1;
    int x = threadIdx.x, y = threadIdx.y;
    int top = blockIdx.y * T * each, first = blockIdx.x * T * each;
    float sums[each][each] = {};
    if (WAY == 2) {
        for (int k = 0; k < n; k++) sums[0][0] += a[(top + y) * n + k] * b[k * n + first + x];
        c[(top + y) * n + first + x] = sums[0][0];
        return;
    }
    __shared__ float left[T * each][T], right[T][T * each];
    for (int start = 0; start < n; start += T) {
        for (int e = 0; e < each; e++) {
            left[y + T * e][x] = a[(top + y + T * e) * n + start + x];
            right[y][x + T * e] = b[(start + y) * n + first + x + T * e];
        }
        __syncthreads();
        for (int k = 0; k < T; k++)
            for (int i = 0; i < each; i++)
                for (int j = 0; j < each; j++) sums[i][j] += left[y + T * i][k] * right[k][x + T * j];
        __syncthreads();
    }
    for (int i = 0; i < each; i++)
        for (int j = 0; j < each; j++) c[(top + y + T * i) * n + first + x + T * j] = sums[i][j];
}

// cutrace: reduced<0><<<4096, 256>>>(d:f32[4096], a)
// cutrace: reduced<1><<<4096, 256>>>(d, a)
// cutrace: reduced<2><<<4096, 256>>>(d, a)
// cutrace: reduced<3><<<512, 256>>>(d, a)
// cutrace: reduced<4><<<4096, 256>>>(d, a)
template <int WAY> __global__ void reduced(float *out, float *in)
{
    __shared__ float part[256];
    int x = threadIdx.x;
    float sum = 0;
    for (int e = 0; e < (WAY == 3 ? 8 : 1); e++)
        sum += in[(blockIdx.x * (WAY == 3 ? 8 : 1) + e) * 256 + x];
    part[x] = sum;
    __syncthreads();
    if (WAY == 0)
        for (int s = 1; s < blockDim.x; s *= 2) {
            if (x % (2 * s) == 0) part[x] += part[x + s];
            __syncthreads();
        }
    if (WAY == 1)
        for (int s = 1; s < blockDim.x; s *= 2) {
            int at = 2 * s * x;
            if (at < blockDim.x) part[at] += part[at + s];
            __syncthreads();
        }
    if (WAY > 1)
        for (int s = blockDim.x / 2; s > (WAY == 4 ? 16 : 0); s /= 2) {
            if (x < s) part[x] += part[x + s];
            __syncthreads();
        }
    if (WAY == 4 && x < 32) {
        sum = part[x];
        for (int d = 8; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        part[x] = sum;
    }
    if (x == 0) out[blockIdx.x] = part[0];
}

// cutrace: in_place<0><<<2048, 512>>>(b)
// cutrace: in_place<1><<<2048, 512>>>(b)
// cutrace: in_place<2><<<1024, 512>>>(b)
template <int WAY> __global__ void in_place(float *data)
{
    int x = threadIdx.x;
    float *mine = data + blockIdx.x * blockDim.x * (WAY == 2 ? 2 : 1);
    if (WAY == 2) {
        mine[x] += mine[x + blockDim.x];
        __syncthreads();
    }
    if (WAY == 0)
        for (int s = 1; s < blockDim.x; s *= 2) {
            int at = 2 * s * x;
            if (at < blockDim.x) mine[at] += mine[at + s];
            __syncthreads();
        }
    else
        for (int s = blockDim.x / 2; s > 0; s >>= 1) {
            if (x < s) mine[x] += mine[x + s];
            __syncthreads();
        }
}

// cutrace: prefix<0><<<2048, 512>>>(a, b)
// cutrace: prefix<1><<<2048, 256>>>(a, b)
// cutrace: prefix<2><<<2048, 512>>>(a, b)
template <int WAY> __global__ void prefix(float *out, float *in)
{
    __shared__ float room[1024];
    int x = threadIdx.x, n = 512, first = blockIdx.x * n;
    if (WAY == 0) {
        int from = 0;
        room[x] = in[first + x];
        __syncthreads();
        for (int d = 1; d < n; d *= 2) {
            float sum = room[from * 512 + x];
            if (x >= d) sum += room[from * 512 + x - d];
            from = 1 - from;
            room[from * 512 + x] = sum;
            __syncthreads();
        }
        out[first + x] = room[from * 512 + x];
    }
    if (WAY == 1) {
        int step = 1;
        room[2 * x] = in[first + 2 * x], room[2 * x + 1] = in[first + 2 * x + 1];
        for (int d = n / 2; d > 0; d /= 2) {
            __syncthreads();
            if (x < d) room[step * (2 * x + 2) - 1] += room[step * (2 * x + 1) - 1];
            step *= 2;
        }
        if (x == 0) room[n - 1] = 0;
        for (int d = 1; d < n; d *= 2) {
            step /= 2;
            __syncthreads();
            if (x < d) {
                float kept = room[step * (2 * x + 1) - 1];
                room[step * (2 * x + 1) - 1] = room[step * (2 * x + 2) - 1];
                room[step * (2 * x + 2) - 1] += kept;
            }
        }
        __syncthreads();
        out[first + 2 * x] = room[2 * x], out[first + 2 * x + 1] = room[2 * x + 1];
    }
    if (WAY == 2) {
        float sum = in[first + x];
        for (int d = 1; d < 32; d *= 2) {
            float other = __shfl_up_sync(~0u, sum, d);
            if (x % 32 >= d) sum += other;
        }
        if (x % 32 == 31) room[x / 32] = sum;
        __syncthreads();
        float before = 0;
        for (int k = 0; k < x / 32; k++) before += room[k];
        out[first + x] = sum + before;
    }
}

// cutrace: counted<0><<<4096, 256>>>(bins:i32[256], keys:i32[1048576]=random:5)
// cutrace: counted<1><<<4096, 256>>>(bins, keys)
// cutrace: counted<2><<<256, 256>>>(bins, keys)
// cutrace: counted<3><<<4096, 256>>>(bins, keys)
template <int WAY> __global__ void counted(int *bins, int *keys)
{
    __shared__ int mine[256];
    if (WAY == 3) {
        bins[(I * 37) & 255] += 1;
        return;
    }
    if (WAY == 0) {
        atomicAdd(&bins[(I * 37) & 255], 1);
        return;
    }
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int k = I; k < 1048576; k += gridDim.x * blockDim.x) atomicAdd(&mine[(k * 37) & 255], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

struct Pair { float a, b, c, d; };
// cutrace: fields<0><<<1024, 256>>>(a, b)
// cutrace: fields<1><<<1024, 256>>>(a, b)
// cutrace: fields<2><<<1024, 256>>>(a, b)
template <int WAY> __global__ void fields(float *out, float *in)
{
    if (WAY == 0) { Pair *to = (Pair *)out, *from = (Pair *)in; to[I].a = from[I].a + from[I].b; to[I].c = from[I].c + from[I].d; }
    if (WAY == 1) { out[I] = in[I] + in[I + 262144]; out[I + 524288] = in[I + 524288] + in[I + 786432]; }
    if (WAY == 2) { float4 p = ((float4 *)in)[I]; ((float4 *)out)[I] = make_float4(p.x + p.y, p.y, p.z + p.w, p.w); }
}

// cutrace: coarse<0><<<4096, 256>>>(a, b, c1:f32[1048576])
// cutrace: coarse<1><<<2048, 256>>>(a, b, c1)
// cutrace: coarse<2><<<2048, 256>>>(a, b, c1)
// cutrace: coarse<3><<<512, 256>>>(a, b, c1)
template <int WAY> __global__ void coarse(float *a, float *b, float *c)
{
    if (WAY == 0) c[I] = a[I] + b[I];
    if (WAY == 1) for (int k = 0; k < 2; k++) c[2 * I + k] = a[2 * I + k] + b[2 * I + k];
    if (WAY == 2) for (int k = 0; k < 2; k++) c[I + k * 524288] = a[I + k * 524288] + b[I + k * 524288];
    if (WAY == 3) for (int k = 0; k < 8; k++) c[8 * I + k] = a[8 * I + k] + b[8 * I + k];
}

// cutrace: shares<0><<<128, 256>>>(a, b)
// cutrace: shares<1><<<128, 256>>>(a, b)
template <int WAY> __global__ void shares(float *out, float *in)
{
    int row = WAY ? (I & 31) * 1024 + (I >> 5) : I, steps = row / 128;
    float sum = 0;
    for (int k = 0; k < steps; k++) sum += in[(k * 32768 + row) & 1048575];
    out[row] = sum;
}

// cutrace: normed<0><<<2, 256>>>(a, b)
// cutrace: normed<1><<<512, 256>>>(a, b)
// cutrace: normed<2><<<64, 256>>>(a, b)
template <int WAY> __global__ void normed(float *out, float *in)
{
    __shared__ float part[256];
    const int n = 1024;
    int x = threadIdx.x, row = WAY == 0 ? I : WAY == 1 ? blockIdx.x : blockIdx.x * 8 + x / 32;
    int first = WAY == 0 ? 0 : WAY == 1 ? x : x % 32, step = WAY == 0 ? 1 : WAY == 1 ? 256 : 32;
    float sum = 0;
    for (int k = first; k < n; k += step) sum += in[row * n + k] * in[row * n + k];
    if (WAY == 2) for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (WAY == 1) {
        part[x] = sum;
        __syncthreads();
        for (int s = 128; s > 0; s /= 2) {
            if (x < s) part[x] += part[x + s];
            __syncthreads();
        }
        sum = part[0];
    }
    float by = rsqrtf(sum / n);
    for (int k = first; k < n; k += step) out[row * n + k] = in[row * n + k] * by;
}
