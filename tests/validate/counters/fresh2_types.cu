// Kernels as people write them: numbers of all sizes, structures, templates, atomics, local arrays.
// Written before any of them was run on a chip.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// cutrace: axpy_bf16<<<16, 128>>>(yb:u16[4096]=random:201, xb:u16[4096]=random:202, 4000)
__global__ void axpy_bf16(__nv_bfloat16 *y, const __nv_bfloat16 *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_bfloat16 a = __float2bfloat16(1.5f);
    if (i < n) y[i] = __hfma(a, x[i], y[i]);
}

// cutrace: scale_pairs_bf16<<<8, 128>>>(yb, xb, 1024)
__global__ void scale_pairs_bf16(__nv_bfloat162 *y, const __nv_bfloat162 *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float2 f = __bfloat1622float2(x[i]);
        y[i] = __floats2bfloat162_rn(f.x * 0.5f, f.y * 2.0f);
    }
}

// cutrace: bias_gelu<<<16, 128>>>(hy:f16[8192], hx:f16[8192]=random:203, hb:f16[128]=random:204, 64)
__global__ void bias_gelu(half2 *y, const half2 *x, const half2 *bias, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    half2 v = __hadd2(x[i], bias[i % width]);
    float2 f = __half22float2(v);
    f.x = 0.5f * f.x * (1.0f + erff(f.x * 0.70710678f));
    f.y = 0.5f * f.y * (1.0f + erff(f.y * 0.70710678f));
    y[i] = __float22half2_rn(f);
}

// cutrace: layer_norm<<<16, 64>>>(hy, hx, 256)
__global__ void layer_norm(half *out, const half *in, int width)
{
    __shared__ float2 part[2];
    const half2 *row = (const half2 *)(in + blockIdx.x * width);
    half2 *to = (half2 *)(out + blockIdx.x * width);
    float2 s = {0.0f, 0.0f};
    for (int i = threadIdx.x; i < width / 2; i += 64) {
        float2 f = __half22float2(row[i]);
        s.x += f.x + f.y;
        s.y += f.x * f.x + f.y * f.y;
    }
    for (int d = 16; d; d >>= 1) {
        s.x += __shfl_xor_sync(~0u, s.x, d);
        s.y += __shfl_xor_sync(~0u, s.y, d);
    }
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    float mean = (part[0].x + part[1].x) / width;
    float scale = rsqrtf((part[0].y + part[1].y) / width - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < width / 2; i += 64) {
        float2 f = __half22float2(row[i]);
        to[i] = __floats2half2_rn((f.x - mean) * scale, (f.y - mean) * scale);
    }
}

// cutrace: half_to_float<<<8, 128>>>(wide:f32[8192], hx, 1024)
__global__ void half_to_float(float4 *out, const uint2 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint2 v = in[i];
    float2 a = __half22float2(*(half2 *)&v.x), b = __half22float2(*(half2 *)&v.y);
    out[i] = make_float4(a.x, a.y, b.x, b.y);
}

// cutrace: dot4<<<16, 64>>>(sums:i32[1024], packed:i32[4096]=random:205, others:i32[4096]=random:206)
__global__ void dot4(int *out, const int *a, const int *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int4 x = ((const int4 *)a)[i], y = ((const int4 *)b)[i];
    int sum = __dp4a(x.x, y.x, 0);
    sum = __dp4a(x.y, y.y, sum);
    sum = __dp4a(x.z, y.z, sum);
    out[i] = __dp4a(x.w, y.w, sum);
}

// cutrace: hamming<<<(4, 4), (16, 16)>>>(near:u8[4096], keys:u64[1024]=random:207, 64)
__global__ void hamming(u8 *out, const u64 *keys, int n)
{
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    out[i * n + j] = __popcll(keys[2 * i] ^ keys[2 * j]) + __popcll(keys[2 * i + 1] ^ keys[2 * j + 1]);
}

__device__ u64 spread(u32 v)
{
    u64 x = v & 0x1fffff;
    x = (x | x << 32) & 0x1f00000000ffffULL;
    x = (x | x << 16) & 0x1f0000ff0000ffULL;
    x = (x | x << 8) & 0x100f00f00f00f00fULL;
    x = (x | x << 4) & 0x10c30c30c30c30c3ULL;
    return (x | x << 2) & 0x1249249249249249ULL;
}
struct Point { float x, y, z; };
// cutrace: morton<<<8, 128>>>(codes:u64[1024], points:f32[3072]=random:208, 1000)
__global__ void morton(u64 *codes, const Point *points, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Point p = points[i];
    codes[i] = spread(p.x * 1024) | spread(p.y * 1024) << 1 | spread(p.z * 1024) << 2;
}

