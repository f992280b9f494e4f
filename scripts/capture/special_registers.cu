// Every special register of the PTX ISA, in launches of several shapes; where each block ran and
// when. nvcc -arch=sm_90 special_registers.cu; ./a.out FILE [quick: the launches that do not wait]
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cooperative_groups.h>
#define THREE(X, n) X(n ".x", 32) X(n ".y", 32) X(n ".z", 32)
#define FOUR(X, n) THREE(X, n) X(n ".w", 32)
#define ALL(X) FOUR(X, "tid") FOUR(X, "ntid") FOUR(X, "ctaid") FOUR(X, "nctaid") \
  FOUR(X, "clusterid") FOUR(X, "nclusterid") FOUR(X, "cluster_ctaid") FOUR(X, "cluster_nctaid") \
  X("laneid", 32) X("warpid", 32) X("nwarpid", 32) X("smid", 32) X("nsmid", 32) X("gridid", 64) \
  X("is_explicit_cluster", P) X("cluster_ctarank", 32) X("cluster_nctarank", 32) \
  X("lanemask_eq", 32) X("lanemask_le", 32) X("lanemask_lt", 32) X("lanemask_ge", 32) X("lanemask_gt", 32) \
  X("clock", 32) X("clock_hi", 32) X("clock64", 64) X("globaltimer", 64) X("globaltimer_lo", 32) X("globaltimer_hi", 32) \
  X("total_smem_size", 32) X("aggr_smem_size", 32) X("dynamic_smem_size", 32) X("current_graph_exec", 64) \
  X("reserved_smem_offset_begin", 32) X("reserved_smem_offset_end", 32) X("reserved_smem_offset_cap", 32) \
  X("reserved_smem_offset_0", 32) X("reserved_smem_offset_1", 32) \
  X("pm0", 32) X("pm1", 32) X("pm2", 32) X("pm3", 32) X("pm4", 32) X("pm5", 32) X("pm6", 32) X("pm7", 32) \
  X("pm0_64", 64) X("pm7_64", 64) \
  X("envreg0", 32) X("envreg1", 32) X("envreg2", 32) X("envreg3", 32) X("envreg4", 32) X("envreg5", 32) X("envreg6", 32) X("envreg7", 32) \
  X("envreg8", 32) X("envreg15", 32) X("envreg16", 32) X("envreg31", 32)
