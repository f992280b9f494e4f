// A third set of kernels as people write them, of other kinds than those of everyday.cu and
// unseen.cu, captured before any model saw them.

#include <cuda_fp16.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

// cutrace: wide_stencil<<<128, 128>>>(out:f32[65536], in:f32[65536]=random:1, 16384)
__global__ void wide_stencil(float *out, const float *in, int n)
{
    const int R = 5;
    __shared__ float s[128 + 2 * R];
    int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + R;
    s[l] = in[g];
    if (threadIdx.x < R) {
        s[l - R] = g >= R ? in[g - R] : 0.0f;
        s[l + 128] = g + 128 < n ? in[g + 128] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = -R; k <= R; k++)
        sum += s[l + k];
    out[g] = sum;
}

// cutrace: cube<<<(4, 8, 8), (10, 5, 3)>>>(out, in, 32)
__global__ void cube(float *out, const float *in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x <= 0 || y <= 0 || z <= 0 || x >= n - 1 || y >= n - 1 || z >= n - 1)
        return;
    int at = (z * n + y) * n + x;
    out[at] = in[at] + 0.1f * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]
                               + in[at - n * n] + in[at + n * n] - 6.0f * in[at]);
}

// cutrace: hillis_steele<<<32, 256, 2048>>>(out, in)
__global__ void hillis_steele(float *out, const float *in)
{
    extern __shared__ float both[];
    int t = threadIdx.x, n = blockDim.x, now = 0, g = blockIdx.x * n + t;
    both[t] = t > 0 ? in[g - 1] : 0.0f;
    __syncthreads();
    for (int d = 1; d < n; d <<= 1) {
        now = 1 - now;
        float v = both[(1 - now) * n + t];
        both[now * n + t] = t >= d ? v + both[(1 - now) * n + t - d] : v;
        __syncthreads();
    }
    out[g] = both[now * n + t];
}

// cutrace: blelloch<<<16, 128, 1024>>>(out, in)
__global__ void blelloch(float *out, const float *in)
{
    extern __shared__ float temp[];
    int t = threadIdx.x, n = 2 * blockDim.x, base = blockIdx.x * n, offset = 1;
    temp[2 * t] = in[base + 2 * t];
    temp[2 * t + 1] = in[base + 2 * t + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0)
        temp[n - 1] = 0.0f;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            float old = temp[a];
            temp[a] = temp[b];
            temp[b] += old;
        }
    }
    __syncthreads();
    out[base + 2 * t] = temp[2 * t];
    out[base + 2 * t + 1] = temp[2 * t + 1];
}