struct Particle { double mass; float x, y; int cell; char kind; };
// cutrace: drift<<<6, 128>>>(swarm:u8[24576]=random:209, 750)
__global__ void drift(Particle *swarm, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = swarm[i];
    p.x += 0.5f;
    p.y -= 0.5f;
    p.cell = i / 8;
    p.kind = i & 1 ? 'a' : 'b';
    swarm[i] = p;
}

struct Odd { u8 r, g, b; };
// cutrace: swap_colours<<<8, 100>>>(image:u8[3072]=random:210, 1000)
__global__ void swap_colours(Odd *image, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Odd c = image[i];
    u8 r = c.r;
    c.r = c.b;
    c.b = r;
    image[i] = c;
}

struct alignas(16) Wide { int a[5]; float b[3]; };
// cutrace: by_value<<<4, 64>>>(wide, 3)
__global__ void by_value(Wide *out, int k)
{
    Wide w;
    for (int i = 0; i < 5; i++) w.a[i] = threadIdx.x * i + k;
    for (int i = 0; i < 3; i++) w.b[i] = w.a[i] * 0.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = w;
}

// cutrace: count_words<<<4, 128>>>(sums, text:u8[8192]=random:211, 16)
__global__ void count_words(int *counts, const char *text, int length)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, words = 0;
    bool inside = false;
    for (int k = 0; k < length; k++) {
        bool letter = (text[i * length + k] & 0x1f) < 26;
        words += letter && !inside;
        inside = letter;
    }
    counts[i] = words;
}

// cutrace: find_pattern<<<16, 128>>>(near, text, 2000)
__global__ void find_pattern(u8 *found, const char *text, int n)
{
    const char *pattern = "ab";
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int k = 0;
    while (k < 2 && (text[i + k] & 3) == (pattern[k] & 3)) k++;
    found[i] = k == 2;
}

// cutrace: edit_distance<<<8, 64>>>(shorts:i16[2048], text)
__global__ void edit_distance(short *out, const char *text)
{
    __shared__ short rows[3][65];
    const char *a = text + blockIdx.x * 128, *b = a + 64;
    int t = threadIdx.x;
    for (int d = 0; d < 127; d++) {
        short *now = rows[d % 3], *last = rows[(d + 2) % 3], *older = rows[(d + 1) % 3];
        int j = d - t;
        if (j >= 0 && j < 64) {
            short left = j ? last[t + 1] : t + 1, up = t ? last[t] : j + 1;
            short corner = t && j ? older[t] : t + j;
            short cost = (a[t] & 7) != (b[j] & 7);
            now[t + 1] = min(min(left, up) + 1, corner + cost);
        }
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = rows[0][t + 1];
}

__constant__ char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// cutrace: base64<<<4, 128>>>(letters:u8[2048], text, 512)
__global__ void base64(uchar4 *out, const u8 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[i] = make_uchar4(alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63], alphabet[v & 63]);
}

template <typename T, int N> struct Vector {
    T v[N];
    __device__ T dot(const Vector &o) const
    {
        T sum = 0;
#pragma unroll
        for (int i = 0; i < N; i++) sum += v[i] * o.v[i];
        return sum;
    }
};
// cutrace: dots<double, 4><<<4, 64>>>(dd:f64[2048], dv:f64[2048]=random:212, 200)
// cutrace: dots<int, 3><<<4, 64>>>(sums, cells:i32[1024]=random:213, 200)
// cutrace: dots<float, 8><<<2, 64>>>(wide, points, 128)
template <typename T, int N> __global__ void dots(T *out, const Vector<T, N> *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) out[i] = in[i].dot(in[i + 1]);
}

// cutrace: reduce_any<long long, 128><<<4, 128>>>(longs:i64[16], keys)
// cutrace: reduce_any<short, 64><<<8, 64>>>(shorts, small:i16[2048]=random:214)
// cutrace: reduce_any<double, 256><<<2, 256>>>(dd, dv)
template <typename T, int SIZE> __global__ void reduce_any(T *out, const T *in)
{
    __shared__ T s[SIZE];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * SIZE / 2 + t];
    __syncthreads();
