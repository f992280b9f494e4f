// Kernels as people write them, of other kinds than those of everyday.cu and without its pragmas,
// captured before any model saw them: docs/validation.md says how many counts were right then.

#include <cuda_fp16.h>

typedef unsigned char u8;
typedef unsigned int u32;

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

// cutrace: jacobi<<<(32, 64), (32, 16)>>>(after:f32[1048576], before:f32[1048576]=random:1, 1024)
__global__ void jacobi(float *after, const float *before, int n)
{
    __shared__ float tile[18][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = before[y * n + x];
    if (threadIdx.x == 0) tile[ty][0] = x ? before[y * n + x - 1] : 0;
    if (threadIdx.x == 31) tile[ty][33] = x < n - 1 ? before[y * n + x + 1] : 0;
    if (threadIdx.y == 0) tile[0][tx] = y ? before[(y - 1) * n + x] : 0;
    if (threadIdx.y == 15) tile[17][tx] = y < n - 1 ? before[(y + 1) * n + x] : 0;
    __syncthreads();
    after[y * n + x] = 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx]
                                + tile[ty + 1][tx]);
}
// cutrace: march<<<(4, 8), (32, 8)>>>(after, before, 128, 64)
__global__ void march(float *after, const float *before, int n, int depth)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x == n - 1 || y >= n - 1) return;
    int plane = n * n, at = y * n + x + plane;
    float below = before[at - plane], here = before[at], above;
    for (int z = 1; z < depth - 1; z++, at += plane) {
        above = before[at + plane];
        after[at] = below + above + before[at - 1] + before[at + 1] + before[at - n]
                    + before[at + n] - 6 * here;
        below = here, here = above;
    }
}
// cutrace: waves<<<(16, 16), (16, 16)>>>(after, before, also:f32[65536]=random:2, 256)
__global__ void waves(float *next, const float *now, const float *last, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int left = max(x - 1, 0), right = min(x + 1, n - 1), up = max(y - 1, 0), down = min(y + 1, n - 1);
    float middle = now[y * n + x];
    next[y * n + x] = 2 * middle - last[y * n + x]
        + 0.1f * (now[y * n + left] + now[y * n + right] + now[up * n + x] + now[down * n + x]
                  - 4 * middle);
}

struct Particle { float3 place, speed; float mass; int kind; };
struct Record { int key; short tag; u8 flag, level; double value; };

// cutrace: to_structures<<<64, 128>>>(p:f32[65536], x:f32[8192]=random:3, y:f32[8192]=random:4,
//          z:f32[8192]=random:5, 8192)
__global__ void to_structures(Particle *p, const float *x, const float *y, const float *z, int n)
{
    INDEX;
    if (i >= n) return;
    Particle mine = {{x[i], y[i], z[i]}, {0, 0, 0}, 1.0f, i & 3};
    p[i] = mine;
}
// cutrace: to_arrays<<<64, 128>>>(x, y, z, p, 8192)
__global__ void to_arrays(float *x, float *y, float *z, const Particle *p, int n)
{
    INDEX;
    if (i < n) x[i] = p[i].place.x, y[i] = p[i].place.y, z[i] = p[i].place.z;
}
// cutrace: drift<<<64, 128>>>(p, 8192)
__global__ void drift(Particle *p, int n)
{
    INDEX;
    if (i >= n || p[i].kind == 2) return;
    p[i].place.x += 0.01f * p[i].speed.x;
    p[i].place.z += 0.01f * p[i].speed.z;
}
// cutrace: pick_records<<<32, 128>>>(values:f64[4096], records:f64[8192]=random:6, 4096)
__global__ void pick_records(double *values, const Record *records, int n)
{
    INDEX;
    if (i < n) values[i] = records[i].flag & 1 ? records[i].value : (double)records[i].key;
}

