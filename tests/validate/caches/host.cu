// What kernels ask of the host's memory, one launch a question; each launch starts with flushed caches.
#include <cstdio>
#include <cstdint>
#include <cuda_runtime.h>
#define ID (blockIdx.x * blockDim.x + threadIdx.x)
#define CK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)
__global__ void k00_empty(const int *a, int *out) { if (a == out) *out = 1; }
__global__ void k01_read(const int *a, int *out) { int v = a[ID]; if (v == 77) *out = v; }
__global__ void k02_read4(const int4 *a, int *out) { int4 v = a[ID]; if (v.x == 77) *out = v.y; }
__global__ void k03_sector(const int *a, int *out) { int v = a[ID * 8]; if (v == 77) *out = v; }
__global__ void k04_line(const int *a, int *out) { int v = a[ID * 32]; if (v == 77) *out = v; }
__global__ void k05_twice_cg(const int *a, int *out) { int v = __ldcg(a + ID); v = __ldcg(a + (ID ^ (v & 1))); if (v == 77) *out = v; }
__global__ void k06_four_cg(const int *a, int *out, int n) { int s = 0; for (int t = 0; t < 4; t++) { for (int i = ID; i < n; i += blockDim.x) s += __ldcg(a + i); __syncthreads(); } if (s == 77) *out = s; }
__global__ void k07_all_cg(const int *a, int *out, int n) { int s = 0; for (int i = threadIdx.x; i < n; i += blockDim.x) s += __ldcg(a + i); if (s == 77) *out = s; }
__global__ void k08_all_ca(const int *a, int *out, int n) { int s = 0; for (int t = 0; t < 2; t++) for (int i = threadIdx.x; i < n; i += blockDim.x) s += a[i]; if (s == 77) *out = s; }
__global__ void k09_volatile(volatile const int *a, int *out) { int v = a[ID]; v = a[ID ^ (v & 1)]; if (v == 77) *out = v; }
__global__ void k10_write(int *a) { a[ID] = ID; }
__global__ void k11_write_byte(char *a) { a[ID * 32] = 1; }
__global__ void k12_write_twice(int *a) { a[ID] = ID; __threadfence(); a[ID ^ 1] = 1; }
__global__ void k13_write_read(int *a, int *out) { a[ID] = ID; __threadfence(); int v = __ldcg(a + (ID ^ 1)); if (v == -77) *out = v; }
__global__ void k14_scale(int *a) { a[ID] = 2 * a[ID]; }
__global__ void k15_atomic(int *a, int *out) { int v = atomicAdd(a + ID, 1); if (v == -77) *out = v; }
__global__ void k16_reduce(int *a) { atomicAdd(a + ID, 1); }
__global__ void k17_one(int *a) { atomicAdd(a, (int)ID); }
__global__ void k18_add(int *c, const int *a, const int *b) { c[ID] = a[ID] + b[ID]; }
__global__ void k19_add_host(int *c, const int *a, const int *b) { c[ID] = a[ID] + b[ID]; }
__global__ void k20_bulk(const char *a, int *out) {
    __shared__ alignas(128) char s[16384]; __shared__ alignas(8) uint64_t bar;
    unsigned sa = __cvta_generic_to_shared(s), ba = __cvta_generic_to_shared(&bar);
    if (!threadIdx.x) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async;" ::"r"(ba));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" ::"r"(ba));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16384, [%2];" ::"r"(sa), "l"(a + blockIdx.x * 16384), "r"(ba) : "memory");
    }
    __syncthreads();
    unsigned ok = 0; while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(ba));
    if (s[threadIdx.x] == 77) *out = 1;
}
int main() {
    const int M = 1 << 20; char *h, *w, *g, *h2; int *d, *out;
    CK(cudaHostAlloc(&h, 4 * M, cudaHostAllocMapped)); CK(cudaHostAlloc(&h2, 4 * M, cudaHostAllocMapped));
    CK(cudaHostAlloc(&w, 4 * M, cudaHostAllocMapped | cudaHostAllocWriteCombined));
    g = (char *)aligned_alloc(4096, 4 * M); CK(cudaHostRegister(g, 4 * M, cudaHostRegisterMapped));
    for (int i = 0; i < 4 * M; i++) h[i] = h2[i] = g[i] = w[i] = 0;
    CK(cudaMalloc(&d, 4 * M)); CK(cudaMemset(d, 0, 4 * M)); CK(cudaMalloc(&out, 256));
    int *a = (int *)h, *b = (int *)h2;
    k00_empty<<<1, 32>>>(a, out);
    k01_read<<<256, 256>>>(a, out);                    // 256 KB: 8192 sectors
    k01_read<<<4096, 256>>>(a, out);                   // 4 MB: 131072
    k01_read<<<256, 256>>>((int *)w, out);             // write-combined
    k01_read<<<256, 256>>>((int *)g, out);             // registered
    k02_read4<<<256, 256>>>((int4 *)a, out);           // 1 MB: 32768
    k03_sector<<<64, 256>>>(a, out);                   // 16384 sectors, each one word
    k04_line<<<64, 256>>>(a, out);                     // 16384 lines, a sector each
    k05_twice_cg<<<256, 256>>>(a, out);
    k06_four_cg<<<1, 256>>>(a, out, 16384);            // 64 KB, four times, one block
    k07_all_cg<<<132, 256>>>(a, out, 16384);           // 64 KB by each of 132 blocks
    k08_all_ca<<<132, 256>>>(a, out, 16384);
    k09_volatile<<<256, 256>>>(a, out);
    k10_write<<<256, 256>>>(a); k10_write<<<4096, 256>>>(a); k10_write<<<256, 256>>>((int *)w);
    k11_write_byte<<<64, 256>>>(h);
    k12_write_twice<<<256, 256>>>(a);
    k13_write_read<<<256, 256>>>(a, out);
    k14_scale<<<256, 256>>>(a);
    k15_atomic<<<64, 256>>>(a, out); k16_reduce<<<64, 256>>>(a); k17_one<<<64, 256>>>(a);
    k18_add<<<256, 256>>>(d, a, b); k19_add_host<<<256, 256>>>(a, d, b);
    k20_bulk<<<64, 128>>>(h, out);
    CK(cudaDeviceSynchronize()); puts("done"); return 0;
}
