// Kinds of kernels whose estimates were wrong: their times, each once after a warm-up of its own kind.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
typedef unsigned u32;
typedef unsigned long long u64;
#define CK(x) do { cudaError_t e_ = (x); if (e_) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); } } while (0)
__device__ __forceinline__ u32 mix(u32 x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16; return x; }
#define ID (blockIdx.x * blockDim.x + threadIdx.x)

// --- exchanges whose rivals give up, or not
__global__ void cas_min_one(float *best, const float *v, int n) {
    int i = ID; if (i >= n) return;
    float x = v[i]; int *at = (int *)best; int old = *at;
    while (x < __int_as_float(old)) { int seen = atomicCAS(at, old, __float_as_int(x)); if (seen == old) break; old = seen; }
}
__global__ void cas_max_many(float *best, const float *v, int n, int places) {
    int i = ID; if (i >= n) return;
    float x = v[i]; int *at = (int *)best + mix(i) % places; int old = *at;
    while (x > __int_as_float(old)) { int seen = atomicCAS(at, old, __float_as_int(x)); if (seen == old) break; old = seen; }
}
__global__ void cas_add_double(double *sum, const float *v, int n, int places) {
    int i = ID; if (i >= n) return;
    u64 *at = (u64 *)sum + mix(i) % places; u64 old = *at, seen;
    do { seen = old; old = atomicCAS(at, seen, __double_as_longlong(v[i] + __longlong_as_double(seen))); } while (seen != old);
}
__global__ void cas_claim(int *owner, int n, int places) {
    int i = ID; if (i >= n) return;
    atomicCAS(owner + mix(i) % places, -1, i);
}
__global__ void cas_hash(u32 *table, int n, u32 mask) {
    int i = ID; if (i >= n) return;
    u32 key = mix(i) | 1, at = mix(key) & mask;
    for (;;) { u32 old = atomicCAS(table + at, 0u, key); if (!old || old == key) break; at = (at + 1) & mask; }
}
__global__ void cas_link(int *parent, const int *a, const int *b, int n) {   // union of two sets, as in connected components
    int i = ID; if (i >= n) return;
    int x = a[i], y = b[i];
    for (;;) {
        while (parent[x] != x) x = parent[x];
        while (parent[y] != y) y = parent[y];
        if (x == y) break;
        if (x < y) { int t = x; x = y; y = t; }
        if (atomicCAS(parent + x, x, y) == x) break;
    }
}
__global__ void locked_add(int *locks, int *sums, int places) {   // one lane of a block takes a lock
    if (threadIdx.x == 0) {
        int p = blockIdx.x % places;
        while (atomicCAS(locks + p, 0, 1)) ;
        __threadfence(); ((volatile int *)sums)[p] += 1; __threadfence();
        atomicExch(locks + p, 0);
    }
}

