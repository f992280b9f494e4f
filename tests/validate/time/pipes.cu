// Pipelines of bulk copies and tensor products, as libraries write them: what each takes.
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
typedef unsigned long long u64;
#define CK(x) do { cudaError_t e_ = (x); if (e_) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); cudaGetLastError(); } } while (0)
__device__ __forceinline__ unsigned sh(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" :: "r"(sh(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void expect(u64 *b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sh(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void arrive(u64 *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sh(b)) : "memory"); }
__device__ __forceinline__ void await(u64 *b, int parity) { asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(sh(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ void load(void *to, const void *from, int bytes, u64 *g) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sh(to)), "l"(from), "r"(bytes), "r"(sh(g)) : "memory"); }
__device__ __forceinline__ void box(void *to, const CUtensorMap *m, int x, int y, u64 *g) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(sh(to)), "l"(m), "r"(x), "r"(y), "r"(sh(g)) : "memory"); }
__device__ __forceinline__ void put_box(const CUtensorMap *m, const void *from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3]; cp.async.bulk.commit_group;" :: "l"(m), "r"(x), "r"(y), "r"(sh(from)) : "memory"); }
__device__ __forceinline__ void store(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;" :: "l"(to), "r"(sh(from)), "r"(bytes) : "memory"); }
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
extern __shared__ __align__(1024) char tile[];
struct w_f16_f32_64 { typedef float T; static const int C = 32, R = 1;
  __device__ static __forceinline__ void go(T *d, const unsigned *a, unsigned long long da, unsigned long long db) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(da), "l"(db)); } };
struct w_f16_f32_128 { typedef float T; static const int C = 64, R = 1;
  __device__ static __forceinline__ void go(T *d, const unsigned *a, unsigned long long da, unsigned long long db) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]) : "l"(da), "l"(db)); } };
struct w_f16_f32_256 { typedef float T; static const int C = 128, R = 1;
  __device__ static __forceinline__ void go(T *d, const unsigned *a, unsigned long long da, unsigned long long db) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127]) : "l"(da), "l"(db)); } };