#define READ32(n) { unsigned v; asm volatile("mov.u32 %0, %%" n ";" : "=r"(v)); out[i++] = v; }
#define READ64(n) { unsigned long long v; asm volatile("mov.u64 %0, %%" n ";" : "=l"(v)); out[i++] = v; }
#define READP(n) { unsigned v; asm volatile("{ .reg .pred p; mov.pred p, %%" n "; selp.u32 %0, 1, 0, p; }" : "=r"(v)); out[i++] = v; }
#define X(n, t) READ##t(n)
#define NAME(n, t) n,
const char *names[] = {ALL(NAME)};
const int N = sizeof names / sizeof *names;
struct at { unsigned sm, warp; unsigned long long clock, begin, end; };
__device__ void body(unsigned long long *dump, at *where, int wait)
{
    unsigned long long begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), blocks = gridDim.x * gridDim.y * gridDim.z;
    unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), threads = blockDim.x * blockDim.y * blockDim.z;
    int which = b == 0 ? 0 : b == blocks - 1 ? 1 : -1, seat = t == 0 ? 0 : t == 37 ? 1 : t == threads - 1 ? 2 : -1;
    if (which >= 0 && seat >= 0) {
        unsigned long long *out = dump + (which * 3 + seat) * 128;
        int i = 0;
        ALL(X)
    }
    if (t % 32 == 0) {
        unsigned sm, warp;
        asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%warpid;" : "=r"(sm), "=r"(warp));
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end)); while (end - begin < wait);
        at a = {sm, warp, (unsigned long long)clock64(), begin, end};
        where[b * ((threads + 31) / 32) + t / 32] = a;
    }
}
__global__ void plain(unsigned long long *dump, at *where, int wait) { body(dump, where, wait); }
__global__ void with_static(unsigned long long *dump, at *where, int wait)
{
    __shared__ int kept[300];
    kept[threadIdx.x % 300] = wait;
    __syncthreads();
    body(dump, where, kept[threadIdx.x % 7]);
}
__global__ void __cluster_dims__(2, 1, 1) pairs(unsigned long long *dump, at *where, int wait) { body(dump, where, wait); }
static FILE *file;
static int quick;
static void launch(const char *name, void (*kernel)(unsigned long long *, at *, int), dim3 grid, dim3 block, int shared, dim3 cluster, int wait, int show, int cooperative = 0)
{
    static unsigned long long *dump, host[6 * 128];
    if (quick && (wait || !show)) return;
    unsigned blocks = grid.x * grid.y * grid.z, warps = (block.x * block.y * block.z + 31) / 32;
    at *where;
    if (!dump) cudaMalloc(&dump, sizeof host);
    cudaMalloc(&where, sizeof(at) * blocks * warps);
    cudaMemset(dump, 0xff, sizeof host);
    cudaMemset(where, 0, sizeof(at) * blocks * warps);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared;
    cudaLaunchAttribute a[2];
    config.attrs = a;
    if (cluster.x) {
        a[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        a[config.numAttrs].val.clusterDim.x = cluster.x, a[config.numAttrs].val.clusterDim.y = cluster.y, a[config.numAttrs].val.clusterDim.z = cluster.z;
        config.numAttrs++;
    }
    if (cooperative) a[config.numAttrs].id = cudaLaunchAttributeCooperative, a[config.numAttrs++].val.cooperative = 1;
    int per_sm = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, block.x * block.y * block.z, shared);
    cudaError_t status = cudaLaunchKernelEx(&config, kernel, dump, where, wait);
    cudaError_t end = cudaDeviceSynchronize();
    fprintf(file, "launch %s grid %u,%u,%u block %u,%u,%u shared %d cluster %u,%u,%u wait %d fits %d status %s %s\n", name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, cluster.x, cluster.y, cluster.z, wait, per_sm, cudaGetErrorName(status), cudaGetErrorName(end));
    cudaGetLastError();
    if (status || end) return;
    cudaMemcpy(host, dump, sizeof host, cudaMemcpyDeviceToHost);
    if (show)
        for (int i = 0; i < N; i++) {
            fprintf(file, "%%%s", names[i]);
            for (int j = 0; j < 6; j++) fprintf(file, host[j * 128 + i] == ~0ull ? " -" : " %llu", host[j * 128 + i]);
            fprintf(file, "\n");
        }
    std::vector<at> all(blocks * warps);
    cudaMemcpy(all.data(), where, sizeof(at) * blocks * warps, cudaMemcpyDeviceToHost);
    unsigned long long first = ~0ull;
    for (at &w : all) if (w.begin < first) first = w.begin;
    for (unsigned b = 0; b < blocks; b++) {
        fprintf(file, "b%u sm %u begin %llu end %llu warps", b, all[b * warps].sm, all[b * warps].begin - first, all[b * warps].end - first);
        for (unsigned w = 0; w < warps && w < 8; w++) fprintf(file, " %u", all[b * warps + w].warp);
        fprintf(file, "\n");
    }
    cudaFree(where);
    fflush(file);
}
int main(int argc, char **argv)
{
    file = fopen(argv[1], "w");
    quick = argc > 2;
    int us = 1000, sms = 132;
    dim3 none(0, 0, 0);
    launch("one", plain, 1, 1, 0, none, 0, 1);
    launch("one_again", plain, 1, 64, 0, none, 0, 1);
    launch("shape3", plain, dim3(3, 4, 5), dim3(8, 5, 3), 1000, none, 0, 1);
    launch("static", with_static, 7, 100, 0, none, 0, 1);
    launch("static_dynamic", with_static, 7, 100, 5000, none, 0, 1);
    launch("full", plain, sms * 4 + 5, 1024, 0, none, 100 * us, 1);
    launch("half_a_wave", plain, sms / 2, 256, 0, none, 50 * us, 0);
    launch("eight", plain, sms * 16 + 3, 256, 0, none, 50 * us, 0);
    launch("small", plain, sms * 40, 32, 0, none, 50 * us, 0);
    launch("two_by_shared", plain, sms * 6, 128, 100000, none, 50 * us, 0);
    launch("no_wait", plain, sms * 8, 256, 0, none, 0, 0);
    launch("grid2", plain, dim3(20, sms / 4), dim3(16, 16), 0, none, 50 * us, 0);
    launch("pairs", pairs, sms * 4, 512, 0, none, 50 * us, 1);
    launch("cluster4", plain, sms * 6, 256, 0, dim3(4, 1, 1), 50 * us, 1);
    launch("cluster8", plain, 8 * sms / 2, 1024, 0, dim3(8, 1, 1), 50 * us, 1);
    launch("cluster16", plain, 16 * 20, 512, 0, dim3(16, 1, 1), 50 * us, 0);
    launch("cluster221", plain, dim3(12, 6, 2), dim3(32, 4, 2), 2048, dim3(2, 2, 1), 50 * us, 1);
    launch("cluster212", plain, dim3(4, 3, 4), 96, 0, dim3(2, 1, 2), 0, 1);
    launch("cluster1", plain, 5, 64, 0, dim3(1, 1, 1), 0, 1);
    launch("cluster3", plain, 9, 64, 0, dim3(3, 1, 1), 0, 1);
    launch("cooperative", plain, sms, 128, 0, none, 0, 1, 1);
    return 0;
}