// --- double precision and functions in loops
__global__ void dp_chain(double *out, double a, double b, int times) {
    double x = ID; for (int i = 0; i < times; i++) x = x * a + b; out[ID] = x;
}
__global__ void dp_four(double *out, double a, double b, int times) {
    double x = ID, y = x + 1, z = x + 2, w = x + 3;
    for (int i = 0; i < times; i++) { x = x * a + b; y = y * a + b; z = z * a + b; w = w * a + b; }
    out[ID] = x + y + z + w;
}
__global__ void dp_exp(double *out, int times) { double x = ID * 1e-6, s = 0; for (int i = 0; i < times; i++) { s += exp(x); x += 1e-3; } out[ID] = s; }
__global__ void dp_sin(double *out, int times) { double x = ID * 1e-6, s = 0; for (int i = 0; i < times; i++) { s += sin(x); x += 1e-3; } out[ID] = s; }
__global__ void dp_pow(double *out, int times) { double x = 1 + ID * 1e-6, s = 0; for (int i = 0; i < times; i++) { s += pow(x, 1.7); x += 1e-3; } out[ID] = s; }
__global__ void dp_log(double *out, int times) { double x = 1 + ID * 1e-6, s = 0; for (int i = 0; i < times; i++) { s += log(x); x += 1e-3; } out[ID] = s; }
__global__ void dp_divide(double *out, int times) { double x = 1 + ID * 1e-6, s = 1; for (int i = 0; i < times; i++) { s = x / (s + 1); x += 1e-3; } out[ID] = s; }
__global__ void dp_root(double *out, int times) { double x = 1 + ID * 1e-6, s = 1; for (int i = 0; i < times; i++) { s = sqrt(s + x); x += 1e-3; } out[ID] = s; }
__global__ void dp_bodies(double4_16a *acc, const double4_16a *p, int n) {
    double4_16a me = p[ID % n], a = {0, 0, 0, 0};
    for (int j = 0; j < n; j++) {
        double4_16a q = p[j]; double dx = q.x - me.x, dy = q.y - me.y, dz = q.z - me.z;
        double r = rsqrt(dx * dx + dy * dy + dz * dz + 1e-3); double f = q.w * r * r * r;
        a.x += f * dx; a.y += f * dy; a.z += f * dz;
    }
    acc[ID] = a;
}
__global__ void dp_mandel(int *out, int w, int h, int most) {
    int i = ID, x = i % w, y = i / w; if (y >= h) return;
    double cx = -2 + 3.0 * x / w, cy = -1 + 2.0 * y / h, zx = 0, zy = 0; int k = 0;
    while (zx * zx + zy * zy < 4 && k < most) { double t = zx * zx - zy * zy + cx; zy = 2 * zx * zy + cy; zx = t; k++; }
    out[i] = k;
}
__global__ void sf_sin(float *out, int times) { float x = ID * 1e-4f, s = 0; for (int i = 0; i < times; i++) { s += sinf(x); x += 1e-3f; } out[ID] = s; }
__global__ void sf_pow(float *out, int times) { float x = 1 + ID * 1e-6f, s = 0; for (int i = 0; i < times; i++) { s += powf(x, 1.7f); x += 1e-3f; } out[ID] = s; }
__global__ void sf_exp(float *out, int times) { float x = ID * 1e-6f, s = 0; for (int i = 0; i < times; i++) { s += expf(x) + logf(x + 1); x += 1e-3f; } out[ID] = s; }
__global__ void sf_erf(float *out, int times) { float x = ID * 1e-6f, s = 0; for (int i = 0; i < times; i++) { s += erff(x) + tanhf(x); x += 1e-3f; } out[ID] = s; }
__global__ void sf_fast(float *out, int times) { float x = ID * 1e-6f, s = 0; for (int i = 0; i < times; i++) { s += __sinf(x) * __expf(-x); x += 1e-3f; } out[ID] = s; }
__global__ void sf_divide(float *out, int times) { float x = 1 + ID * 1e-6f, s = 1; for (int i = 0; i < times; i++) { s = x / (s + 1); x += 1e-3f; } out[ID] = s; }
__global__ void int_modulo(int *out, int m, int times) { u32 x = ID, s = 0; for (int i = 0; i < times; i++) { s += x % (m + i); x = x * 1664525u + 1013904223u; } out[ID] = s; }
__global__ void long_modulo(u64 *out, u64 m, int times) { u64 x = ID, s = 0; for (int i = 0; i < times; i++) { s += x % (m + i); x = x * 6364136223846793005ull + 1442695040888963407ull; } out[ID] = s; }
__global__ void black_scholes(double *call, const double *s, const double *k, const double *t, int n) {
    int i = ID; if (i >= n) return;
    double d = sqrt(t[i]), a = (log(s[i] / k[i]) + (0.02 + 0.045) * t[i]) / (0.3 * d), b = a - 0.3 * d;
    call[i] = s[i] * normcdf(a) - k[i] * exp(-0.02 * t[i]) * normcdf(b);
}