__device__ __forceinline__ u64 desc(const void *p) { return (u64)((sh(p) & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }
#define WF asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WC asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WW(n) asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory")

// C (m x n) = A (m x k) B (n x k)^T: 64 * G x N tiles, `S` stages of 64 in depth; a producer warp and G consumer groups
template <class W, int N, int G, int S> __global__ void __launch_bounds__(128 * G + 128, 1) gemm_special(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int n, int k) {
    __shared__ u64 full[S], empty[S]; const int AB = 64 * G * 128, BB = N * 128;
    if (!threadIdx.x) for (int s = 0; s < S; s++) init(full + s, 1), init(empty + s, G);
    __syncthreads();
    int steps = k / 64, group = threadIdx.x / 128;
    if (group == G) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 128 * G) for (int i = 0; i < steps; i++) { int s = i % S, r = i / S; if (r) await(empty + s, r - 1 & 1);
            expect(full + s, AB + BB); box(tile + s * (AB + BB), &a, i * 64, blockIdx.y * 64 * G, full + s); box(tile + s * (AB + BB) + AB, &b, i * 64, blockIdx.x * N, full + s); }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
        float d[W::C];
#pragma unroll
        for (int i = 0; i < W::C; i++) d[i] = 0;
        unsigned none[4];
        for (int i = 0; i < steps; i++) { int s = i % S; await(full + s, i / S & 1);
            u64 da = desc(tile + s * (AB + BB) + group * 8192), db = desc(tile + s * (AB + BB) + AB); WF;
#pragma unroll
            for (int j = 0; j < 4; j++) W::go(d, none, da + 2 * j, db + 2 * j);
            WC; WW(0); if (threadIdx.x % 128 == 0) arrive(empty + s); }
        int row = blockIdx.y * 64 * G + group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4, col = blockIdx.x * N + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < W::C; i += 4) { *(float2 *)(c + (size_t)row * n + col + i * 2) = make_float2(d[i], d[i + 1]); *(float2 *)(c + (size_t)(row + 8) * n + col + i * 2) = make_float2(d[i + 2], d[i + 3]); }
    }
}
// the same without specialised warps: a thread asks for the next stage, then all multiply
template <class W, int N, int S> __global__ void __launch_bounds__(128, 1) gemm_plain(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int n, int k) {
    __shared__ u64 full[S]; const int AB = 64 * 128, BB = N * 128;
    if (!threadIdx.x) for (int s = 0; s < S; s++) init(full + s, 1);
    __syncthreads();
    int steps = k / 64; float d[W::C]; unsigned none[4];
#pragma unroll
    for (int i = 0; i < W::C; i++) d[i] = 0;
    if (!threadIdx.x) for (int s = 0; s < S - 1 && s < steps; s++) { expect(full + s, AB + BB); box(tile + s * (AB + BB), &a, s * 64, blockIdx.y * 64, full + s); box(tile + s * (AB + BB) + AB, &b, s * 64, blockIdx.x * N, full + s); }
    for (int i = 0; i < steps; i++) { int s = i % S, m = i + S - 1;
        if (!threadIdx.x && m < steps) { int t = m % S; expect(full + t, AB + BB); box(tile + t * (AB + BB), &a, m * 64, blockIdx.y * 64, full + t); box(tile + t * (AB + BB) + AB, &b, m * 64, blockIdx.x * N, full + t); }
        await(full + s, i / S & 1); u64 da = desc(tile + s * (AB + BB)), db = desc(tile + s * (AB + BB) + AB); WF;
#pragma unroll
        for (int j = 0; j < 4; j++) W::go(d, none, da + 2 * j, db + 2 * j);
        WC; WW(0); __syncthreads(); }
    int row = blockIdx.y * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4, col = blockIdx.x * N + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < W::C; i += 4) { *(float2 *)(c + (size_t)row * n + col + i * 2) = make_float2(d[i], d[i + 1]); *(float2 *)(c + (size_t)(row + 8) * n + col + i * 2) = make_float2(d[i + 2], d[i + 3]); }
}
__device__ __forceinline__ void mma(float *d, const unsigned *a, const unsigned *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }
// 128 x 128 tiles of 8 warps, cp.async in S stages of 32, ldmatrix, mma.sync
template <int S> __global__ void __launch_bounds__(256) gemm_ampere(const half *a, const half *b, float *c, int n, int k) {
    half *as = (half *)tile, *bs = as + S * 128 * 40; const int P = 40; int w = threadIdx.x / 32, l = threadIdx.x % 32, wy = w / 4 * 64, wx = w % 4 * 32;
    float d[4][4][4] = {}; int steps = k / 32;
    a += (size_t)blockIdx.y * 128 * k; b += (size_t)blockIdx.x * 128 * k;
    auto ask = [&](int i) { int s = i % S; for (int q = threadIdx.x; q < 512; q += 256) { int r = q / 4, x = q % 4 * 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(sh(as + (s * 128 + r) * P + x)), "l"(a + (size_t)r * k + i * 32 + x) : "memory");
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(sh(bs + (s * 128 + r) * P + x)), "l"(b + (size_t)r * k + i * 32 + x) : "memory"); } };
    for (int i = 0; i < S - 1; i++) { if (i < steps) ask(i); asm volatile("cp.async.commit_group;" ::: "memory"); }
    for (int i = 0; i < steps; i++) { int s = i % S;
        asm volatile("cp.async.wait_group %0;" :: "n"(S - 2) : "memory"); __syncthreads();
        if (i + S - 1 < steps) ask(i + S - 1); asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) { unsigned x[4][4], y[4][2];
#pragma unroll
            for (int m = 0; m < 4; m++) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[m][0]), "=r"(x[m][1]), "=r"(x[m][2]), "=r"(x[m][3]) : "r"(sh(as + (s * 128 + wy + m * 16 + l % 16) * P + kk + l / 16 * 8)) : "memory");
#pragma unroll
            for (int m = 0; m < 4; m++) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y[m][0]), "=r"(y[m][1]) : "r"(sh(bs + (s * 128 + wx + m * 8 + l % 8) * P + kk + l / 8 % 2 * 8)) : "memory");
#pragma unroll
            for (int p = 0; p < 4; p++)