#pragma unroll
    for (int d = SIZE / 2; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// cutrace: invert_4<<<4, 64>>>(wide, points, 100)
__global__ void invert_4(float4 *out, const float4 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 r[3];
    for (int k = 0; k < 3; k++) r[k] = in[i * 3 + k];
    float det = r[0].x * (r[1].y * r[2].z - r[1].z * r[2].y) - r[0].y * (r[1].x * r[2].z - r[1].z * r[2].x)
              + r[0].z * (r[1].x * r[2].y - r[1].y * r[2].x) + 8.0f;
    for (int k = 0; k < 3; k++) {
        r[k].x /= det;
        r[k].w -= r[k].x;
        out[i * 3 + k] = r[k];
    }
}

// cutrace: cholesky<<<4, 32>>>(dd, dv)
__global__ void cholesky(double *out, const double *in)
{
    __shared__ double a[16][17];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32)
        a[i / 16][i % 16] = in[blockIdx.x * 256 + i] + (i / 16 == i % 16 ? 20.0 : 0.0);
    __syncwarp();
    for (int k = 0; k < 16; k++) {
        if (t == 0) a[k][k] = sqrt(a[k][k]);
        __syncwarp();
        if (t > k && t < 16) a[t][k] /= a[k][k];
        __syncwarp();
        for (int j = k + 1; j < 16; j++)
            if (t >= j && t < 16) a[t][j] -= a[t][k] * a[j][k];
        __syncwarp();
    }
    for (int i = t; i < 256; i += 32) out[blockIdx.x * 256 + i] = a[i / 16][i % 16];
}

// cutrace: integrate<<<8, 64>>>(dd, 100)
__global__ void integrate(double *out, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = i * 0.01, h = 0.01, y = 1.0;
    for (int k = 0; k < steps; k++) {
        double k1 = -y + x, k2 = -(y + 0.5 * h * k1) + x + 0.5 * h;
        y += h * k2;
        x += h;
    }
    out[i] = y;
}

// cutrace: black_scholes<<<8, 128>>>(wide, points, 1000)
__global__ void black_scholes(float2 *out, const float *spot, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 80.0f + 40.0f * spot[i], k = 100.0f, v = 0.3f, t = 1.0f, r = 0.02f;
    float d1 = (logf(s / k) + (r + 0.5f * v * v) * t) / (v * sqrtf(t)), d2 = d1 - v * sqrtf(t);
    float call = s * normcdff(d1) - k * expf(-r * t) * normcdff(d2);
    out[i] = make_float2(call, call - s + k * expf(-r * t));
}

// cutrace: sort_sixteen<<<4, 64>>>(cells)
__global__ void sort_sixteen(int *values)
{
    int mine[4 * 4];
    int *p = values + (blockIdx.x * blockDim.x + threadIdx.x) % 64 * 16;
    for (int i = 0; i < 16; i++) mine[i] = p[i];
    for (int i = 1; i < 16; i++) {
        int v = mine[i], j = i - 1;
        while (j >= 0 && mine[j] > v) {
            mine[j + 1] = mine[j];
            j--;
        }
        mine[j + 1] = v;
    }
    if (blockIdx.x == 0)
        for (int i = 0; i < 16; i++) p[i] = mine[i];
}

// cutrace: private_histogram<<<2, 128>>>(sums, text, 32)
__global__ void private_histogram(int *out, const u8 *in, int each)
{
    u8 bins[64];
    for (int i = 0; i < 64; i++) bins[i] = 0;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < each; i++) bins[in[t * each + i] >> 2]++;
    int best = 0;
    for (int i = 1; i < 64; i++) if (bins[i] > bins[best]) best = i;
    out[t] = best;
}

// cutrace: many_values<<<2, 128>>>(wide, points)
__global__ void __launch_bounds__(128, 16) many_values(float *out, const float *in)
{
    float v[48];
    int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 48; i++) v[i] = in[(t + i * 37) & 2047];
    for (int k = 0; k < 3; k++)
#pragma unroll
        for (int i = 0; i < 48; i++) v[i] = v[i] * v[(i + 17) % 48] + v[(i + 31) % 48];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 48; i++) sum += v[i];
    out[t] = sum;
}