// --- host memory and managed memory
__global__ void over_read(const float4 *in, float *out, int n) {
    float s = 0; for (int i = ID; i < n; i += gridDim.x * blockDim.x) { float4 v = in[i]; s += v.x + v.y + v.z + v.w; } if (s == 1.2345f) *out = s;
}
__global__ void over_read_one(const float *in, float *out, int n, int stride) { int i = ID; if (i < n) { float v = in[(size_t)i * stride]; if (v == 1.2345f) *out = v; } }
__global__ void over_gather(const float *in, float *out, int n, u32 mask) { int i = ID; if (i < n) { float v = in[mix(i) & mask]; if (v == 1.2345f) *out = v; } }
__global__ void over_write(float *out, int n) { int i = ID; if (i < n) out[i] = i; }
__global__ void over_scale(float *a, int n) { int i = ID; if (i < n) a[i] = 2 * a[i]; }
__global__ void over_add(float *c, const float *a, const float *b, int n) { int i = ID; if (i < n) c[i] = a[i] + b[i]; }
__global__ void over_chase(const int *next, int *out, int times) { int at = 0; for (int i = 0; i < times; i++) at = next[at]; *out = at; }

// --- barriers of the grid
__global__ void grid_only(int times) { cg::grid_group g = cg::this_grid(); for (int i = 0; i < times; i++) g.sync(); }
__global__ void grid_jacobi(float *a, float *b, int n, int times) {
    cg::grid_group g = cg::this_grid();
    for (int t = 0; t < times; t++) {
        for (int i = ID; i < n; i += gridDim.x * blockDim.x) { int l = i ? i - 1 : i, r = i < n - 1 ? i + 1 : i; b[i] = 0.5f * a[i] + 0.25f * (a[l] + a[r]); }
        g.sync(); float *c = a; a = b; b = c;
    }
}
__global__ void grid_counter(volatile int *count, int times) {   // the barrier of textbooks: one counter, polled
    for (int t = 1; t <= times; t++) {
        __syncthreads();
        if (threadIdx.x == 0) { __threadfence(); atomicAdd((int *)count, 1); while (*count < t * (int)gridDim.x) ; __threadfence(); }
        __syncthreads();
    }
}
__global__ void last_block(const float *v, float *part, float *out, u32 *count, int n) {
    __shared__ float s[256]; __shared__ bool last;
    float x = 0; for (int i = ID; i < n; i += gridDim.x * blockDim.x) x += v[i];
    s[threadIdx.x] = x; __syncthreads();
    for (int w = 128; w; w /= 2) { if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w]; __syncthreads(); }
    if (!threadIdx.x) { part[blockIdx.x] = s[0]; __threadfence(); last = atomicAdd(count, 1) == gridDim.x - 1; }
    __syncthreads();
    if (last && !threadIdx.x) { float t = 0; for (int i = 0; i < gridDim.x; i++) t += ((volatile float *)part)[i]; *out = t; }
}

// --- starved of registers
__global__ void __launch_bounds__(1024, 2) starved(float *out, const float *in, int times) {
    float a[48];
#pragma unroll
    for (int i = 0; i < 48; i++) a[i] = in[(ID + i * 32) & 0xffff];
    for (int t = 0; t < times; t++)
#pragma unroll
        for (int i = 0; i < 48; i++) a[i] = a[i] * a[(i * 7 + 1) % 48] + a[(i * 5 + 2) % 48];
    float s = 0;
#pragma unroll
    for (int i = 0; i < 48; i++) s += a[i];
    out[ID] = s;
}
__global__ void indexed(float *out, const int *order, int times) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = i + threadIdx.x;
    for (int t = 0; t < times; t++) { int k = order[t & 1023] & 63; a[k] += a[(k * 7 + t) & 63]; }
    float s = 0; for (int i = 0; i < 64; i++) s += a[i];
    out[ID] = s;
}
__global__ void local_sort(int *out, int n) {
    int a[32]; u32 x = ID;
    for (int i = 0; i < 32; i++) a[i] = (x = mix(x + i)) & 1023;
    for (int i = 1; i < n; i++) { int v = a[i], j = i - 1; while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; } a[j + 1] = v; }
    out[ID] = a[n / 2];
}
__global__ void local_stack(int *out, int depth) {
    int stack[64], top = 0, s = 0; stack[top++] = ID;
    while (top) { int v = stack[--top]; s += v; int d = v & 15; if (d < depth && top < 62) { stack[top++] = (v & ~15) + d + 1 + 16; stack[top++] = (v & ~15) + d + 1 + 32; } }
    out[ID] = s;
}