#define SKIP(n) ((n) + ((n) >> 5))
// cutrace: scan_padded<<<16, 256>>>(ranks:i32[8192], keys:i32[8192]=random:7)
__global__ void scan_padded(int *out, const int *in)
{
    __shared__ int s[SKIP(512) + 1];
    int t = threadIdx.x, base = blockIdx.x * 512, offset = 1;
    s[SKIP(t)] = in[base + t], s[SKIP(t + 256)] = in[base + t + 256];
    for (int d = 256; d > 0; d >>= 1, offset *= 2) {
        __syncthreads();
        if (t < d) s[SKIP(offset * (2 * t + 2) - 1)] += s[SKIP(offset * (2 * t + 1) - 1)];
    }
    if (t == 0) s[SKIP(511)] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = SKIP(offset * (2 * t + 1) - 1), b = SKIP(offset * (2 * t + 2) - 1), old = s[a];
            s[a] = s[b];
            s[b] += old;
        }
    }
    __syncthreads();
    out[base + t] = s[SKIP(t)], out[base + t + 256] = s[SKIP(t + 256)];
}
// cutrace: scan_warps<<<16, 512>>>(ranks, keys)
__global__ void scan_warps(int *out, const int *in)
{
    __shared__ int totals[16];
    INDEX;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, v = in[i];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += other;
    }
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0 && lane < 16) {
        int total = totals[lane];
        for (int d = 1; d < 16; d *= 2) {
            int other = __shfl_up_sync(0xffff, total, d);
            if (lane >= d) total += other;
        }
        totals[lane] = total;
    }
    __syncthreads();
    out[i] = v + (warp ? totals[warp - 1] : 0);
}
// cutrace: sort_pass<<<16, 256>>>(ranks, keys, 3)
__global__ void sort_pass(int *out, const int *in, int bit)
{
    __shared__ int ones[256], moved[256];
    int t = threadIdx.x, key = in[blockIdx.x * 256 + t], one = key >> bit & 1;
    ones[t] = one;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int other = t >= d ? ones[t - d] : 0;
        __syncthreads();
        ones[t] += other;
        __syncthreads();
    }
    int zeros = 256 - ones[255], to = one ? zeros + ones[t] - 1 : t - ones[t];
    moved[to] = key;
    __syncthreads();
    out[blockIdx.x * 256 + t] = moved[t];
}
// cutrace: odd_even<<<8, 128>>>(ranks)
__global__ void odd_even(int *a)
{
    int *mine = a + blockIdx.x * 256, t = threadIdx.x;
    for (int round = 0; round < 16; round++) {
        int at = 2 * t + (round & 1);
        if (at + 1 < 256 && mine[at] > mine[at + 1]) {
            int kept = mine[at];
            mine[at] = mine[at + 1], mine[at + 1] = kept;
        }
        __syncthreads();
    }
}

__constant__ u8 needle[8] = {1, 0, 2, 1, 0, 0, 3, 1};
// cutrace: find<<<64, 256>>>(found:i32[16384], text:u8[16392]=random:8, 16384)
__global__ void find(int *found, const u8 *text, int n)
{
    INDEX;
    if (i >= n) return;
    int k = 0;
    while (k < 8 && (text[i + k] & 3) == needle[k]) k++;
    found[i] = k;
}
// cutrace: count_words<<<32, 128>>>(found, text, 4)
__global__ void count_words(int *found, const u8 *text, int each)
{
    INDEX;
    int words = 0;
    for (int k = 0; k < each; k++) {
        int at = i * each + k;
        bool blank = text[at] < 64, before = at == 0 || text[at - 1] < 64;
        words += !blank && before;
    }
    found[i] = words;
}

