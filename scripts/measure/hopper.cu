// The engine of bulk copies, mbarriers and the tensor pipe of 9.0: lines `what,name,at,value`. `hopper.py` writes the
// structures of products into it, and says how it is built.
//
// `bulk`, `tensor`: cycles from the request of one thread to the end of its wait, `at` bytes, in L2 (`near`) or in memory
//   (`far`); `_many`: all SMs do the same. `pieces`: the same bytes by cp.async. `stores`: cycles to the end of wait_group
//   (`done`), to that of its reads (`read`), of a reduction (`reduced`).
// `stream`: bytes in a cycle of an SM with copies of `at` % 1000 KiB, `at` / 1000 on the way; `_chip`: of each of all SMs.
// `mbarrier`, `cluster`: cycles, `at` blocks of a cluster.
// `wgmma`: cycles of a warpgroup's product of `at` columns, each waited for (`one`), in groups of four (`four`) or without
//   an end (`row`); `_2`, `_4`: of so many warpgroups together. `mma`: cycles to the next product that needs it (`latency`),
//   and of an SM with `at` warps (`rate`). `ldmatrix`: the same.
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <algorithm>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>
typedef unsigned long long u64;
#define CK(x) do { cudaError_t e_ = (x); if (e_) { printf("# %s: %s\n", #x, cudaGetErrorString(e_)); cudaGetLastError(); } } while (0)
__device__ __forceinline__ unsigned sh(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" :: "r"(sh(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void expect(u64 *b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sh(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void arrive(u64 *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sh(b)) : "memory"); }
__device__ __forceinline__ void await(u64 *b, int parity) { asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" :: "r"(sh(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ void load(void *to, const void *from, int bytes, u64 *g) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sh(to)), "l"(from), "r"(bytes), "r"(sh(g)) : "memory"); }
__device__ __forceinline__ void box(void *to, const CUtensorMap *m, int x, int y, u64 *g) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(sh(to)), "l"(m), "r"(x), "r"(y), "r"(sh(g)) : "memory"); }
__device__ __forceinline__ void store(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;" :: "l"(to), "r"(sh(from)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void reduce(void *to, const void *from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2; cp.async.bulk.commit_group;" :: "l"(to), "r"(sh(from)), "r"(bytes) : "memory"); }
__device__ __forceinline__ long long now() { long long t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory"); return t; }
extern __shared__ __align__(1024) char tile[];
const int TIMES = 16;

__global__ void bulk_latency(const char *in, size_t step, size_t pitch, int bytes, long long *out) {
    __shared__ u64 g; if (threadIdx.x) return;
    init(&g, 1); long long best = 1 << 30, sum = 0; in += blockIdx.x * pitch;
    for (int i = 0; i < TIMES; i++) { long long t = now(); expect(&g, bytes); load(tile, in + i * step, bytes, &g); await(&g, i & 1); t = now() - t; sum += i ? t : 0; best = t < best ? t : best; }
    out[blockIdx.x] = sum / (TIMES - 1);
}
__global__ void box_latency(const __grid_constant__ CUtensorMap m, int dx, int dy, int bx, int bytes, long long *out) {
    __shared__ u64 g; if (threadIdx.x) return;
    init(&g, 1); long long sum = 0;
    for (int i = 0; i < TIMES; i++) { long long t = now(); expect(&g, bytes); box(tile, &m, i * dx, blockIdx.x * bx + i * dy, &g); await(&g, i & 1); t = now() - t; sum += i ? t : 0; }
    out[blockIdx.x] = sum / (TIMES - 1);
}
// a copy in 16-byte pieces, as threads ask for them with cp.async (LDGSTS)
__global__ void piece_latency(const char *in, size_t step, int bytes, long long *out) {
    long long sum = 0;
    for (int i = 0; i < TIMES; i++) { long long t = now();
        for (int b = threadIdx.x * 16; b < bytes; b += blockDim.x * 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(sh(tile + b)), "l"(in + i * step + b) : "memory");
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory"); t = now() - t; sum += i ? t : 0; __syncthreads(); }
    if (!threadIdx.x) out[blockIdx.x] = sum / (TIMES - 1);
}
template <int KIND> __global__ void store_latency(char *to, size_t step, int bytes, long long *out) {   // 0: wait_group, 1: .read, 2: reduction
    if (threadIdx.x) return; long long sum = 0; asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    for (int i = 0; i < TIMES; i++) { long long t = now(); if (KIND == 2) reduce(to + i * step, tile, bytes); else store(to + i * step, tile, bytes);
        if (KIND == 1) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); else asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        t = now() - t; sum += i ? t : 0; asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
    out[blockIdx.x] = sum / (TIMES - 1);
}
// `stages` copies on the way: each is asked for again as it arrives
__global__ void bulk_stream(const char *in, size_t pitch, size_t step, int bytes, int stages, int many, long long *out) {
    __shared__ u64 g[16]; if (threadIdx.x) return;
    for (int s = 0; s < stages; s++) init(g + s, 1);
    in += blockIdx.x * pitch; long long t = now();
    for (int i = 0; i < stages; i++) { expect(g + i, bytes); load(tile + i * bytes, in + i * step, bytes, g + i); }
    for (int i = 0, s = 0, p = 0; i < many; i++) { await(g + s, p);
        if (i + stages < many) { expect(g + s, bytes); load(tile + s * bytes, in + (size_t)(i + stages) * step, bytes, g + s); }
        if (++s == stages) s = 0, p ^= 1; }
    out[blockIdx.x] = now() - t;
}
__global__ void box_stream(const __grid_constant__ CUtensorMap m, int rows, int wide, int bytes, int stages, int many, long long *out) {
    __shared__ u64 g[16]; if (threadIdx.x) return;
    for (int s = 0; s < stages; s++) init(g + s, 1);
    long long t = now(); int n = blockIdx.x * many;
    for (int i = 0; i < stages; i++) { expect(g + i, bytes); box(tile + i * bytes, &m, (n + i) % wide * 64, (n + i) / wide * rows, g + i); }
    for (int i = 0, s = 0, p = 0; i < many; i++) { await(g + s, p);
        if (i + stages < many) { int k = n + i + stages; expect(g + s, bytes); box(tile + s * bytes, &m, k % wide * 64, k / wide * rows, g + s); }
        if (++s == stages) s = 0, p ^= 1; }
    out[blockIdx.x] = now() - t;
}
__global__ void store_stream(char *to, size_t pitch, int bytes, int many, int keep, long long *out) {
    if (threadIdx.x) return; asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); to += blockIdx.x * pitch; long long t = now();
    for (int i = 0; i < many; i++) { store(to + (size_t)i * bytes, tile, bytes); if (keep == 1) asm volatile("cp.async.bulk.wait_group 1;" ::: "memory"); else asm volatile("cp.async.bulk.wait_group 4;" ::: "memory"); }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); out[blockIdx.x] = now() - t;
}
__global__ void copy_stream(char *to, const char *in, size_t pitch, int bytes, int stages, int many, long long *out) {   // load, store, and the next load of the place
    __shared__ u64 g[16]; if (threadIdx.x) return;
    for (int s = 0; s < stages; s++) init(g + s, 1);
    in += blockIdx.x * pitch; to += blockIdx.x * pitch; long long t = now();
    for (int i = 0; i < stages; i++) { expect(g + i, bytes); load(tile + i * bytes, in + (size_t)i * bytes, bytes, g + i); }
    for (int i = 0, s = 0, p = 0; i < many; i++) { await(g + s, p); store(to + (size_t)i * bytes, tile + s * bytes, bytes);
        if (i + stages < many) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); expect(g + s, bytes); load(tile + s * bytes, in + (size_t)(i + stages) * bytes, bytes, g + s); }
        if (++s == stages) s = 0, p ^= 1; }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); out[blockIdx.x] = now() - t;
}
__global__ void barriers(long long *out) {
    __shared__ u64 g, h; int lane = threadIdx.x;
    if (!lane) { init(&g, 1); init(&h, blockDim.x); } __syncthreads();
    if (!lane) {
        long long t = now(); for (int i = 0; i < 64; i++) { arrive(&g); await(&g, i & 1); } out[0] = (now() - t) / 64;            // own arrival
        t = now(); for (int i = 0; i < 64; i++) await(&g, 1); out[1] = (now() - t) / 64;                                           // an old phase
        t = now(); for (int i = 0; i < 64; i++) arrive(&g); out[2] = (now() - t) / 64;
        t = now(); for (int i = 0; i < 64; i++) asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); out[4] = (now() - t) / 64;
    }
    __syncthreads(); long long t = now(); for (int i = 0; i < 64; i++) { arrive(&h); await(&h, i & 1); } if (!lane) out[3] = (now() - t) / 64;   // all threads
}
__global__ void hand_over(long long *out) {   // two warps, back and forth, by mbarriers
    __shared__ u64 g[2]; if (!threadIdx.x) { init(g, 1); init(g + 1, 1); } __syncthreads();
    int w = threadIdx.x / 32; if (threadIdx.x % 32) return; long long t = now();
    for (int i = 0; i < 64; i++) { if (!w) { arrive(g); await(g + 1, i & 1); } else { await(g, i & 1); arrive(g + 1); } }
    if (!w) out[0] = (now() - t) / 128;
}
__global__ void cluster_barrier(long long *out) {
    long long t = now(); for (int i = 0; i < 64; i++) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (!threadIdx.x) out[blockIdx.x] = (now() - t) / 64;
}
__global__ void cluster_read(long long *out) {
    __shared__ unsigned next[32]; unsigned r, at; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(sh(next)), "r"(r ^ 1)); next[threadIdx.x] = 0;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    long long t = now(); unsigned k = 0; for (int i = 0; i < 64; i++) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(k) : "r"(at + k) : "memory"); t = now() - t;
    if (!threadIdx.x) out[blockIdx.x] = t / 64 + k;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