// --- textures
__global__ void tex_blur(cudaTextureObject_t t, float *out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= w || y >= h) return;
    float s = 0; for (int dy = -r; dy <= r; dy++) for (int dx = -r; dx <= r; dx++) s += tex2D<float>(t, x + dx + 0.5f, y + dy + 0.5f);
    out[y * w + x] = s;
}
__global__ void tex_bilateral(cudaTextureObject_t t, float4 *out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= w || y >= h) return;
    float4 c = tex2D<float4>(t, x, y), s = {0, 0, 0, 0}; float k = 0;
    for (int dy = -r; dy <= r; dy++) for (int dx = -r; dx <= r; dx++) {
        float4 v = tex2D<float4>(t, x + dx, y + dy); float d = (v.x - c.x) * (v.x - c.x) + (v.y - c.y) * (v.y - c.y) + (v.z - c.z) * (v.z - c.z);
        float e = __expf(-d * 8) * __expf(-(dx * dx + dy * dy) * 0.05f); k += e; s.x += e * v.x; s.y += e * v.y; s.z += e * v.z; }
    out[y * w + x] = make_float4(s.x / k, s.y / k, s.z / k, 0);
}
__global__ void tex_volume(cudaTextureObject_t t, float *out, int w, int h, int steps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= w || y >= h) return;
    float s = 0, px = x / (float)w, py = y / (float)h;
    for (int i = 0; i < steps; i++) { float z = i / (float)steps; s += tex3D<float>(t, px + 0.1f * z, py, z) * (1 - s); if (s > 0.95f) break; }
    out[y * w + x] = s;
}
__global__ void tex_rotate(cudaTextureObject_t t, float *out, int w, int h, float c, float s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= w || y >= h) return;
    out[y * w + x] = tex2D<float>(t, c * x - s * y + 0.5f, s * x + c * y + 0.5f);
}
__global__ void tex_gather(cudaTextureObject_t t, float *out, const int *order, int n) { int i = ID; if (i < n) out[i] = tex1Dfetch<float>(t, order[i]); }

// --- scatter to memory
__global__ void scatter_words(float *out, u32 mask, int n) { int i = ID; if (i < n) out[mix(i) & mask] = i; }
__global__ void scatter_from(float *out, const int *to, const float *in, int n) { int i = ID; if (i < n) out[to[i]] = in[i]; }
__global__ void scatter_quads(float4 *out, u32 mask, int n) { int i = ID; if (i < n) out[mix(i) & mask] = make_float4(i, 1, 2, 3); }
__global__ void scatter_lines(float *out, u32 mask, int n) { int i = ID; if (i < n) out[((size_t)(mix(i / 32) & mask)) * 32 + i % 32] = i; }
__global__ void gather_words(float *out, const float *in, u32 mask, int n) { int i = ID; if (i < n) out[i] = in[mix(i) & mask]; }
__global__ void update_words(float *io, u32 mask, int n) { int i = ID; if (i < n) io[mix(i) & mask] += 1; }
__global__ void count_words(int *bins, u32 mask, int n) { int i = ID; if (i < n) atomicAdd(bins + (mix(i) & mask), 1); }
__global__ void chase_words(const int *next, int *out, int n, int times) { int at = ID & (n - 1); for (int i = 0; i < times; i++) at = next[at]; out[ID] = at; }