__constant__ float taps[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};
// cutrace: filter_rows<<<(4, 128), 64>>>(after, before, 256)
__global__ void filter_rows(float *out, const float *in, int n)
{
    __shared__ float s[64 + 16];
    int x = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    const float *row = in + blockIdx.y * n;
    s[t] = x >= 8 ? row[x - 8] : 0;
    if (t < 16) s[t + 64] = x + 56 < n ? row[x + 56] : 0;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 17; k++) sum += taps[k] * s[t + k];
    out[blockIdx.y * n + x] = sum;
}
// cutrace: filter_columns<<<(8, 32), (32, 8)>>>(after, before, 256)
__global__ void filter_columns(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int k = -8; k <= 8; k++) sum += taps[k + 8] * in[min(max(y + k, 0), n - 1) * n + x];
    out[y * n + x] = sum;
}
// cutrace: edges<<<(16, 32), (16, 8)>>>(s:i16[65536], image:u8[65536]=random:9, 256)
__global__ void edges(short *out, const u8 *in, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 1 || y < 1 || x > n - 2 || y > n - 2) return;
    const u8 *p = in + y * n + x;
    int across = p[1 - n] + 2 * p[1] + p[1 + n] - p[-1 - n] - 2 * p[-1] - p[n - 1];
    int down = p[n - 1] + 2 * p[n] + p[n + 1] - p[-n - 1] - 2 * p[-n] - p[1 - n];
    out[y * n + x] = abs(across) + abs(down);
}
// cutrace: shrink<<<(5, 12), (32, 8)>>>(small:u8[16384], image, 150, 90, 256)
__global__ void shrink(u8 *out, const u8 *in, int w, int h, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= w || y >= h) return;
    float u = x * (n - 2.0f) / w, v = y * (n - 2.0f) / h;
    int a = u, b = v;
    float fu = u - a, fv = v - b;
    float top = in[b * n + a] * (1 - fu) + in[b * n + a + 1] * fu;
    float bottom = in[(b + 1) * n + a] * (1 - fu) + in[(b + 1) * n + a + 1] * fu;
    out[y * w + x] = top * (1 - fv) + bottom * fv;
}
// cutrace: pool<<<(4, 16, 4), (16, 4)>>>(after, before, 128, 128)
__global__ void pool(float *out, const float *in, int w, int h)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, c = blockIdx.z;
    const float *p = in + (c * h + 2 * y) * w + 2 * x;
    out[(c * h / 2 + y) * (w / 2) + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[w], p[w + 1]));
}
// cutrace: to_columns<<<72, 128>>>(after, before, 32, 32, 3)
__global__ void to_columns(float *out, const float *in, int w, int h, int k)
{
    INDEX;
    int kx = i / (w * h) % k, ky = i / (w * h) / k, x = i % w + kx - 1, y = i / w % h + ky - 1;
    if (ky < k) out[i] = x >= 0 && y >= 0 && x < w && y < h ? in[y * w + x] : 0.0f;
}

// cutrace: axpy_halves<<<32, 256>>>(hy:f16[16384]=random:10, hx:f16[16384]=random:11, 8192)
__global__ void axpy_halves(__half2 *y, const __half2 *x, int n)
{
    INDEX;
    if (i < n) y[i] = __hfma2(__float2half2_rn(1.5f), x[i], y[i]);
}
// cutrace: sum_vectors<<<32, 256>>>(x, before, 65536)
__global__ void sum_vectors(float *sums, const float4 *in, int n)
{
    __shared__ float s[8];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++) sum += s[k];
        sums[blockIdx.x] = sum;
    }
}
// cutrace: complex_product<<<64, 128>>>(after, before, also, 8192)
__global__ void complex_product(float2 *out, const float2 *a, const float2 *b, int n)
{
    INDEX;
    if (i >= n) return;
    float2 u = a[i], v = b[i];
    out[i] = make_float2(u.x * v.x - u.y * v.y, u.x * v.y + u.y * v.x);
}
// cutrace: dot<<<24, 192>>>(values, records, 8000)
__global__ void dot(double *out, const double *in, int n)
{
    __shared__ double s[192];
    double sum = 0;
    for (int i = blockIdx.x * 192 + threadIdx.x; i < n; i += 24 * 192) sum += in[i] * in[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 96; d >= 3; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0] + s[1] + s[2];
}