// cutrace: interpret<<<4, 64>>>(sums, text, 24)
__global__ void interpret(int *out, const u8 *program, int length)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, stack[8], top = 1;
    stack[0] = t;
    for (int pc = 0; pc < length; pc++) {
        int op = program[(t / 8) * length + pc];
        switch (op & 7) {
        case 0: if (top < 8) stack[top++] = op; break;
        case 1: if (top > 1) { top--; stack[top - 1] += stack[top]; } break;
        case 2: if (top > 1) { top--; stack[top - 1] *= stack[top]; } break;
        case 3: if (top < 8) { stack[top] = stack[top - 1]; top++; } break;
        case 4: stack[top - 1] = -stack[top - 1]; break;
        default: stack[top - 1] ^= op;
        }
    }
    out[t] = stack[top - 1];
}

// cutrace: shared_kinds<<<4, 128>>>(cells, text)
__global__ void shared_kinds(int *out, const u8 *in)
{
    __shared__ int least, most, both, any, odd;
    __shared__ u32 turns;
    if (threadIdx.x == 0) {
        least = 1 << 30;
        most = turns = any = odd = 0;
        both = -1;
    }
    __syncthreads();
    int v = in[blockIdx.x * 128 + threadIdx.x];
    atomicMin(&least, v);
    atomicMax(&most, v);
    atomicAnd(&both, v | 0x80);
    atomicOr(&any, v);
    atomicXor(&odd, v);
    atomicInc(&turns, 99);
    __syncthreads();
    if (threadIdx.x == 0) {
        int *to = out + blockIdx.x * 6;
        to[0] = least;
        to[1] = most;
        to[2] = both;
        to[3] = any;
        to[4] = odd;
        to[5] = turns;
    }
}

// cutrace: global_kinds<<<8, 64>>>(cells, longs, text)
__global__ void global_kinds(int *a, u64 *b, const u8 *in)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = in[t];
    atomicMax(a + v, t);
    atomicOr((u32 *)a + 256 + (v & 31), 1u << (v >> 5));
    atomicMin(b + (v & 15), (u64)t << 20);
    atomicSub(a + 512 + v % 3, 1);
}

// cutrace: tickets<<<8, 64>>>(cells, sums)
__global__ void tickets(int *counter, int *order)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    order[t] = atomicExch(counter + (t & 127), t);
}

// cutrace: sum_doubles<<<8, 64>>>(dd, dv, 16)
__global__ void sum_doubles(double *out, const double *in, int bins)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out + t % bins, in[t]);
}

// cutrace: float_bins<<<4, 128>>>(wide, points, text)
__global__ void float_bins(float *out, const float *weights, const u8 *in)
{
    __shared__ float bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0.0f;
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[in[t] >> 2], weights[t]);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}

// cutrace: double_bins<<<4, 64>>>(dd, dv, text)
__global__ void double_bins(double *out, const double *weights, const u8 *in)
{
    __shared__ double bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0.0;
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[in[t] >> 3], weights[t]);
    __syncthreads();
    if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}

// cutrace: half_sums<<<4, 64>>>(hy, hx, 512)
__global__ void half_sums(half2 *out, const half2 *in, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out + t % 40, in[t % n]);
}

// cutrace: multiply_into<<<4, 64>>>(wide, points)
__global__ void multiply_into(float *to, const float *by)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int *p = (int *)to + t, old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, __float_as_int(__int_as_float(seen) * by[t] + 1.0f));
    } while (old != seen);
}

// cutrace: vectors<<<4, 64>>>(dd, keys, shorts, text)
__global__ void vectors(double2 *out, const longlong2 *longs, const short4 *small, const char2 *tiny)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    longlong2 l = longs[t % 128];
    short4 s = small[t];
    char2 c = tiny[t * 2];
    out[t] = make_double2(l.x + s.x * s.y, l.y - s.z + s.w * c.x - c.y);
}

// cutrace: three_arrays<<<4, 96, 96*8 + 96*4 + 96*2>>>(wide, dv, hx)
__global__ void three_arrays(float *out, const double *a, const half *b)
{
    extern __shared__ double d[];
    float *f = (float *)(d + blockDim.x);
    half *h = (half *)(f + blockDim.x);
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    d[t] = a[i];
    h[t] = b[i];
    f[t] = i;
    __syncthreads();
    int u = blockDim.x - 1 - t;
    out[i] = d[u] + f[u] * __half2float(h[u]);
}