// cutrace: digits<<<16, 256>>>(counts:u32[256], keys:u32[16384]=random:2, 4)
__global__ void digits(u32 *counts, const u32 *keys, int shift)
{
    __shared__ u32 bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 4; k++)
        atomicAdd(&bins[keys[blockIdx.x * 1024 + k * 256 + threadIdx.x] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// cutrace: rank_and_scatter<<<16, 256>>>(sorted:u32[16384], keys, 4)
__global__ void rank_and_scatter(u32 *sorted, const u32 *keys, int shift)
{
    __shared__ u32 counts[8][16], starts[16];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 key = keys[blockIdx.x * 256 + t], digit = key >> shift & 15;
    if (t < 128)
        counts[t >> 4][t & 15] = 0;
    __syncthreads();
    u32 peers = __match_any_sync(0xffffffff, digit), before = peers & ((1u << lane) - 1);
    if (!before)
        counts[warp][digit] = __popc(peers);
    __syncthreads();
    if (t < 16) {
        u32 sum = 0;
        for (int w = 0; w < 8; w++) {
            u32 mine = counts[w][t];
            counts[w][t] = sum;
            sum += mine;
        }
        starts[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        u32 sum = 0;
        for (int d = 0; d < 16; d++) {
            u32 mine = starts[d];
            starts[d] = sum;
            sum += mine;
        }
    }
    __syncthreads();
    sorted[blockIdx.x * 256 + starts[digit] + counts[warp][digit] + __popc(before)] = key;
}

__inline__ __device__ float warp_sum(float v)
{
    for (int d = 16; d > 0; d >>= 1)
        v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

// cutrace: sum_to_one<<<48, 192>>>(total:f32[32], in, 60000)
__global__ void sum_to_one(float *total, const float *in, int n)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(total, sum);
}

// cutrace: least_double<<<24, 128>>>(least:u64[1], d:f64[16384]=random:3, 16384)
__global__ void least_double(u64 *least, const double *in, int n)
{
    __shared__ double s[4];
    double m = 1e300;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        m = fmin(m, in[i]);
    for (int d = 16; d > 0; d >>= 1)
        m = fmin(m, __shfl_xor_sync(0xffffffff, m, d));
    if (threadIdx.x % 32 == 0)
        s[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        m = fmin(fmin(s[0], s[1]), fmin(s[2], s[3]));
        atomicMax(least, ~(u64)__double_as_longlong(m));
    }
}

// cutrace: coordinates<<<64, 128>>>(y:f32[65536], in, rows:i32[8192]=random:4,
//          columns:i32[8192]=random:5, x:f32[8192]=random:6, 8000)
__global__ void coordinates(float *y, const float *values, const int *rows, const int *columns,
                            const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&y[rows[i] >> 2], values[i] * x[columns[i]]);
}

// cutrace: vector_rows<<<32, 128>>>(y, in, columns, x, 128)
__global__ void vector_rows(float *y, const float *values, const int *columns, const float *x,
                            int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= rows)
        return;
    int begin = row * 61 - (row * 37 & 15), end = (row + 1) * 61 - ((row + 1) * 37 & 15);
    float sum = 0.0f;
    for (int k = begin + lane; k < end; k += 32)
        if (k >= 0)
            sum += values[k] * x[columns[k]];
    sum = warp_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// cutrace: blocks_of_four<<<16, (4, 32)>>>(y, in, columns, x, 512, 6)
__global__ void blocks_of_four(float *y, const float *values, const int *columns, const float *x,
                               int block_rows, int width)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y, r = threadIdx.x;
    if (row >= block_rows)
        return;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) {
        int column = columns[row * width + k] & 1023;
        const float *a = values + ((row * width + k) * 4 + r) * 4;
        for (int c = 0; c < 4; c++)
            sum += a[c] * x[column * 4 + c];
    }
    y[row * 4 + r] = sum;
}

// cutrace: bilateral<<<(6, 12), (16, 8)>>>(out, in, 90, 94)
__global__ void bilateral(float *out, const float *in, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float here = in[y * w + x], sum = 0.0f, weights = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int u = min(max(x + dx, 0), w - 1), v = min(max(y + dy, 0), h - 1);
            float there = in[v * w + u], gap = there - here;
            float weight = __expf(-(dx * dx + dy * dy) * 0.125f - gap * gap * 8.0f);
            sum += weight * there;
            weights += weight;
        }
    out[y * w + x] = sum / weights;
}

__device__ void order(u8 &a, u8 &b)
{
    u8 least = min(a, b);
    b = max(a, b);
    a = least;
}

// cutrace: median<<<(8, 16), (32, 16)>>>(clean:u8[65536], image:u8[65536]=random:7, 256)
__global__ void median(u8 *out, const u8 *in, int n)
{
    __shared__ u8 tile[18][36];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = threadIdx.y; j < 18; j += 16)
        for (int i = threadIdx.x; i < 34; i += 32) {
            int u = min(max((int)blockIdx.x * 32 + i - 1, 0), n - 1);
            int v = min(max((int)blockIdx.y * 16 + j - 1, 0), n - 1);
            tile[j][i] = in[v * n + u];
        }
    __syncthreads();
    u8 p[9];
    for (int k = 0; k < 9; k++)
        p[k] = tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
    order(p[1], p[2]), order(p[4], p[5]), order(p[7], p[8]), order(p[0], p[1]);
    order(p[3], p[4]), order(p[6], p[7]), order(p[1], p[2]), order(p[4], p[5]);
    order(p[7], p[8]), order(p[0], p[3]), order(p[5], p[8]), order(p[4], p[7]);
    order(p[3], p[6]), order(p[1], p[4]), order(p[2], p[5]), order(p[4], p[7]);
    order(p[4], p[2]), order(p[6], p[4]), order(p[4], p[2]);
    out[y * n + x] = p[4];
}