// cutrace: vector_by_columns<<<8, 128>>>(x, before, y, 1024, 200)
__global__ void vector_by_columns(float *out, const float *m, const float *v, int rows, int columns)
{
    INDEX;
    float sum = 0;
    for (int k = 0; k < columns; k++) sum += m[k * rows + i] * v[k];
    out[i] = sum;
}
// cutrace: vector_in_shared<<<4, 128>>>(x, before, y, 256)
__global__ void vector_in_shared(float *out, const float *m, const float *v, int n)
{
    __shared__ float s[128];
    INDEX;
    float sum = 0;
    for (int k = 0; k < n; k += 128) {
        s[threadIdx.x] = v[k + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) sum += m[i * n + k + j] * s[j];
        __syncthreads();
    }
    out[i] = sum;
}
// cutrace: product_of_four<<<(4, 4), (16, 16)>>>(after, before, before, 128)
__global__ void product_of_four(float *c, const float *a, const float *b, int n)
{
    __shared__ float s[32][17], t[16][33];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32, y = blockIdx.y * 32;
    float sum[2][2] = {};
    for (int k = 0; k < n; k += 16) {
        s[ty][tx] = a[(y + ty) * n + k + tx], s[ty + 16][tx] = a[(y + ty + 16) * n + k + tx];
        t[ty][tx] = b[(k + ty) * n + x + tx], t[ty][tx + 16] = b[(k + ty) * n + x + tx + 16];
        __syncthreads();
        for (int j = 0; j < 16; j++) {
            float u = s[ty][j], v = s[ty + 16][j], p = t[j][tx], q = t[j][tx + 16];
            sum[0][0] += u * p, sum[0][1] += u * q, sum[1][0] += v * p, sum[1][1] += v * q;
        }
        __syncthreads();
    }
    for (int r = 0; r < 2; r++)
        for (int q = 0; q < 2; q++) c[(y + ty + 16 * r) * n + x + tx + 16 * q] = sum[r][q];
}
// cutrace: turn<0><<<(8, 8), (32, 8)>>>(after, before, 256)
// cutrace: turn<1><<<(8, 8), (32, 8)>>>(after, before, 256)
// cutrace: turn<2><<<(8, 8), (32, 8)>>>(after, before, 256)
// cutrace: turn<4><<<(8, 8), (32, 8)>>>(after, before, 256)
template <int PAD> __global__ void turn(float *out, const float *in, int n)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
// cutrace: turn_pairs<<<(8, 8), (16, 16)>>>(after, before, 128)
__global__ void turn_pairs(float2 *out, const float2 *in, int n)
{
    __shared__ float2 tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
// cutrace: reverse_bits<<<64, 128>>>(after, before, 13)
__global__ void reverse_bits(float2 *out, const float2 *in, int bits)
{
    INDEX;
    out[__brev(i) >> (32 - bits)] = in[i];
}

// cutrace: take_rows<<<128, 128>>>(after, before, rows:i32[512]=random:12, 96)
__global__ void take_rows(float *out, const float *table, const int *rows, int width)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const float *row = table + rows[warp] * width;
    for (int k = lane; k < width; k += 32) out[warp * width + k] = row[k];
}
// cutrace: add_rows<<<64, 64>>>(after, before, rows)
__global__ void add_rows(float *table, const float *in, const int *rows)
{
    atomicAdd(&table[rows[blockIdx.x] * 64 + threadIdx.x], in[blockIdx.x * 64 + threadIdx.x]);
}
// cutrace: gather_pairs<<<64, 128>>>(after, before, keys, 8192)
__global__ void gather_pairs(float2 *out, const float2 *in, const int *at, int n)
{
    INDEX;
    if (i < n) out[i] = in[at[i]];
}
// cutrace: permute<<<64, 128>>>(ranks, keys, 8192)
__global__ void permute(int *out, const int *in, int n)
{
    INDEX;
    if (i < n) out[(i * 1031) % n] = in[i];
}
// cutrace: sparse_rows<<<32, 128>>>(x, before, keys, y, 4096)
__global__ void sparse_rows(float *out, const float *values, const int *columns, const float *v, int n)
{
    INDEX;
    if (i >= n) return;
    int begin = i * 2, end = begin + 1 + (i * 7 & 3);
    float sum = 0;
    for (int k = begin; k < end && k < 8192; k++) sum += values[k] * v[columns[k]];
    out[i] = sum;
}