#pragma unroll
                for (int q = 0; q < 4; q++) mma(d[p][q], x[p], y[q]); } }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) { size_t row = blockIdx.y * 128 + wy + p * 16 + l / 4, col = blockIdx.x * 128 + wx + q * 8 + l % 4 * 2;
            *(float2 *)(c + row * n + col) = make_float2(d[p][q][0], d[p][q][1]); *(float2 *)(c + (row + 8) * n + col) = make_float2(d[p][q][2], d[p][q][3]); }
}
// copies: load and store by bulk copies, S stages of `bytes`
template <int S> __global__ void bulk_copy(char *to, const char *in, int bytes, int many) {
    __shared__ u64 g[S]; if (threadIdx.x) return;
    for (int s = 0; s < S; s++) init(g + s, 1);
    in += (size_t)blockIdx.x * many * bytes; to += (size_t)blockIdx.x * many * bytes;
    for (int i = 0; i < S && i < many; i++) { expect(g + i, bytes); load(tile + i * bytes, in + (size_t)i * bytes, bytes, g + i); }
    for (int i = 0, s = 0, p = 0; i < many; i++) { await(g + s, p); store(to + (size_t)i * bytes, tile + s * bytes, bytes);
        if (i + S < many) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); expect(g + s, bytes); load(tile + s * bytes, in + (size_t)(i + S) * bytes, bytes, g + s); }
        if (++s == S) s = 0, p ^= 1; }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// sums: the block adds what arrives