// cutrace: row_integrals<<<32, 256>>>(sums:i32[65536], image, 256)
__global__ void row_integrals(int *sums, const u8 *in, int n)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    int carry = 0;
    for (int x = lane; x < n; x += 32) {
        int v = in[row * n + x];
        for (int d = 1; d < 32; d <<= 1) {
            int other = __shfl_up_sync(0xffffffff, v, d);
            if (lane >= d)
                v += other;
        }
        v += carry;
        sums[row * n + x] = v;
        carry = __shfl_sync(0xffffffff, v, 31);
    }
}

// cutrace: gemv4<<<32, 128>>>(y, in, x, 512)
__global__ void gemv4(float *y, const float4 *a, const float4 *x, int n)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x & 31;
    float sum = 0.0f;
    for (int k = lane; k < n / 4; k += 32) {
        float4 u = a[row * (n / 4) + k], v = x[k];
        sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    }
    sum = warp_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// cutrace: gemv_transposed<<<(8, 16), 32>>>(y, in, x, 256)
__global__ void gemv_transposed(float *y, const float *a, const float *x, int n)
{
    int column = blockIdx.x * 32 + threadIdx.x, begin = blockIdx.y * (n / gridDim.y);
    float sum = 0.0f;
    for (int k = begin; k < begin + n / (int)gridDim.y; k++)
        sum += a[k * n + column] * x[k];
    atomicAdd(&y[column], sum);
}

__constant__ float mask[5][5] = {{1, 4, 7, 4, 1}, {4, 16, 26, 16, 4}, {7, 26, 41, 26, 7},
                                 {4, 16, 26, 16, 4}, {1, 4, 7, 4, 1}};
// cutrace: convolve<<<(16, 16), (16, 16)>>>(out, in, 192, 200)
__global__ void convolve(float *out, const float *in, int w, int h)
{
    __shared__ float tile[16][16];
    int x = blockIdx.x * 12 + threadIdx.x - 2, y = blockIdx.y * 12 + threadIdx.y - 2;
    tile[threadIdx.y][threadIdx.x] = x >= 0 && y >= 0 && x < w && y < h ? in[y * w + x] : 0.0f;
    __syncthreads();
    if (threadIdx.x < 2 || threadIdx.x >= 14 || threadIdx.y < 2 || threadIdx.y >= 14)
        return;
    float sum = 0.0f;
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 5; i++)
            sum += mask[j][i] * tile[threadIdx.y + j - 2][threadIdx.x + i - 2];
    if (x < w && y < h)
        out[y * w + x] = sum / 273.0f;
}