// --- local arrays in shared memory
template <int P> __global__ void bank_rows(float *out, int times) {   // a row a thread, P words apart
    extern __shared__ float s[]; float *a = s + threadIdx.x * P;
    for (int i = 0; i < 32; i++) a[i] = i + threadIdx.x;
    float x = 0; for (int t = 0; t < times; t++) { int k = t & 31; x += a[k]; a[(k + 5) & 31] = x; }
    out[ID] = x;
}
__global__ void bank_sort(int *out, int n, int pitch) {
    extern __shared__ int si[]; int *a = si + threadIdx.x * pitch; u32 x = ID;
    for (int i = 0; i < n; i++) a[i] = (x = mix(x + i)) & 1023;
    for (int i = 1; i < n; i++) { int v = a[i], j = i - 1; while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; } a[j + 1] = v; }
    out[ID] = a[n / 2];
}
__global__ void bank_bytes(u32 *out, const u32 *in, int n) {   // a histogram of 64 bytes a thread
    extern __shared__ unsigned char sb[]; unsigned char *h = sb + threadIdx.x * 64;
    for (int i = 0; i < 64; i++) h[i] = 0;
    for (int i = ID; i < n; i += gridDim.x * blockDim.x) { u32 v = in[i]; h[v & 63]++; h[v >> 8 & 63]++; h[v >> 16 & 63]++; h[v >> 24 & 63]++; }
    u32 s = 0; for (int i = 0; i < 64; i++) s = s * 31 + h[i];
    out[ID] = s;
}
__global__ void bank_doubles(double *out, int times, int pitch) {
    extern __shared__ double sd[]; double *a = sd + threadIdx.x * pitch;
    for (int i = 0; i < 16; i++) a[i] = i;
    double x = 0; for (int t = 0; t < times; t++) { x += a[t & 15]; a[(t + 3) & 15] = x; }
    out[ID] = x;
}
__global__ void bank_column(float *out, const float *in, int n) {   // a tile transposed without padding
    __shared__ float t[32][32];
    int x = threadIdx.x, y = threadIdx.y; size_t w = (size_t)gridDim.x * 32;
    for (int j = 0; j < 32; j += 8) t[y + j][x] = in[(blockIdx.y * 32 + y + j) * w + blockIdx.x * 32 + x];
    __syncthreads();
    for (int j = 0; j < 32; j += 8) out[(blockIdx.x * 32 + y + j) * w + blockIdx.y * 32 + x] = t[x][y + j];
}