template <int S> __global__ void bulk_sum(const float *in, float *out, int bytes, int many) {
    __shared__ u64 g[S]; if (!threadIdx.x) for (int s = 0; s < S; s++) init(g + s, 1);
    __syncthreads(); const char *from = (const char *)in + (size_t)blockIdx.x * many * bytes; float x = 0;
    if (!threadIdx.x) for (int i = 0; i < S && i < many; i++) { expect(g + i, bytes); load(tile + i * bytes, from + (size_t)i * bytes, bytes, g + i); }
    for (int i = 0; i < many; i++) { int s = i % S; await(g + s, i / S & 1); const float *t = (const float *)(tile + s * bytes);
        for (int j = threadIdx.x; j < bytes / 4; j += blockDim.x) x += t[j];
        __syncthreads(); if (!threadIdx.x && i + S < many) { expect(g + s, bytes); load(tile + s * bytes, from + (size_t)(i + S) * bytes, bytes, g + s); } }
    if (x == 1.25f) *out = x;
}
// a matrix transposed by boxes of 32 x 32 floats
__global__ void box_transpose(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b) {
    __shared__ __align__(128) float s[32][32], t[32][32]; __shared__ u64 g;
    if (!threadIdx.x) { init(&g, 1); expect(&g, 4096); box(s, &a, blockIdx.x * 32, blockIdx.y * 32, &g); }
    __syncthreads(); await(&g, 0);
    for (int y = threadIdx.x / 32; y < 32; y += 8) t[threadIdx.x % 32][(y)] = s[y][threadIdx.x % 32];
    FENCE; __syncthreads();
    if (!threadIdx.x) { put_box(&b, t, blockIdx.y * 32, blockIdx.x * 32); asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
}
__global__ void mbarrier_ring(float *out, int times) {   // warps hand a value on, around the block
    __shared__ u64 g[8]; __shared__ float v; int w = threadIdx.x / 32; if (!threadIdx.x) { for (int i = 0; i < 8; i++) init(g + i, 1); v = 1; } __syncthreads();
    if (threadIdx.x % 32 == 0) for (int i = 0; i < times; i++) { if (w || i) await(g + w, (w ? i : i - 1) & 1); v = v * 1.5f + w; arrive(g + (w + 1) % 8); }
    __syncthreads(); if (!threadIdx.x) *out = v;
}
typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;
static CUtensorMap make(void *at, CUtensorMapDataType type, int size, int w, int h, int bw, int bh, int swizzle) {
    CUtensorMap m; cuuint64_t dims[] = {(cuuint64_t)w, (cuuint64_t)h}, strides[] = {(cuuint64_t)w * size}; cuuint32_t b[] = {(cuuint32_t)bw, (cuuint32_t)bh}, steps[] = {1, 1};
    CUresult e = encode(&m, type, 2, at, dims, strides, b, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (e) printf("encode: %d\n", (int)e); return m;
}
static char *A, *B, *C;
template <class W, int N, int G, int S> void special(int m, int n, int k) {
    CUtensorMap a = make(A, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, k, m, 64, 64 * G, 3), b = make(B, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, k, n, 64, N, 3); int s = S * (64 * G + N) * 128;
    CK(cudaFuncSetAttribute(gemm_special<W, N, G, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, s)); gemm_special<W, N, G, S><<<dim3(n / N, m / 64 / G), 128 * G + 128, s>>>(a, b, (float *)C, n, k); }
template <class W, int N, int S> void plain(int m, int n, int k) {
    CUtensorMap a = make(A, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, k, m, 64, 64, 3), b = make(B, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, k, n, 64, N, 3); int s = S * (64 + N) * 128;
    CK(cudaFuncSetAttribute(gemm_plain<W, N, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, s)); gemm_plain<W, N, S><<<dim3(n / N, m / 64), 128, s>>>(a, b, (float *)C, n, k); }
template <int S> void ampere(int m, int n, int k) { int s = S * 2 * 128 * 40 * 2; CK(cudaFuncSetAttribute(gemm_ampere<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, s)); gemm_ampere<S><<<dim3(n / 128, m / 128), 256, s>>>((half *)A, (half *)B, (float *)C, n, k); }
template <int S> void copies(int blocks, int bytes, int many) { CK(cudaFuncSetAttribute(bulk_copy<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S * bytes)); bulk_copy<S><<<blocks, 32, S * bytes>>>(B, A, bytes, many); }
template <int S> void sums(int blocks, int bytes, int many) { CK(cudaFuncSetAttribute(bulk_sum<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S * bytes)); bulk_sum<S><<<blocks, 128, S * bytes>>>((float *)A, (float *)C, bytes, many); }
int main() {
    cudaDriverEntryPointQueryResult q; cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &q);
    CK(cudaMalloc(&A, 64 << 20)); CK(cudaMalloc(&B, 64 << 20)); CK(cudaMalloc(&C, 64 << 20)); CK(cudaMemset(A, 0, 64 << 20)); CK(cudaMemset(B, 0, 64 << 20)); CK(cudaMemset(C, 0, 64 << 20));
    typedef w_f16_f32_64 W64; typedef w_f16_f32_128 W128; typedef w_f16_f32_256 W256;
    special<W128, 128, 2, 1>(1024, 1024, 512); special<W128, 128, 2, 2>(1024, 1024, 512); special<W128, 128, 2, 3>(1024, 1024, 512); special<W128, 128, 2, 4>(1024, 1024, 512);
    special<W128, 128, 1, 4>(1024, 1024, 512); special<W256, 256, 2, 4>(1024, 1024, 512); special<W64, 64, 1, 4>(512, 1024, 2048); special<W128, 128, 2, 4>(1536, 1408, 256);
    special<W128, 128, 2, 4>(512, 512, 2048); special<W64, 64, 1, 2>(1024, 1024, 512);
    plain<W128, 128, 2>(1024, 1024, 512); plain<W128, 128, 4>(1024, 1024, 512); plain<W64, 64, 2>(512, 1024, 1024); plain<W64, 64, 1>(512, 512, 1024); plain<W64, 64, 4>(1024, 2048, 256);
    ampere<2>(1024, 1024, 512); ampere<3>(1024, 1024, 512); ampere<4>(1024, 1024, 512); ampere<4>(2048, 1024, 256);
    copies<1>(1024, 16384, 4); copies<2>(1024, 16384, 4); copies<4>(528, 8192, 15); copies<4>(132, 16384, 30); copies<2>(132, 2048, 64); copies<8>(132, 2048, 64);
    sums<1>(528, 8192, 15); sums<2>(528, 8192, 15); sums<4>(132, 16384, 30); sums<4>(132, 4096, 64); sums<2>(16, 8192, 64);
    CUtensorMap a = make(A, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, 2048, 2048, 32, 32, 0), b = make(B, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, 2048, 2048, 32, 32, 0); box_transpose<<<dim3(64, 64), 256>>>(a, b);
    mbarrier_ring<<<1, 256>>>((float *)C, 200); mbarrier_ring<<<264, 256>>>((float *)C, 100);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); return 0;
}