struct Star { double x, y, z, mass; };
// cutrace: gravity<<<8, 64>>>(pulls:f64[4096], d, 512)
__global__ void gravity(double *pulls, const Star *stars, int n)
{
    __shared__ Star near[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    Star me = stars[i];
    double ax = 0, ay = 0, az = 0;
    for (int tile = 0; tile < n; tile += 64) {
        near[threadIdx.x] = stars[tile + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 64; j++) {
            double dx = near[j].x - me.x, dy = near[j].y - me.y, dz = near[j].z - me.z;
            double r = sqrt(dx * dx + dy * dy + dz * dz + 1e-4);
            double f = near[j].mass / (r * r * r);
            ax += f * dx, ay += f * dy, az += f * dz;
        }
        __syncthreads();
    }
    pulls[3 * i] = ax, pulls[3 * i + 1] = ay, pulls[3 * i + 2] = az;
}

// cutrace: warshall_block<<<1, (32, 32)>>>(out, 256, 3)
__global__ void warshall_block(float *d, int n, int b)
{
    __shared__ float s[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    float *mine = d + (b * 32 + y) * n + b * 32 + x;
    s[y][x] = *mine;
    __syncthreads();
    for (int k = 0; k < 32; k++) {
        float through = s[y][k] + s[k][x];
        __syncthreads();
        if (through < s[y][x])
            s[y][x] = through;
        __syncthreads();
    }
    *mine = s[y][x];
}

// cutrace: warshall_rest<<<(8, 8), (32, 32)>>>(out, 256, 3)
__global__ void warshall_rest(float *d, int n, int b)
{
    __shared__ float row[32][32], column[32][32];
    int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y, j = blockIdx.x;
    if (i == b || j == b)
        return;
    row[y][x] = d[(b * 32 + y) * n + j * 32 + x];
    column[y][x] = d[(i * 32 + y) * n + b * 32 + x];
    __syncthreads();
    float best = d[(i * 32 + y) * n + j * 32 + x];
    for (int k = 0; k < 32; k++)
        best = fminf(best, column[y][k] + row[k][x]);
    d[(i * 32 + y) * n + j * 32 + x] = best;
}

// cutrace: lu_step<<<(7, 25), (32, 8)>>>(d, 120, 11)
__global__ void lu_step(double *a, int n, int k)
{
    int column = k + 1 + blockIdx.x * 32 + threadIdx.x, row = k + 1 + blockIdx.y * 8 + threadIdx.y;
    if (row >= n || column >= n)
        return;
    double factor = a[row * n + k] / (a[k * n + k] + 4.0);
    a[row * n + column] -= factor * a[k * n + column];
}

// cutrace: assign<<<32, 128>>>(labels:i32[4096], in, x, 4096)
__global__ void assign(int *labels, const float *points, const float *centers, int n)
{
    __shared__ float c[16 * 4];
    if (threadIdx.x < 64)
        c[threadIdx.x] = centers[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    float p[4], least = 1e30f;
    for (int d = 0; d < 4; d++)
        p[d] = points[d * n + i];
    for (int k = 0; k < 16; k++) {
        float far = 0.0f;
        for (int d = 0; d < 4; d++)
            far += (p[d] - c[k * 4 + d]) * (p[d] - c[k * 4 + d]);
        if (far < least)
            least = far, best = k;
    }
    labels[i] = best;
}
// cutrace: accumulate<<<32, 128>>>(total, counts, in, keys, 4096)
__global__ void accumulate(float *sums, u32 *counts, const float *points, const u32 *labels, int n)
{
    __shared__ float s[8][4];
    __shared__ u32 many[8];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 32)
        s[t / 4][t % 4] = 0.0f;
    if (t < 8)
        many[t] = 0;
    __syncthreads();
    int label = labels[i] & 7;
    atomicAdd(&many[label], 1u);
    for (int d = 0; d < 4; d++)
        atomicAdd(&s[label][d], points[d * n + i]);
    __syncthreads();
    if (t < 32)
        atomicAdd(&sums[t], s[t / 4][t % 4]);
    else if (t < 40)
        atomicAdd(&counts[t - 32], many[t - 32]);
}

// cutrace: hash_insert<<<16, 128>>>(table:u64[8192], 2048)
__global__ void hash_insert(u64 *table, int n)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    u32 key = i * 2654435761u | 1, slot = (i * 1637u) & 8191;
    while (true) {
        u64 old = atomicCAS(&table[slot], 0ull, (u64)key << 32 | i);
        if (old == 0 || (u32)(old >> 32) == key)
            return;
        slot = (slot + 1) & 8191;
    }
}
// cutrace: hash_find<<<16, 128>>>(labels, table, keys, 1900)
__global__ void hash_find(int *found, const u64 *table, const u32 *keys, int n)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    u32 wanted = (keys[i] & 4095) * 2654435761u | 1, slot = ((keys[i] & 4095) * 1637u) & 8191;
    int at = -1;
    for (int probes = 0; probes < 8; probes++) {
        u64 entry = table[slot];
        if (entry == 0)
            break;
        if ((u32)(entry >> 32) == wanted) {
            at = (int)entry;
            break;
        }
        slot = (slot + 1) & 8191;
    }
    found[i] = at;
}

// cutrace: aggregated<<<32, 160>>>(counts, keys, 5000)
__global__ void aggregated(u32 *counter, const u32 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || in[i] % 3 == 0)
        return;
    u32 active = __activemask();
    int leader = __ffs(active) - 1;
    if ((threadIdx.x & 31) == leader)
        atomicAdd(counter, __popc(active));
}