// cutrace: attract<<<16, 128>>>(after, before, 2048)
__global__ void attract(float3 *out, const float4 *in, int n)
{
    __shared__ float4 tile[128];
    INDEX;
    float4 me = in[i];
    float3 sum = {0, 0, 0};
    for (int k = 0; k < n; k += 128) {
        tile[threadIdx.x] = in[k + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float far = dx * dx + dy * dy + dz * dz + 0.01f, f = tile[j].w * rsqrtf(far) / far;
            sum.x += f * dx, sum.y += f * dy, sum.z += f * dz;
        }
        __syncthreads();
    }
    out[i] = sum;
}
// cutrace: nearest<<<32, 64>>>(found, before, after, 2048, 64)
__global__ void nearest(int *found, const float2 *points, const float2 *centers, int n, int k)
{
    INDEX;
    if (i >= n) return;
    float2 me = points[i];
    float least = 1e30f;
    int best = 0;
    for (int c = 0; c < k; c++) {
        float dx = centers[c].x - me.x, dy = centers[c].y - me.y, far = dx * dx + dy * dy;
        if (far < least) least = far, best = c;
    }
    found[i] = best;
}
// cutrace: smallest_heap<<<8, 64>>>(ranks, keys, 64)
__global__ void smallest_heap(int *out, const int *in, int each)
{
    __shared__ int heap[64][9];
    INDEX;
    int *h = heap[threadIdx.x];
    for (int k = 0; k < 8; k++) h[k] = 1 << 30;
    for (int k = 0; k < each; k++) {
        int key = in[(k * 512 + i) & 8191], at = 0;
        if (key >= h[0]) continue;
        while (2 * at + 1 < 8) {
            int child = 2 * at + 1;
            if (child + 1 < 8 && h[child + 1] > h[child]) child++;
            if (h[child] <= key) break;
            h[at] = h[child], at = child;
        }
        h[at] = key;
    }
    for (int k = 0; k < 8; k++) out[i * 8 + k] = h[k];
}
// cutrace: count_bytes<<<16, 128>>>(bins:i32[256], keys, 8192)
__global__ void count_bytes(int *bins, const int *in, int n)
{
    __shared__ int mine[4][256];
    int warp = threadIdx.x / 32;
    for (int k = threadIdx.x; k < 1024; k += 128) mine[k / 256][k % 256] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 16 * 128)
        atomicAdd(&mine[warp][in[i] >> 4 & 255], 1);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += 128) {
        int sum = mine[0][k] + mine[1][k] + mine[2][k] + mine[3][k];
        if (sum) atomicAdd(&bins[k], sum);
    }
}
// cutrace: count_even<<<64, 128>>>(total:i32[1], keys, 8192)
__global__ void count_even(int *total, const int *in, int n)
{
    INDEX;
    u32 even = __ballot_sync(~0u, i < n && in[i] % 2 == 0);
    if (threadIdx.x % 32 == 0 && even) atomicAdd(total, __popc(even));
}
// cutrace: count_peers<<<32, 128>>>(bins, keys)
__global__ void count_peers(int *bins, const int *in)
{
    INDEX;
    int bin = in[i] & 31;
    u32 peers = __match_any_sync(~0u, bin);
    if (__ffs(peers) - 1 == threadIdx.x % 32) atomicAdd(&bins[bin], __popc(peers));
}
// cutrace: least_of_rows<<<32, 128>>>(bins, keys)
__global__ void least_of_rows(int *bins, const int *in)
{
    INDEX;
    atomicMin(&bins[threadIdx.x], in[i]);
    atomicOr(&bins[128 + (i >> 6)], 1 << (i & 31));
}

