// More kernels whose times the profiler measured (h200_more.json, h100_more.json), many of them in
// two or three ways: docs/time.md holds bounds and estimates to them. No parameter is of them.

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x
#define ALL gridDim.x * blockDim.x

// cutrace: scale<float><<<8192, 256>>>(a:f32[4194304]=random:1, b:f32[4194304]=random:2, 2097152)
// cutrace: scale<float2><<<4096, 256>>>(a, b, 1048576)
// cutrace: scale<float4><<<2048, 256>>>(a, b, 524288)
__device__ float by(float v) { return v * 3; }
__device__ float2 by(float2 v) { return make_float2(v.x * 3, v.y * 3); }
__device__ float4 by(float4 v) { return make_float4(v.x * 3, v.y * 3, v.z * 3, v.w * 3); }
template <class T> __global__ void scale(T *out, const T *in, int n)
{
    INDEX;
    if (i < n) out[i] = by(in[i]);
}
// cutrace: rows<0><<<16, 128>>>(a, b, 2048, 1024)
// cutrace: rows<1><<<512, 128>>>(a, b, 2048, 1024)
// cutrace: rows<2><<<2048, 128>>>(a, b, 2048, 1024)
template <int WAY> __global__ void rows(float *out, const float *m, int n, int width)
{
    __shared__ float part[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = WAY == 0 ? blockIdx.x * 128 + threadIdx.x : WAY == 1 ? blockIdx.x * 4 + warp : blockIdx.x;
    int first = WAY == 0 ? 0 : WAY == 1 ? lane : threadIdx.x, step = WAY == 0 ? 1 : WAY == 1 ? 32 : 128;
    float sum = 0;
    for (int k = first; k < width; k += step) sum += m[row * width + k] * m[k];
    if (WAY) for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (WAY == 2) {
        if (lane == 0) part[warp] = sum;
        __syncthreads();
        sum = part[0] + part[1] + part[2] + part[3];
    }
    if (WAY == 0 || (WAY == 1 ? lane : (int)threadIdx.x) == 0) out[row] = sum;
}
// cutrace: sparse<0><<<128, 256>>>(a, b, keys:i32[1048576]=random:5, 16)
// cutrace: sparse<1><<<4096, 256>>>(a, b, keys, 16)
template <int WAY> __global__ void sparse(float *out, const float *x, const int *columns, int per)
{
    INDEX;
    int row = WAY ? i / 32 : i, lane = i % 32;
    float sum = 0;
    for (int k = WAY ? lane : 0; k < per; k += WAY ? 32 : 1)
        sum += x[columns[(row * per + k) & 1048575] & 1048575];
    if (WAY) for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (!WAY || lane == 0) out[row] = sum;
}
// cutrace: count<<<1024, 256>>>(bins:i32[1048576], keys, 15)
// cutrace: count<<<1024, 256>>>(bins, keys, 1023)
// cutrace: count<<<1024, 256>>>(bins, keys, 65535)
// cutrace: count<<<1024, 256>>>(bins, keys, 1048575)
extern "C" __global__ void count(int *bins, const int *keys, int mask)
{
    INDEX;
    atomicAdd(&bins[keys[i] & mask], 1);
}
// cutrace: count_own<<<132, 256>>>(bins, keys, 1048576)
// cutrace: count_own<<<1056, 256>>>(bins, keys, 1048576)
extern "C" __global__ void count_own(int *bins, const int *keys, int n)
{
    __shared__ int mine[64];
    if (threadIdx.x < 64) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += ALL) atomicAdd(&mine[keys[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
// cutrace: add_all<0><<<2048, 256>>>(a, b)
// cutrace: add_all<1><<<2048, 256>>>(a, b)
// cutrace: add_all<2><<<2048, 256>>>(a, b)
template <int WAY> __global__ void add_all(float *sum, const float *in)
{
    __shared__ float part[8];
    INDEX;
    float v = in[i];
    if (WAY) for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (WAY == 2) {
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
        __syncthreads();
        if (threadIdx.x < 8) v = part[threadIdx.x];
        if (threadIdx.x < 8) for (int d = 4; d; d /= 2) v += __shfl_down_sync(255, v, d);
    }
    if (WAY == 0 || threadIdx.x % (WAY == 1 ? 32 : 256) == 0) atomicAdd(sum, v);
}
// cutrace: insert<<<1024, 256>>>(table:i32[1048576], keys, 1048575)
// cutrace: insert<<<1024, 256>>>(small:i32[524288], keys, 524287)
extern "C" __global__ void insert(int *table, const int *keys, int mask)
{
    INDEX;
    int key = keys[i] | 1;
    unsigned at = key * 2654435761u >> 8;
    for (int k = 0; k < 16; k++) {
        int found = atomicCAS(&table[at & mask], 0, key);
        if (found == 0 || found == key) break;
        at++;
    }
}
__constant__ float weights[32];
// cutrace: smooth<0><<<4096, 256>>>(a, b, 1048576)
// cutrace: smooth<1><<<4096, 256>>>(a, b, 1048576)
template <int WAY> __global__ void smooth(float *out, const float *in, int n)
{
    __shared__ float tile[256 + 16];
    INDEX;
    float sum = 0;
    if (WAY == 0) {
        for (int k = -8; k <= 8; k++) if (i + k >= 0 && i + k < n) sum += in[i + k] * weights[k + 8];
    } else {
        tile[threadIdx.x + 8] = in[i];
        if (threadIdx.x < 8) {
            tile[threadIdx.x] = i >= 8 ? in[i - 8] : 0;
            tile[threadIdx.x + 264] = i + 256 < n ? in[i + 256] : 0;
        }
        __syncthreads();
        for (int k = -8; k <= 8; k++) sum += tile[threadIdx.x + 8 + k] * weights[k + 8];
    }
    out[i] = sum;
}
// cutrace: nine<<<(32, 128), (32, 8)>>>(a, b, 1024)
// cutrace: nine<<<(64, 32), (16, 32)>>>(a, b, 1024)
extern "C" __global__ void nine(float *out, const float *in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += in[min(max(y + dy, 0), n - 1) * n + min(max(x + dx, 0), n - 1)];
    out[y * n + x] = sum / 9;
}
// cutrace: blocks_of<0><<<(16, 32), (32, 8)>>>(a, b, b, 512)
// cutrace: blocks_of<1><<<(8, 8), (16, 16)>>>(a, b, b, 512)
template <int WAY> __global__ void blocks_of(float *c, const float *a, const float *b, int n)
{
    if (WAY == 0) {
        int x = blockIdx.x * 32 + threadIdx.x, y = (blockIdx.y * 8 + threadIdx.y) * 2;
        float s = 0, t = 0;
        for (int k = 0; k < n; k++) { float v = b[k * n + x]; s += a[y * n + k] * v; t += a[y * n + n + k] * v; }
        c[y * n + x] = s;
        c[y * n + n + x] = t;
        return;
    }
    __shared__ float as[16][64], bs[16][64];
    float sum[4][4] = {};
    int t = threadIdx.y * 16 + threadIdx.x;
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int l = t; l < 1024; l += 256) {
            as[l % 16][l / 16] = a[(blockIdx.y * 64 + l / 16) * n + k0 + l % 16];
            bs[l / 64][l % 64] = b[(k0 + l / 64) * n + blockIdx.x * 64 + l % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 4; x++) sum[y][x] += as[k][threadIdx.y * 4 + y] * bs[k][threadIdx.x * 4 + x];
        __syncthreads();
    }
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            c[(blockIdx.y * 64 + threadIdx.y * 4 + y) * n + blockIdx.x * 64 + threadIdx.x * 4 + x] = sum[y][x];
}
// cutrace: swapped<0><<<(16, 16), (16, 16)>>>(a, b, b, 256)
// cutrace: swapped<1><<<(16, 16), (16, 16)>>>(a, b, b, 256)
template <int WAY> __global__ void swapped(float *c, const float *a, const float *b, int n)
{
    int x = blockIdx.x * 16 + (WAY ? threadIdx.y : threadIdx.x), y = blockIdx.y * 16 + (WAY ? threadIdx.x : threadIdx.y);
    for (int k = 0; k < n; k++) c[y * n + x] += a[y * n + k] * b[k * n + x];
}
// cutrace: pi<<<264, 256>>>(bins, 512)
// cutrace: pi<<<16, 64>>>(bins, 4096)
extern "C" __global__ void pi(int *out, int times)
{
    INDEX;
    unsigned x = i * 2654435761u + 1;
    int inside = 0;
    for (int k = 0; k < times; k++) {
        x = x * 1664525u + 1013904223u;
        float a = (x >> 8) * (1.0f / 16777216);
        x = x * 1664525u + 1013904223u;
        float b = (x >> 8) * (1.0f / 16777216);
        inside += a * a + b * b < 1;
    }
    out[i] = inside;
}
// cutrace: fractal_double<<<(16, 32), (16, 16)>>>(bins, 256, 128)
extern "C" __global__ void fractal_double(int *out, int width, int most)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, k = 0;
    double cx = x * 3.0 / width - 2, cy = y * 2.0 / 512 - 1, a = 0, b = 0;
    while (k < most && a * a + b * b < 4) { double t = a * a - b * b + cx; b = 2 * a * b + cy; a = t; k++; }
    out[y * width + x] = k;
}
// cutrace: options_double<<<512, 256>>>(x:f64[524288]=random:3, y:f64[524288]=random:4)
extern "C" __global__ void options_double(double *out, const double *price)
{
    INDEX;
    double s = price[i] * 30 + 5, root = sqrt(1.5), d1 = (log(s / 20) + 0.065 * 1.5) / (0.3 * root), d2 = d1 - 0.3 * root;
    out[i] = s * normcdf(d1) - 20 * exp(-0.03) * normcdf(d2);
}
// cutrace: compare<<<2048, 256>>>(keys, 1, 4)
// cutrace: compare<<<2048, 256>>>(keys, 1024, 2048)
extern "C" __global__ void compare(int *keys, int j, int k)
{
    INDEX;
    int other = i ^ j;
    if (other > i && (keys[i] > keys[other]) == !(i & k)) { int v = keys[i]; keys[i] = keys[other]; keys[other] = v; }
}
// cutrace: pick<<<2048, 256>>>(a, b, keys, 4194303)
// cutrace: pick<<<2048, 256>>>(a, b, keys, 65535)
// cutrace: pick<<<2048, 256>>>(a, b, keys, 2047)
extern "C" __global__ void pick(float *out, const float *in, const int *keys, int mask)
{
    INDEX;
    out[i] = in[keys[i] * 7 & mask];
}
// cutrace: put<<<2048, 256>>>(a, b, keys, 4194303)
// cutrace: put<<<2048, 256>>>(a, b, keys, 65535)
extern "C" __global__ void put(float *out, const float *in, const int *keys, int mask)
{
    INDEX;
    out[keys[i] * 7 & mask] = in[i];
}
// cutrace: chase<<<1, 32>>>(bins, keys, 256)
// cutrace: chase<<<132, 32>>>(bins, keys, 256)
// cutrace: chase<<<264, 512>>>(bins, keys, 64)
extern "C" __global__ void chase(int *out, const int *next, int hops)
{
    INDEX;
    int at = i * 977;
    for (int k = 0; k < hops; k++) at = (next[at & 1048575] >> 3) + k * 31;
    out[i] = at;
}
struct Body { float x, y, z, w, vx, vy, vz, m; };
// cutrace: bodies_packed<<<1024, 256>>>(a, 262144)
// cutrace: bodies_apart<<<1024, 256>>>(a, 262144)
extern "C" __global__ void bodies_packed(Body *at, int n)
{
    INDEX;
    at[i].x += at[i].vx * 0.1f; at[i].y += at[i].vy * 0.1f; at[i].z += at[i].vz * 0.1f;
}
extern "C" __global__ void bodies_apart(float *at, int n)
{
    INDEX;
    for (int k = 0; k < 3; k++) at[i + k * n] += at[i + (k + 4) * n] * 0.1f;
}
// cutrace: apart<0><<<1024, 256>>>(a, b, 64)
// cutrace: apart<1><<<1024, 256>>>(a, b, 64)
template <int WAY> __global__ void apart(float *out, const float *in, int times)
{
    INDEX;
    float v = in[i];
    if (WAY ? threadIdx.x & 1 : threadIdx.x & 32)
        for (int k = 0; k < times; k++) v = v * 1.01f + sqrtf(v);
    else
        for (int k = 0; k < times; k++) v = v * 0.99f + __expf(-v);
    out[i] = v;
}
// cutrace: uneven<<<1024, 128>>>(a, b, 256)
// cutrace: uneven<<<132, 1024>>>(a, b, 256)
extern "C" __global__ void uneven(float *out, const float *in, int most)
{
    INDEX;
    float v = in[i];
    int times = (i * 2654435761u >> 16) & (most - 1);
    for (int k = 0; k < times; k++) v = v * 0.99f + 0.5f;
    out[i] = v;
}
// cutrace: table_walk<<<1024, 256>>>(bins, keys, 16)
__constant__ int steps[256];
extern "C" __global__ void table_walk(int *out, const int *in, int times)
{
    INDEX;
    unsigned v = in[i], c = ~0u;
    for (int k = 0; k < times; k++) { c = (c >> 8) ^ steps[(c ^ v) & 255]; v = v >> 1 | v << 31; }
    out[i] = c;
}
// cutrace: lookup<<<1024, 256>>>(a, keys, 64)
extern "C" __global__ void lookup(float *out, const int *in, int times)
{
    INDEX;
    float mine[32];
    for (int k = 0; k < 32; k++) mine[k] = k + i;
    unsigned x = in[i];
    float sum = 0;
    for (int k = 0; k < times; k++) { x = x * 1664525u + 1013904223u; mine[x >> 27] += 1; sum += mine[(x >> 20) & 31]; }
    out[i] = sum;
}
// cutrace: cholesky<<<264, 32>>>(a, b)
extern "C" __global__ void cholesky(float *out, const float *in)
{
    __shared__ float m[32][33];
    int t = threadIdx.x;
    for (int k = 0; k < 32; k++) m[k][t] = in[blockIdx.x * 1024 + k * 32 + t] + (k == t ? 40 : 0);
    __syncwarp();
    for (int k = 0; k < 32; k++) {
        float d = sqrtf(m[k][k]);
        __syncwarp();
        if (t >= k) m[t][k] = t == k ? d : m[t][k] / d;
        __syncwarp();
        if (t > k) for (int j = k + 1; j <= t; j++) m[t][j] -= m[t][k] * m[j][k];
        __syncwarp();
    }
    for (int k = 0; k < 32; k++) out[blockIdx.x * 1024 + k * 32 + t] = m[k][t];
}
// cutrace: scan<0><<<1024, 512>>>(a, b)
// cutrace: scan<1><<<1024, 512>>>(a, b)
template <int WAY> __global__ void scan(float *out, const float *in)
{
    __shared__ float s[2][512], part[16];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    float v = in[i];
    if (WAY == 0) {
        int now = 0;
        s[0][t] = v;
        __syncthreads();
        for (int d = 1; d < 512; d *= 2) {
            s[1 - now][t] = t >= d ? s[now][t] + s[now][t - d] : s[now][t];
            now = 1 - now;
            __syncthreads();
        }
        out[i] = s[now][t];
        return;
    }
    for (int d = 1; d < 32; d *= 2) { float w = __shfl_up_sync(~0u, v, d); if (t % 32 >= d) v += w; }
    if (t % 32 == 31) part[t / 32] = v;
    __syncthreads();
    if (t < 32) {
        float p = t < 16 ? part[t] : 0;
        for (int d = 1; d < 16; d *= 2) { float w = __shfl_up_sync(~0u, p, d); if (t >= d) p += w; }
        if (t < 16) part[t] = p;
    }
    __syncthreads();
    out[i] = v + (t >= 32 ? part[t / 32 - 1] : 0);
}
// cutrace: normalize<<<2048, 128>>>(a, b, 1024)
// cutrace: normalize<<<2048, 1024>>>(a, b, 1024)
extern "C" __global__ void normalize(float *out, const float *in, int n)
{
    __shared__ float sums[2][32];
    int t = threadIdx.x, base = blockIdx.x * n;
    float s = 0, q = 0;
    for (int k = t; k < n; k += blockDim.x) { float v = in[base + k]; s += v; q += v * v; }
    for (int d = 16; d; d /= 2) { s += __shfl_xor_sync(~0u, s, d); q += __shfl_xor_sync(~0u, q, d); }
    if (t % 32 == 0) { sums[0][t / 32] = s; sums[1][t / 32] = q; }
    __syncthreads();
    s = q = 0;
    for (int k = 0; k < blockDim.x / 32; k++) { s += sums[0][k]; q += sums[1][k]; }
    float mean = s / n, r = rsqrtf(q / n - mean * mean + 1e-5f);
    for (int k = t; k < n; k += blockDim.x) out[base + k] = (in[base + k] - mean) * r;
}
// cutrace: life<<<(64, 256), (32, 8)>>>(cells:u8[4194304], next:u8[4194304], 2048)
extern "C" __global__ void life(unsigned char *out, const unsigned char *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) sum += in[((y + dy) & (n - 1)) * n + ((x + dx) & (n - 1))];
    out[y * n + x] = sum == 3 || (sum == 2 && in[y * n + x]);
}
// cutrace: gray<<<4096, 256>>>(next, cells, 1048576)
extern "C" __global__ void gray(unsigned char *out, const unsigned char *rgb, int n)
{
    INDEX;
    out[i] = (rgb[3 * i] * 77 + rgb[3 * i + 1] * 151 + rgb[3 * i + 2] * 28) >> 8;
}
// cutrace: nearest<<<64, 256>>>(a, b, 512)
extern "C" __global__ void nearest(float *out, const float4 *at, int n)
{
    INDEX;
    float4 p = at[i];
    float best = 1e30f;
    for (int k = 0; k < n; k++) {
        float4 q = at[k];
        float d = (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) + (p.z - q.z) * (p.z - q.z);
        best = fminf(best, d);
    }
    out[i] = best;
}
// cutrace: paths<<<(32, 128), (32, 8)>>>(a, 1024, 17)
extern "C" __global__ void paths(float *d, int n, int k)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float via = d[y * n + k] + d[k * n + x];
    if (via < d[y * n + x]) d[y * n + x] = via;
}
// cutrace: visit<<<512, 256>>>(bins, keys, 8)
extern "C" __global__ void visit(int *seen, const int *edges, int per)
{
    INDEX;
    if (edges[i] & 3) return;
    for (int k = 0; k < per; k++) {
        int to = edges[(i * per + k) & 1048575] & 1048575;
        if (!seen[to]) seen[to] = i;
    }
}
// cutrace: powers<<<1024, 256>>>(a, b)
extern "C" __global__ void powers(float *out, const float *in)
{
    INDEX;
    out[i] = powf(in[i] + 1, 1.7f) + tanhf(in[i]) + atan2f(in[i], 0.3f);
}
// cutrace: digits<<<512, 256>>>(bins, keys)
extern "C" __global__ void digits(int *out, const int *in)
{
    INDEX;
    unsigned v = in[i];
    int sum = 0;
    while (v) { sum += v % 10; v /= 10; }
    out[i] = sum;
}
// cutrace: alone<<<1, 32>>>(a, b, 16384)
// cutrace: alone<<<1, 1024>>>(a, b, 262144)
extern "C" __global__ void alone(float *out, const float *in, int n)
{
    float sum = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) sum += in[k];
    out[threadIdx.x] = sum;
}
// cutrace: wide<<<4096, 32>>>(a, b, 8)
// cutrace: wide<<<128, 1024>>>(a, b, 8)
extern "C" __global__ void wide(float *out, const float *in, int times)
{
    INDEX;
    float v = in[i];
    for (int k = 1; k < times; k++) v += in[i + k * 131072];
    out[i] = v;
}
// cutrace: heat<<<(8, 32, 64), (32, 4)>>>(a, b, 256, 128)
extern "C" __global__ void heat(float *out, const float *in, int nx, int ny)
{
    __shared__ float tile[6][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z;
    int i = (z * ny + y) * nx + x, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = in[i];
    if (tx == 1) tile[ty][0] = x ? in[i - 1] : 0;
    if (tx == 32) tile[ty][33] = x < nx - 1 ? in[i + 1] : 0;
    if (ty == 1) tile[0][tx] = y ? in[i - nx] : 0;
    if (ty == 4) tile[5][tx] = y < ny - 1 ? in[i + nx] : 0;
    __syncthreads();
    float up = z ? in[i - nx * ny] : 0, down = z < 63 ? in[i + nx * ny] : 0;
    out[i] = 0.4f * tile[ty][tx] + 0.1f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] + up + down);
}