// cutrace: polynomial<<<32, 256>>>(h:f16[16384]=random:8, g:f16[16384]=random:9, 8192)
__global__ void polynomial(__half2 *y, const __half2 *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 v = x[i], sum = __float2half2_rn(0.125f);
    for (int k = 0; k < 4; k++)
        sum = __hadd2(__hmul2(sum, v), __float2half2_rn(0.25f * k));
    y[i] = __hmul2(sum, h2sqrt(__habs2(v)));
}
// cutrace: widen<<<16, 128>>>(out, h, 2048)
__global__ void widen(float4 *out, const __half *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint2 raw = reinterpret_cast<const uint2 *>(in)[i];
    float2 a = __half22float2(*reinterpret_cast<__half2 *>(&raw.x));
    float2 b = __half22float2(*reinterpret_cast<__half2 *>(&raw.y));
    if (i < n)
        out[i] = make_float4(a.x, a.y, b.x, b.y);
}

struct Tagged { char tag; short number; int value; char name[5]; };
// cutrace: copy_tagged<<<16, 128>>>(clean, image, 2000)
__global__ void copy_tagged(Tagged *out, const Tagged *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}
struct __attribute__((packed)) Packed { u8 kind; float value; short count; };
// cutrace: sum_packed<<<16, 128>>>(out, image, 2048)
__global__ void sum_packed(float *out, const Packed *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i].kind + in[i].count;
}
struct Triangle { float3 a, b, c; };
// cutrace: areas<<<32, 64>>>(out, in, 2000)
__global__ void areas(float *out, const Triangle *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Triangle t = in[i];
    float ux = t.b.x - t.a.x, uy = t.b.y - t.a.y, uz = t.b.z - t.a.z;
    float vx = t.c.x - t.a.x, vy = t.c.y - t.a.y, vz = t.c.z - t.a.z;
    float nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
    out[i] = 0.5f * sqrtf(nx * nx + ny * ny + nz * nz);
}

// cutrace: sort_locally<<<16, 64>>>(sums, keys, 12)
__global__ void sort_locally(int *out, const u32 *in, int n)
{
    int mine[16], i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < n; k++) {
        int v = in[i * n + k], at = k;
        while (at > 0 && mine[at - 1] > v) {
            mine[at] = mine[at - 1];
            at--;
        }
        mine[at] = v;
    }
    for (int k = 0; k < n; k++)
        out[k * 1024 + i] = mine[k];
}

// cutrace: carved<<<16, 96, 1920>>>(d, in, image)
__global__ void carved(double *out, const float *f, const u8 *b)
{
    extern __shared__ double big[];
    float *mid = (float *)(big + blockDim.x);
    u8 *small = (u8 *)(mid + 2 * blockDim.x);
    int t = threadIdx.x, n = blockDim.x, g = blockIdx.x * n + t;
    small[t] = b[g];
    mid[t] = f[g], mid[n + t] = f[g + 2048];
    big[t] = f[g] * 2.0;
    __syncthreads();
    int other = small[n - 1 - t] % n;
    out[g] = big[other] + mid[2 * other] + mid[2 * other + 1];
}

// cutrace: odd_blocks<<<(3, 2, 4), (7, 5, 3)>>>(out, in)
__global__ void odd_blocks(float *out, const float *in)
{
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[i] = in[threadIdx.x * 105 + threadIdx.y * 21 + threadIdx.z + block];
}

// cutrace: hints<<<48, 128>>>(out, in, y, 16000)
__global__ void hints(float *out, const float *in, float *more, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        float a = __ldcs(&in[i]), b = __ldcg(&in[i + n]), c = __ldca(&in[i + 2 * n]);
        __stcs(&out[i], a + b);
        __stcg(&more[i], b * c);
        __stwt(&more[i + n], c);
    }
}

// cutrace: last_warp<<<32, 128>>>(out, in)
__global__ void last_warp(float *out, const float *in)
{
    __shared__ volatile float s[128];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t] + in[blockIdx.x * 256 + 128 + t];
    __syncthreads();
    if (t < 64)
        s[t] = s[t] + s[t + 64];
    __syncthreads();
    if (t < 32) {
        s[t] = s[t] + s[t + 32];
        __syncwarp();
        for (int d = 16; d > 0; d /= 2) {
            float v = s[t] + s[t + d];
            __syncwarp();
            s[t] = v;
            __syncwarp();
        }
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}