__constant__ float curve[256];
// cutrace: look_up<<<64, 128>>>(after, image, 8192)
__global__ void look_up(float *out, const u8 *in, int n)
{
    INDEX;
    if (i < n) out[i] = curve[in[i]];
}
// cutrace: look_up_shared<<<16, 128>>>(after, image, before, 8192)
__global__ void look_up_shared(float *out, const u8 *in, const float *table, int n)
{
    __shared__ float s[256];
    s[threadIdx.x] = table[threadIdx.x], s[threadIdx.x + 128] = table[threadIdx.x + 128];
    __syncthreads();
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 16 * 128) out[i] = s[in[i]];
}
// cutrace: look_up_global<<<64, 128>>>(after, image, before, 8192)
__global__ void look_up_global(float *out, const u8 *in, const float *__restrict__ table, int n)
{
    INDEX;
    if (i < n) out[i] = table[in[i]];
}
// cutrace: yellow_blue<<<32, 256>>>(small, image, 8192)
__global__ void yellow_blue(uchar4 *out, const uchar3 *in, int n)
{
    INDEX;
    if (i >= n / 2) return;
    uchar3 c = in[i];
    out[i] = make_uchar4((c.x + c.y) / 2, 255 - c.z, (c.x + c.z) / 2, 255);
}
// cutrace: mandelbrot<<<(8, 16), (16, 8)>>>(found, 128, 64)
__global__ void mandelbrot(int *out, int n, int most)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, k = 0;
    float u = 0, v = 0, a = x * 3.0f / n - 2, b = y * 2.0f / n - 1;
    for (; k < most && u * u + v * v < 4; k++) {
        float w = u * u - v * v + a;
        v = 2 * u * v + b, u = w;
    }
    out[y * n + x] = k;
}
// cutrace: shortest<<<(8, 16), (16, 8)>>>(also, 128, 5)
__global__ void shortest(float *d, int n, int k)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float through = d[y * n + k] + d[k * n + x];
    if (through < d[y * n + x]) d[y * n + x] = through;
}
// cutrace: eliminate<<<(4, 16), (32, 8)>>>(after, 128, 7)
__global__ void eliminate(float *a, int n, int k)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (y > k && x > k) a[y * n + x] -= a[y * n + k] * a[k * n + x];
}
// cutrace: softmax<<<64, 128>>>(after, before, 300)
__global__ void softmax(float *out, const float *in, int n)
{
    __shared__ float s[4];
    const float *row = in + blockIdx.x * n;
    float most = -1e30f, sum = 0;
    for (int k = threadIdx.x; k < n; k += 128) most = fmaxf(most, row[k]);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += 128) sum += __expf(row[k] - most);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = s[0] + s[1] + s[2] + s[3];
    for (int k = threadIdx.x; k < n; k += 128)
        out[blockIdx.x * n + k] = __expf(row[k] - most) / sum;
}
// cutrace: normalize<<<32, 256>>>(after, before, 200)
__global__ void normalize(float *out, const float *in, int n)
{
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0, squares = 0;
    for (int k = lane; k < n; k += 32) {
        float v = in[row * n + k];
        sum += v, squares += v * v;
    }
    for (int d = 16; d; d /= 2) {
        sum += __shfl_xor_sync(~0u, sum, d);
        squares += __shfl_xor_sync(~0u, squares, d);
    }
    float mean = sum / n, scale = rsqrtf(squares / n - mean * mean + 1e-5f);
    for (int k = lane; k < n; k += 32) out[row * n + k] = (in[row * n + k] - mean) * scale;
}
// cutrace: invert<<<16, 64>>>(after, before, 1024)
__global__ void invert(float *out, const float *in, int n)
{
    INDEX;
    float m[3][3];
    for (int k = 0; k < 9; k++) m[k / 3][k % 3] = in[i * 9 + k];
    float det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
                - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    for (int k = 0; k < 9; k++) out[k * n + i] = m[k % 3][k / 3] / (det + 2.0f);
}
// cutrace: diagonal<<<8, 64>>>(ranks, keys, 130, 600)
__global__ void diagonal(int *table, const int *in, int d, int n)
{
    INDEX;
    int row = i + 1, column = d - row;
    if (column < 1 || row > d) return;
    int same = (in[row] ^ in[column]) % 4 == 0;
    table[(row * 60 + column) % 8192] = max(table[((row - 1) * 60 + column - 1) % 8192] + same,
                                            table[((row - 1) * 60 + column) % 8192]);
}
// cutrace: lower_bound<<<32, 128>>>(found, keys, before, 4096)
__global__ void lower_bound(int *found, const int *keys, const float *sorted, int n)
{
    __shared__ int pivots[64];
    INDEX;
    if (threadIdx.x < 64) pivots[threadIdx.x] = threadIdx.x * 64 + (int)sorted[threadIdx.x * 64];
    __syncthreads();
    int low = 0, high = 64, key = keys[i];
    while (low < high) {
        int middle = (low + high) / 2;
        if (pivots[middle] < key) low = middle + 1; else high = middle;
    }
    found[i] = low;
}
// cutrace: visit<<<32, 128>>>(ranks, keys, found, 4096, 2)
__global__ void visit(int *level, const int *edges, const int *start, int n, int now)
{
    INDEX;
    if (i >= n || (start[i] & 7) > now) return;
    for (int k = 0; k < 2; k++) {
        int to = edges[(2 * i + k) & 8191];
        if (start[to & 4095] > 0) level[to] = now + 1;
    }
}
// cutrace: copy_blocks<<<256, 256>>>(after, before)
__global__ void copy_blocks(float4 *out, const float4 *in)
{
    for (int k = 0; k < 4; k++) {
        int i = (blockIdx.x * 4 + k) * 256 + threadIdx.x;
        out[i] = in[i];
    }
}
// cutrace: strided_sum<<<16, 256>>>(x, before, 1048576)
__global__ void strided_sum(float *out, const float *in, int n)
{
    INDEX;
    float sum = 0;
    for (int k = i; k < n; k += gridDim.x * blockDim.x) sum += in[k];
    out[i] = sum;
}