//WGMMA
//MMA
__device__ __forceinline__ u64 desc(const void *p) { return (u64)((sh(p) & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }
#define WF asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WC asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WW1 asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory")
#define WW asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")
template <class W, int GROUP> __global__ void __launch_bounds__(W::C > 64 ? 256 : 512, 1) wgmma_row(int n, long long *out, int *sink) {   // `group` products to a wait
    typename W::T d[W::C]; for (int i = 0; i < W::C; i++) d[i] = 0;
    unsigned a[4] = {}; u64 da = desc(tile + threadIdx.x / 128 * 8192), db = desc(tile + 32768);
    for (int i = threadIdx.x * 4; i < 65536 + 32768; i += blockDim.x * 4) *(int *)(tile + i) = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
    long long t = now();
    for (int i = 0; i < n; i += GROUP) { WF;
#pragma unroll
        for (int k = 0; k < GROUP; k++) W::go(d, a, da + 2 * (k & 3), db + 2 * (k & 3));
        WC; if (GROUP == 1 || GROUP == 4) WW; else WW1; }
    WW;
    t = now() - t; typename W::T s = 0; for (int i = 0; i < W::C; i++) s += d[i];
    if (s == (typename W::T)123) *sink = 1;
    if (threadIdx.x % 128 == 0) out[blockIdx.x * 4 + threadIdx.x / 128] = t;
}
template <class M> __global__ void mma_row(int n, int chains, long long *out, int *sink) {
    typename M::T d[8][M::C]; typename M::A a[M::NA], b[M::NB];
    for (int c = 0; c < 8; c++) for (int i = 0; i < M::C; i++) d[c][i] = 0;
    for (int i = 0; i < M::NA; i++) a[i] = 0; for (int i = 0; i < M::NB; i++) b[i] = 0;
    __syncthreads(); long long t = now();
    if (chains == 1) { for (int i = 0; i < n; i += 8)
#pragma unroll
        for (int c = 0; c < 8; c++) M::go(d[0], a, b); }
    else for (int i = 0; i < n; i += 8)
#pragma unroll
        for (int c = 0; c < 8; c++) M::go(d[c], a, b);
    __syncthreads(); t = now() - t; typename M::T s = 0; for (int c = 0; c < 8; c++) for (int i = 0; i < M::C; i++) s += d[c][i];
    if (s == (typename M::T)123) *sink = 1;
    if (!threadIdx.x) out[blockIdx.x] = t;
}
template <int N> __global__ void ldmatrix_row(int n, int chain, long long *out, int *sink) {
    unsigned r[4] = {}; unsigned base = sh(tile) + threadIdx.x % 32 * 16, k = 0; for (int i = threadIdx.x * 4; i < 8192; i += blockDim.x * 4) *(int *)(tile + i) = 0;
    __syncthreads(); long long t = now(); unsigned s = 0;
    for (int i = 0; i < n; i++) {
        if (N == 4) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(base + k) : "memory");
        else if (N == 2) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(base + k) : "memory");
        else asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(base + k) : "memory");
        if (chain) k = r[0]; else s += r[0]; }
    __syncthreads(); t = now() - t; if (s + k == 123) *sink = 1; if (!threadIdx.x) out[blockIdx.x] = t;
}
static long long *out, host[4096]; static int *sink; static char *in, *to;
static double mean(int n, int step = 1) { CK(cudaDeviceSynchronize()); CK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost)); double s = 0; for (int i = 0; i < n; i++) s += host[i * step]; return s / n; }
static double top(int n) { CK(cudaDeviceSynchronize()); CK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost)); long long s = 0; for (int i = 0; i < n; i++) s = std::max(s, host[i]); return (double)s; }
static void row(const char *what, const char *name, int at, double v) { printf("%s,%s,%d,%.6g\n", what, name, at, v); }
static void cold() { CK(cudaMemset(to, 0, 256 << 20)); }
template <class W, int GROUP> void wgs(const char *name, const char *how, int columns) {
    char s[64]; const int n = 256; CK(cudaFuncSetAttribute(wgmma_row<W, GROUP>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    for (int groups = 1; groups <= (W::C > 64 ? 2 : 4); groups *= 2) {
        for (int r = 0; r < 2; r++) wgmma_row<W, GROUP><<<1, 128 * groups, 100 << 10>>>(n, out, sink);
        if (groups == 1) sprintf(s, "%s_%s", name, how); else sprintf(s, "%s_%s_%d", name, how, groups);
        row("wgmma", s, columns, mean(groups) / n / groups); }
}
template <class W> void wg(const char *name, int columns) { wgs<W, 1>(name, "one", columns); wgs<W, 4>(name, "four", columns); wgs<W, 8>(name, "row", columns); }
template <class M> void mm(const char *name) {
    char s[64]; const int n = 512;
    for (int r = 0; r < 2; r++) mma_row<M><<<1, 32>>>(n, 1, out, sink); sprintf(s, "%s_latency", name); row("mma", s, 0, mean(1) / n);
    for (int warps : {1, 4, 8, 16}) { for (int r = 0; r < 2; r++) mma_row<M><<<1, 32 * warps>>>(n, 8, out, sink); sprintf(s, "%s_rate", name); row("mma", s, warps, mean(1) / n / warps); }
}
typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;
static CUtensorMap make(void *at, int w, int h, int bw, int bh, int swizzle) {   // of halves
    CUtensorMap m; cuuint64_t dims[] = {(cuuint64_t)w, (cuuint64_t)h}, strides[] = {(cuuint64_t)w * 2}; cuuint32_t b[] = {(cuuint32_t)bw, (cuuint32_t)bh}, steps[] = {1, 1};
    CUresult e = encode(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, at, dims, strides, b, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (e) printf("# encode: %d\n", (int)e); return m;
}
int main() {
    cudaDriverEntryPointQueryResult q; cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &q);
    CK(cudaMalloc(&in, 1u << 30)); CK(cudaMalloc(&to, 256 << 20)); CK(cudaMalloc(&out, sizeof host)); CK(cudaMalloc(&sink, 4)); CK(cudaMemset(in, 0, 1u << 30));
    cudaDeviceProp p; CK(cudaGetDeviceProperties(&p, 0)); int sms = p.multiProcessorCount; char name[64];
    const int S = 200 << 10;
    CK(cudaFuncSetAttribute(bulk_latency, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(box_latency, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(bulk_stream, cudaFuncAttributeMaxDynamicSharedMemorySize, S));
    CK(cudaFuncSetAttribute(box_stream, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(store_stream, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(copy_stream, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(piece_latency, cudaFuncAttributeMaxDynamicSharedMemorySize, S));
    CK(cudaFuncSetAttribute(store_latency<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(store_latency<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, S)); CK(cudaFuncSetAttribute(store_latency<2>, cudaFuncAttributeMaxDynamicSharedMemorySize, S));
    for (int bytes : {16, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
        for (int r = 0; r < 2; r++) bulk_latency<<<1, 32, S>>>(in, 0, 0, bytes, out); row("bulk", "near", bytes, mean(1));
        cold(); bulk_latency<<<1, 32, S>>>(in, 1 << 20, 0, bytes, out); row("bulk", "far", bytes, mean(1));
        for (int r = 0; r < 2; r++) bulk_latency<<<sms, 32, S>>>(in, 0, 65536, bytes, out); row("bulk", "near_many", bytes, mean(sms));
        cold(); bulk_latency<<<sms, 32, S>>>(in, 16 << 20, 65536, bytes, out); row("bulk", "far_many", bytes, mean(sms)); }
    for (int bytes : {2048, 8192, 32768}) { for (int r = 0; r < 2; r++) piece_latency<<<1, 128, S>>>(in, 0, bytes, out); row("pieces", "near", bytes, mean(1)); cold(); piece_latency<<<1, 128, S>>>(in, 1 << 20, bytes, out); row("pieces", "far", bytes, mean(1)); }
    for (int rows : {1, 8, 32, 64, 128, 256}) { CUtensorMap m = make(in, 8192, 32768, 64, rows, 3);
        for (int r = 0; r < 2; r++) box_latency<<<1, 32, S>>>(m, 0, 0, 256, rows * 128, out); row("tensor", "near", rows * 128, mean(1));
        cold(); box_latency<<<1, 32, S>>>(m, 0, 512, 256, rows * 128, out); row("tensor", "far", rows * 128, mean(1));
        CUtensorMap n = make(in, 8192, 32768, 8, rows, 0); for (int r = 0; r < 2; r++) box_latency<<<1, 32, S>>>(n, 0, 0, 256, rows * 16, out); row("tensor", "near_narrow", rows * 16, mean(1)); }
    for (int bytes : {16, 512, 2048, 8192, 32768}) {
        for (int r = 0; r < 2; r++) store_latency<0><<<1, 32, S>>>(to, 0, bytes, out); row("stores", "done", bytes, mean(1));
        for (int r = 0; r < 2; r++) store_latency<1><<<1, 32, S>>>(to, 0, bytes, out); row("stores", "read", bytes, mean(1));
        for (int r = 0; r < 2; r++) store_latency<2><<<1, 32, S>>>(to, 0, bytes, out); row("stores", "reduced", bytes, mean(1)); }
    for (int stages : {1, 2, 3, 4, 8}) for (int kib : {1, 2, 4, 8, 16, 24}) { int bytes = kib << 10, at = 1000 * stages + kib, many = 256; if (stages * kib > 190) continue;
        for (int r = 0; r < 2; r++) bulk_stream<<<1, 32, S>>>(in, 0, bytes <= 8192 ? bytes : 0, bytes, stages, many, out); row("stream", "near", at, (double)bytes * many / top(1));
        many = 65536 / bytes * 4; for (int r = 0; r < 2; r++) bulk_stream<<<sms, 32, S>>>(in, 65536 * 4, bytes, bytes, stages, many, out); row("stream", "near_chip", at, (double)bytes * many / top(sms));
        many = 4 * 1048576 / bytes; cold(); bulk_stream<<<sms, 32, S>>>(in, 4 << 20, bytes, bytes, stages, many, out); row("stream", "far_chip", at, (double)bytes * many / top(sms)); }
    for (int stages : {1, 2, 4, 8}) for (int rows : {8, 64, 128}) { CUtensorMap m = make(in, 8192, 32768, 64, rows, 3); int bytes = rows * 128, at = 1000 * stages + bytes / 1024; if (stages * bytes > 190 << 10) continue;
        int many = 64; for (int r = 0; r < 2; r++) box_stream<<<1, 32, S>>>(m, rows, 128, bytes, stages, many, out); row("stream", "box_near", at, (double)bytes * many / top(1));
        many = 262144 / bytes; for (int r = 0; r < 2; r++) box_stream<<<sms, 32, S>>>(m, rows, 128, bytes, stages, many, out); row("stream", "box_near_chip", at, (double)bytes * many / top(sms));
        many = 2 * 1048576 / bytes; cold(); box_stream<<<sms, 32, S>>>(m, rows, 128, bytes, stages, many, out); row("stream", "box_far_chip", at, (double)bytes * many / top(sms)); }
    for (int keep : {1, 4}) for (int kib : {2, 8, 16}) { int bytes = kib << 10; 
        for (int r = 0; r < 2; r++) store_stream<<<1, 32, S>>>(to, 0, bytes, 64, keep, out); row("stream", "store_near", 1000 * keep + kib, bytes * 64.0 / top(1));
        for (int r = 0; r < 2; r++) store_stream<<<sms, 32, S>>>(to, 1 << 20, bytes, (1 << 20) / bytes, keep, out); row("stream", "store_chip", 1000 * keep + kib, 1048576.0 / top(sms)); }
    for (int stages : {2, 4}) for (int kib : {4, 16}) { int bytes = kib << 10; cold(); copy_stream<<<sms, 32, S>>>(to, in, 1 << 20, bytes, stages, (1 << 20) / bytes, out); row("stream", "copy_chip", 1000 * stages + kib, 1048576.0 / top(sms)); }
    for (int r = 0; r < 2; r++) barriers<<<1, 128>>>(out); mean(1); { const char *n[] = {"arrive_wait", "wait_old", "arrive", "all_128", "fence_async"}; for (int i = 0; i < 5; i++) row("mbarrier", n[i], 0, (double)host[i]); }
    for (int r = 0; r < 2; r++) hand_over<<<1, 64>>>(out); row("mbarrier", "hand_over", 0, mean(1));
    for (int size : {1, 2, 4, 8}) for (int threads : {32, 256}) { cudaLaunchConfig_t c = {}; c.gridDim = size; c.blockDim = threads; cudaLaunchAttribute a; a.id = cudaLaunchAttributeClusterDimension; a.val.clusterDim = {(unsigned)size, 1, 1}; c.attrs = &a; c.numAttrs = 1;
        for (int r = 0; r < 2; r++) CK(cudaLaunchKernelEx(&c, cluster_barrier, out)); sprintf(name, "barrier_%d", threads); row("cluster", name, size, mean(size));
        if (size == 2 && threads == 32) { for (int r = 0; r < 2; r++) CK(cudaLaunchKernelEx(&c, cluster_read, out)); row("cluster", "chase", 2, mean(2)); } }
    fflush(stdout);
//RUNW
    fflush(stdout);
//RUNM
    for (int warps : {1, 4, 16}) { for (int r = 0; r < 2; r++) ldmatrix_row<4><<<1, 32 * warps, 8192>>>(256, 0, out, sink); row("ldmatrix", "x4_rate", warps, mean(1) / 256 / warps); for (int r = 0; r < 2; r++) ldmatrix_row<2><<<1, 32 * warps, 8192>>>(256, 0, out, sink); row("ldmatrix", "x2_rate", warps, mean(1) / 256 / warps); for (int r = 0; r < 2; r++) ldmatrix_row<1><<<1, 32 * warps, 8192>>>(256, 0, out, sink); row("ldmatrix", "x1_rate", warps, mean(1) / 256 / warps); }
    ldmatrix_row<4><<<1, 32, 8192>>>(256, 1, out, sink); ldmatrix_row<4><<<1, 32, 8192>>>(256, 1, out, sink); row("ldmatrix", "x4_latency", 0, mean(1) / 256);
    ldmatrix_row<1><<<1, 32, 8192>>>(256, 1, out, sink); ldmatrix_row<1><<<1, 32, 8192>>>(256, 1, out, sink); row("ldmatrix", "x1_latency", 0, mean(1) / 256);
    return 0;
}