__device__ int ackermann_like(int n, int depth)
{
    if (n < 2 || depth > 8)
        return n;
    return ackermann_like(n - 1, depth + 1) + ackermann_like(n - 2, depth + 1);
}
// cutrace: recurse<<<4, 64>>>(sums, keys)
__global__ void recurse(int *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = ackermann_like(in[i] & 7, 0);
}

__device__ float plus(float a, float b) { return a + b; }
__device__ float minus(float a, float b) { return a - b; }
__device__ float times(float a, float b) { return a * b; }
typedef float (*Binary)(float, float);
__device__ Binary operations[3] = {plus, minus, times};
// cutrace: by_pointer<<<16, 128>>>(out, in, 2)
__global__ void by_pointer(float *out, const float *in, int which)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = operations[(i >> 5) % (which + 1)](in[i], in[i + 2048]);
}

__constant__ int program[12] = {0, 1, 0, 2, 3, 1, 4, 0, 5, 3, 2, 6};
// cutrace: interpret<<<16, 96>>>(sums, keys, 12)
__global__ void interpret(int *out, const u32 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, a = in[i], b = i;
    for (int pc = 0; pc < n; pc++) {
        switch ((program[pc] + (a & 1)) % 7) {
        case 0: a += b; break;
        case 1: b ^= a >> 3; break;
        case 2: a = a * 5 + 1; break;
        case 3: b = a - b; break;
        case 4: a = b > 100 ? a : b; break;
        case 5: b = in[b & 4095]; break;
        default: a -= 7;
        }
    }
    out[i] = a + b;
}

// cutrace: divisors<<<16, 128>>>(sums, keys)
__global__ void divisors(int *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 a = in[i] & 1023, b = in[i + 2048] & 1023;
    while (b) {
        u32 rest = a % b;
        a = b;
        b = rest;
    }
    out[i] = a;
}

// cutrace: swizzled<<<(4, 4), (32, 8)>>>(out, in, 128)
__global__ void swizzled(float *out, const float *in, int n)
{
    __shared__ float tile[32 * 32];
    int bx = (blockIdx.x + blockIdx.y) % gridDim.x, by = blockIdx.x;
    for (int j = threadIdx.y; j < 32; j += 8)
        tile[j * 32 + (threadIdx.x ^ j)] = in[(by * 32 + j) * n + bx * 32 + threadIdx.x];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8)
        out[(bx * 32 + j) * n + by * 32 + threadIdx.x] = tile[threadIdx.x * 32 + (j ^ threadIdx.x)];
}

// cutrace: sort_warps<<<16, 128>>>(sums, keys)
__global__ void sort_warps(int *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    u32 v = in[i];
    for (int k = 2; k <= 32; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            u32 other = __shfl_xor_sync(0xffffffff, v, j);
            bool up = (lane & k) == 0, low = (lane & j) == 0;
            v = up == low ? min(v, other) : max(v, other);
        }
    out[i] = v;
}

// cutrace: uniforms<<<16, 128>>>(out, keys, 8)
__global__ void uniforms(float *out, const u32 *seeds, int each)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    u32 s = seeds[i] * 747796405u + 2891336453u;
    for (int k = 0; k < each; k++) {
        s ^= s << 13, s ^= s >> 17, s ^= s << 5;
        out[k * all + i] = s * 2.3283064e-10f;
    }
}

// cutrace: private_bins<<<8, 64>>>(counts, image, 1024)
__global__ void private_bins(u32 *counts, const u8 *in, int each)
{
    __shared__ u8 mine[64 * 64];
    int t = threadIdx.x, place = (t & ~63) | (t & 15) << 2 | (t >> 4 & 3);
    for (int k = 0; k < 16; k++)
        ((u32 *)mine)[t + k * 64] = 0;
    __syncthreads();
    const uchar4 *from = (const uchar4 *)(in + blockIdx.x * each);
    for (int k = t; k < each / 4; k += 64) {
        uchar4 v = from[k];
        mine[place + (v.x >> 2) * 64]++, mine[place + (v.y >> 2) * 64]++;
        mine[place + (v.z >> 2) * 64]++, mine[place + (v.w >> 2) * 64]++;
    }
    __syncthreads();
    u32 sum = 0;
    for (int k = 0; k < 64; k++)
        sum += mine[t * 64 + ((k + t) & 63)];
    atomicAdd(&counts[t], sum);
}