int main(int argc, char **argv) {
    const int M = 1 << 20; size_t big = 256 << 20;
    char *a, *b; CK(cudaMalloc(&a, big)); CK(cudaMalloc(&b, big)); CK(cudaMemset(a, 0, big)); CK(cudaMemset(b, 0, big));
    float *host = (float *)malloc(64 * M); int *order = (int *)malloc(16 * M);
    srand(7); for (int i = 0; i < 4 * M; i++) host[i] = 1 + rand() / (float)RAND_MAX;
    for (int i = 0; i < 4 * M; i++) order[i] = i;
    for (int i = 4 * M - 1; i; i--) { int j = (int)(((u64)rand() * 32768 + rand()) % (i + 1)); int t = order[i]; order[i] = order[j]; order[j] = t; }
    float *v; int *ord; CK(cudaMalloc(&v, 16 * M)); CK(cudaMalloc(&ord, 16 * M));
    CK(cudaMemcpy(v, host, 16 * M, cudaMemcpyHostToDevice)); CK(cudaMemcpy(ord, order, 16 * M, cudaMemcpyHostToDevice));
    float *fa = (float *)a; double *da = (double *)a; int *ia = (int *)a;
    float hundred = 100;
    CK(cudaMemcpy(a, &hundred, 4, cudaMemcpyHostToDevice));
    cas_min_one<<<M / 256, 256>>>(fa, v, M);
    CK(cudaMemset(a, 0, 1 << 20)); cas_max_many<<<M / 256, 256>>>(fa, v, M, 64);
    CK(cudaMemset(a, 0, 1 << 20)); cas_max_many<<<M / 256, 256>>>(fa, v, M, 16384);
    CK(cudaMemset(a, 0, 1 << 20)); cas_add_double<<<16, 256>>>(da, v, 4096, 1);
    CK(cudaMemset(a, 0, 1 << 20)); cas_add_double<<<M / 256, 256>>>(da, v, M, 4096);
    CK(cudaMemset(a, 0, 1 << 20)); cas_add_double<<<M / 4 / 256, 256>>>(da, v, M / 4, 64);
    CK(cudaMemset(a, 255, 1 << 20)); cas_claim<<<M / 256, 256>>>(ia, M, 1);
    CK(cudaMemset(a, 255, 1 << 20)); cas_claim<<<M / 256, 256>>>(ia, M, 65536);
    CK(cudaMemset(a, 0, 32 << 20)); cas_hash<<<M / 256, 256>>>((u32 *)a, M, 2 * M - 1);
    CK(cudaMemset(a, 0, 32 << 20)); cas_hash<<<M / 256, 256>>>((u32 *)a, M, 8 * M - 1);
    { int *p = (int *)b; int *h = (int *)malloc(4 * M); for (int i = 0; i < M; i++) h[i] = i; CK(cudaMemcpy(p, h, 4 * M, cudaMemcpyHostToDevice));
      for (int i = 0; i < M; i++) h[i] = ((u64)rand() * 32768 + rand()) % M; CK(cudaMemcpy(ia, h, 4 * M, cudaMemcpyHostToDevice));
      for (int i = 0; i < M; i++) h[i] = ((u64)rand() * 32768 + rand()) % M; CK(cudaMemcpy(ia + M, h, 4 * M, cudaMemcpyHostToDevice));
      cas_link<<<M / 2 / 256, 256>>>(p, ia, ia + M, M / 2); free(h); }
    CK(cudaMemset(a, 0, 1 << 20)); locked_add<<<1024, 32>>>(ia, ia + 1024, 1);
    CK(cudaMemset(a, 0, 1 << 20)); locked_add<<<1024, 32>>>(ia, ia + 1024, 64);

    dp_chain<<<528, 256>>>(da, 0.999, 1e-3, 1000);
    dp_chain<<<132, 64>>>(da, 0.999, 1e-3, 1000);
    dp_four<<<528, 256>>>(da, 0.999, 1e-3, 250);
    dp_exp<<<528, 256>>>(da, 64); dp_sin<<<528, 256>>>(da, 64); dp_pow<<<264, 256>>>(da, 32); dp_log<<<528, 256>>>(da, 64);
    dp_divide<<<528, 256>>>(da, 64); dp_root<<<528, 256>>>(da, 64);
    dp_exp<<<66, 64>>>(da, 256); dp_pow<<<66, 64>>>(da, 64);
    dp_bodies<<<64, 64>>>((double4_16a *)a, (double4_16a *)b, 1024);
    dp_mandel<<<512 * 512 / 256, 256>>>(ia, 512, 512, 256);
    sf_sin<<<528, 256>>>(fa, 200); sf_pow<<<528, 256>>>(fa, 100); sf_exp<<<528, 256>>>(fa, 200); sf_erf<<<528, 256>>>(fa, 100); sf_fast<<<1056, 256>>>(fa, 300); sf_divide<<<528, 256>>>(fa, 200);
    sf_pow<<<66, 64>>>(fa, 500);
    int_modulo<<<528, 256>>>(ia, 1000, 200); long_modulo<<<264, 256>>>((u64 *)a, 100000, 64);
    black_scholes<<<M / 256, 256>>>(da, (double *)b, (double *)b + M, (double *)b + 2 * M, M);

    { float *h, *d; CK(cudaHostAlloc(&h, 16 * M, cudaHostAllocMapped)); for (int i = 0; i < 4 * M; i++) h[i] = 1; CK(cudaHostGetDevicePointer(&d, h, 0));
      over_read<<<264, 256>>>((float4 *)d, fa, M);                 // 16 MB
      over_read<<<132, 256>>>((float4 *)d, fa, M / 16);            // 1 MB
      over_read<<<1, 256>>>((float4 *)d, fa, 4096);                // 64 KB, one block
      over_read_one<<<M / 256, 256>>>(d, fa, M, 1);                // 4 MB, a word a lane
      over_read_one<<<M / 16 / 256, 256>>>(d, fa, M / 16, 32);     // a line a lane
      over_gather<<<M / 8 / 256, 256>>>(d, fa, M / 8, 4 * M - 1);
      over_write<<<M / 256, 256>>>(d, M);
      over_scale<<<M / 256, 256>>>(d, M);
      over_add<<<M / 256, 256>>>(d, d + M, d + 2 * M, M);
      over_add<<<4, 256>>>(d, d + M, d + 2 * M, 1024);
      int *n = (int *)h; for (int i = 0; i < 4096; i++) n[i * 1024] = ((i * 1237 + 1) & 4095) * 1024; over_chase<<<1, 1>>>((int *)d, ia, 64);
      CK(cudaDeviceSynchronize()); CK(cudaFreeHost(h)); }
    for (int k = 0; k < 2; k++) {
      float *m; CK(cudaMallocManaged(&m, 16 * M)); for (int i = 0; i < 4 * M; i++) m[i] = 1;
      if (k) { over_read_one<<<M / 16 / 256, 256>>>(m, fa, M / 16, 1); CK(cudaDeviceSynchronize()); }   // 256 KB first
      over_scale<<<4 * M / 256, 256>>>(m, 4 * M);                  // the host wrote it
      CK(cudaDeviceSynchronize());
      over_scale<<<4 * M / 256, 256>>>(m, 4 * M);                  // it is on the device
      CK(cudaDeviceSynchronize());
      for (int i = 0; i < 4 * M; i += 1024 * 64) m[i] += 1;        // the host takes a part back
      over_scale<<<4 * M / 256, 256>>>(m, 4 * M);
      CK(cudaDeviceSynchronize());
      CK(cudaFree(m));
      CK(cudaMallocManaged(&m, 16 * M)); over_write<<<4 * M / 256, 256>>>(m, 4 * M);   // nobody had touched it
      CK(cudaDeviceSynchronize()); CK(cudaFree(m)); }

    { int times[] = {10, 100}, blocks[] = {132, 528, 1056}; 
      for (int t : times) for (int n : blocks) { void *args[] = {&t}; CK(cudaLaunchCooperativeKernel((void *)grid_only, n, 128, args, 0, 0)); }
      int t = 20, n = 132, c = M / 4; float *q = fa, *r = (float *)b; void *args[] = {&q, &r, &c, &t};
      CK(cudaLaunchCooperativeKernel((void *)grid_jacobi, 264, 256, args, 0, 0)); c = M / 32; CK(cudaLaunchCooperativeKernel((void *)grid_jacobi, n, 256, args, 0, 0));
      CK(cudaMemset(a, 0, 64)); grid_counter<<<132, 64>>>(ia, 50);
      CK(cudaMemset(a, 0, 64)); last_block<<<528, 256>>>(v, fa + 1024, fa + 64, (u32 *)a, 4 * M); }

    starved<<<264, 1024>>>(fa, v, 20); starved<<<132, 1024>>>(fa, v, 60);
    indexed<<<528, 256>>>(fa, ord, 500); indexed<<<66, 128>>>(fa, ord, 1000); local_sort<<<528, 128>>>(ia, 32); local_stack<<<528, 128>>>(ia, 5);

    { int w = 1024, h = 1024; cudaArray_t arr; cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(); CK(cudaMallocArray(&arr, &f, w, h));
      CK(cudaMemcpy2DToArray(arr, 0, 0, host, w * 4, w * 4, h, cudaMemcpyHostToDevice));
      cudaResourceDesc r = {}; r.resType = cudaResourceTypeArray; r.res.array.array = arr; cudaTextureDesc d = {}; d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp; d.filterMode = cudaFilterModeLinear; d.readMode = cudaReadModeElementType;
      cudaTextureObject_t t; CK(cudaCreateTextureObject(&t, &r, &d, 0)); d.filterMode = cudaFilterModePoint; cudaTextureObject_t p; CK(cudaCreateTextureObject(&p, &r, &d, 0));
      dim3 g(w / 16, h / 16), bl(16, 16);
      tex_blur<<<g, bl>>>(t, fa, w, h, 2); tex_blur<<<g, bl>>>(p, fa, w, h, 4); tex_rotate<<<g, bl>>>(t, fa, w, h, 0.8f, 0.6f); tex_rotate<<<g, bl>>>(p, fa, w, h, 0.8f, 0.6f);
      cudaArray_t four; cudaChannelFormatDesc f4 = cudaCreateChannelDesc<float4>(); CK(cudaMallocArray(&four, &f4, 512, 512)); CK(cudaMemcpy2DToArray(four, 0, 0, host, 512 * 16, 512 * 16, 512, cudaMemcpyHostToDevice));
      r.res.array.array = four; cudaTextureObject_t q; CK(cudaCreateTextureObject(&q, &r, &d, 0)); tex_bilateral<<<dim3(32, 32), bl>>>(q, (float4 *)a, 512, 512, 3);
      cudaArray_t vol; CK(cudaMalloc3DArray(&vol, &f, make_cudaExtent(128, 128, 128))); cudaMemcpy3DParms c = {}; c.srcPtr = make_cudaPitchedPtr(host, 512, 128, 128); c.dstArray = vol; c.extent = make_cudaExtent(128, 128, 128); c.kind = cudaMemcpyHostToDevice; CK(cudaMemcpy3D(&c));
      r.res.array.array = vol; d.normalizedCoords = 1; d.filterMode = cudaFilterModeLinear; d.addressMode[2] = cudaAddressModeClamp; cudaTextureObject_t z; CK(cudaCreateTextureObject(&z, &r, &d, 0)); tex_volume<<<dim3(32, 32), bl>>>(z, fa, 512, 512, 100);
      cudaResourceDesc l = {}; l.resType = cudaResourceTypeLinear; l.res.linear.devPtr = v; l.res.linear.desc = f; l.res.linear.sizeInBytes = 16 * M; cudaTextureDesc e = {}; cudaTextureObject_t y; CK(cudaCreateTextureObject(&y, &l, &e, 0)); tex_gather<<<M / 256, 256>>>(y, fa, ord, M); }

    scatter_words<<<2 * M / 256, 256>>>(fa, 64 * M - 1, 2 * M); scatter_words<<<2 * M / 256, 256>>>(fa, 4 * M - 1, 2 * M);
    scatter_from<<<4 * M / 256, 256>>>(fa, ord, v, 4 * M); scatter_quads<<<M / 256, 256>>>((float4 *)a, 16 * M - 1, M); scatter_lines<<<4 * M / 256, 256>>>(fa, 2 * M - 1, 4 * M);
    gather_words<<<2 * M / 256, 256>>>((float *)b, fa, 64 * M - 1, 2 * M); update_words<<<M / 256, 256>>>(fa, 64 * M - 1, M); count_words<<<2 * M / 256, 256>>>(ia, 64 * M - 1, 2 * M); count_words<<<2 * M / 256, 256>>>(ia, 4 * M - 1, 2 * M);
    chase_words<<<528, 256>>>(ord, ia, 4 * M, 16);

    CK(cudaFuncSetAttribute(bank_rows<32>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536)); CK(cudaFuncSetAttribute(bank_rows<33>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536)); CK(cudaFuncSetAttribute(bank_rows<40>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    bank_rows<32><<<264, 128, 128 * 32 * 4>>>(fa, 400); bank_rows<33><<<264, 128, 128 * 33 * 4>>>(fa, 400); bank_rows<40><<<264, 128, 128 * 40 * 4>>>(fa, 400); bank_rows<32><<<66, 32, 32 * 32 * 4>>>(fa, 1000);
    bank_sort<<<264, 128, 128 * 32 * 4>>>(ia, 32, 32); bank_sort<<<264, 128, 128 * 33 * 4>>>(ia, 32, 33); bank_bytes<<<264, 128, 128 * 64>>>((u32 *)a, (u32 *)v, M); bank_doubles<<<264, 128, 128 * 16 * 8>>>(da, 300, 16); bank_doubles<<<264, 128, 128 * 17 * 8>>>(da, 300, 17);
    bank_column<<<dim3(32, 32), dim3(32, 8)>>>(fa, (float *)b, 1024);
    CK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}