// cutrace: planes<<<32, 128>>>(clean, image, 4096)
__global__ void planes(u8 *out, const u8 *in, int n)
{
    __shared__ u8 s[3 * 128];
    int t = threadIdx.x, base = blockIdx.x * 384;
    for (int k = t; k < 96; k += 128)
        ((u32 *)s)[k] = ((const u32 *)(in + base))[k];
    __syncthreads();
    for (int c = 0; c < 3; c++)
        out[c * n + blockIdx.x * 128 + t] = s[3 * t + c];
}

// cutrace: cyclic_reduction<<<8, 128>>>(out, in)
__global__ void cyclic_reduction(float *out, const float *in)
{
    __shared__ float a[256], b[256], c[256], d[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    for (int k = t; k < 256; k += 128)
        a[k] = in[base + k], b[k] = 4.0f, c[k] = in[base + k + 2048], d[k] = in[base + k + 4096];
    for (int stride = 1; stride < 256; stride *= 2) {
        __syncthreads();
        if (t < 128 / stride) {
            int i = 2 * stride * (t + 1) - 1, left = i - stride, right = min(i + stride, 255);
            float p = a[i] / b[left], q = c[i] / b[right];
            b[i] -= c[left] * p + a[right] * q;
            d[i] -= d[left] * p + d[right] * q;
            a[i] = -a[left] * p, c[i] = -c[right] * q;
        }
    }
    __syncthreads();
    for (int k = t; k < 256; k += 128)
        out[base + k] = d[k] / b[k];
}

// cutrace: walsh<<<16, 256>>>(out, in)
__global__ void walsh(float *out, const float *in)
{
    __shared__ float s[512];
    int t = threadIdx.x, base = blockIdx.x * 512;
    s[t] = in[base + t], s[t + 256] = in[base + t + 256];
    for (int h = 1; h < 512; h *= 2) {
        __syncthreads();
        int i = (t / h) * 2 * h + t % h;
        float u = s[i], v = s[i + h];
        s[i] = u + v, s[i + h] = u - v;
    }
    __syncthreads();
    out[base + t] = s[t], out[base + t + 256] = s[t + 256];
}

// cutrace: compact_block<<<1, 512>>>(sums, keys, 9000)
__global__ void compact_block(int *out, const u32 *in, int n)
{
    __shared__ int starts[16], total;
    int t = threadIdx.x, lane = t & 31, warp = t / 32;
    if (t == 0)
        total = 0;
    __syncthreads();
    for (int base = 0; base < n; base += 512) {
        u32 v = base + t < n ? in[base + t] : 0;
        bool keep = v % 5 == 1;
        u32 votes = __ballot_sync(0xffffffff, keep);
        if (lane == 0)
            starts[warp] = __popc(votes);
        __syncthreads();
        int at = total;
        for (int w = 0; w < warp; w++)
            at += starts[w];
        if (keep)
            out[at + __popc(votes & ((1u << lane) - 1))] = v;
        __syncthreads();
        if (t == 511)
            total = at + __popc(votes);
        __syncthreads();
    }
}

// cutrace: common_neighbours<<<8, 128>>>(sums, keys, 1000)
__global__ void common_neighbours(int *out, const u32 *edges, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int a = (i * 13 & 1023) * 16, b = (i * 29 & 1023) * 16, ea = a + 16, eb = b + 16, same = 0;
    while (a < ea && b < eb) {
        u32 u = edges[a] >> 4, v = edges[b] >> 4;
        same += u == v;
        a += u <= v;
        b += v <= u;
    }
    out[i] = same;
}

// cutrace: dot_bytes<<<16, 128>>>(sums, keys, 256)
__global__ void dot_bytes(int *out, const int *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < n / 16; k++) {
        int4 u = reinterpret_cast<const int4 *>(a)[(i * (n / 16) + k) & 4095];
        sum = __dp4a(u.x, u.y, sum);
        sum = __dp4a(u.z, u.w, sum);
    }
    out[i] = sum;
}

// cutrace: many_atomics<<<8, 128>>>(counts, keys)
__global__ void many_atomics(u32 *out, const u32 *in)
{
    __shared__ u32 s[64];
    int t = threadIdx.x;
    u32 v = in[blockIdx.x * 128 + t];
    if (t < 64)
        s[t] = 0;
    __syncthreads();
    atomicXor(&s[v & 15], v);
    atomicMin(&s[16 + (v >> 4 & 15)], v);
    atomicInc(&s[32 + (t & 15)], 5);
    u32 old = atomicExch(&s[48 + (t >> 3)], v);
    __syncthreads();
    if (t < 64)
        atomicXor(&out[t], s[t]);
    atomicAnd(&out[64 + (t & 31)], old);
    atomicSub(&out[96 + (v & 63)], 3);
}

// cutrace: small_products<<<16, 64>>>(out, in, 1024)
__global__ void small_products(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a[4][4], b[4][4];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            a[r][c] = in[(r * 4 + c) * n + i], b[r][c] = in[(16 + r * 4 + c) * n + i];
    for (int r = 0; r < 4; r++) {
        float4 row;
        row.x = a[r][0] * b[0][0] + a[r][1] * b[1][0] + a[r][2] * b[2][0] + a[r][3] * b[3][0];
        row.y = a[r][0] * b[0][1] + a[r][1] * b[1][1] + a[r][2] * b[2][1] + a[r][3] * b[3][1];
        row.z = a[r][0] * b[0][2] + a[r][1] * b[1][2] + a[r][2] * b[2][2] + a[r][3] * b[3][2];
        row.w = a[r][0] * b[0][3] + a[r][1] * b[1][3] + a[r][2] * b[2][3] + a[r][3] * b[3][3];
        reinterpret_cast<float4 *>(out)[i * 4 + r] = row;
    }
}

__constant__ float curves[8][4] = {{1, 2, 3, 4}, {2, 1, 0, 5}, {7, 3, 1, 2}, {0, 0, 1, 9},
                                   {4, 4, 2, 1}, {3, 8, 2, 6}, {5, 1, 5, 1}, {6, 2, 8, 3}};
// cutrace: curves_by_lane<<<16, 128>>>(out, in, keys)
__global__ void curves_by_lane(float *out, const float *in, const u32 *kinds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *c = curves[kinds[i] & 7];
    float x = in[i];
    out[i] = ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
}

// cutrace: life_torus<<<(8, 8), (32, 4)>>>(clean, image, 64, 128)
__global__ void life_torus(u8 *out, const u8 *in, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int alive = 0;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            alive += in[(y + dy + h - 1) % h * w + (x + dx + w - 1) % w] & 1;
    int me = in[y * w + x] & 1;
    out[y * w + x] = alive == 3 || (me && alive == 4);
}

// cutrace: step_arrays<<<64, 256>>>(out, in, y, x, 16384)
__global__ void step_arrays(float *px, const float *vx, float *py, const float *charge, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float q = charge[i & 8191];
    px[i] += 0.01f * vx[i] * q;
    py[i] = fmaf(-0.01f, q, py[i]);
}

// cutrace: triangle<<<36, (16, 16)>>>(out, in, 128)
__global__ void triangle(float *out, const float *a, int n)
{
    __shared__ float rows[16][17], columns[16][17];
    int b = blockIdx.x, by = (int)((sqrtf(8.0f * b + 1.0f) - 1.0f) * 0.5f), bx = b - by * (by + 1) / 2;
    int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        rows[ty][tx] = a[(by * 16 + ty) * n + k + tx];
        columns[ty][tx] = a[(bx * 16 + ty) * n + k + tx];
        __syncthreads();
        for (int j = 0; j < 16; j++)
            sum += rows[ty][j] * columns[tx][j];
        __syncthreads();
    }
    out[(by * 16 + ty) * n + bx * 16 + tx] = sum;
    if (bx != by)
        out[(bx * 16 + tx) * n + by * 16 + ty] = sum;
}
