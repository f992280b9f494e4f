// Blocks on chosen SMs that read the same data at chosen times, for a profiler to count what L2 is asked for. FILE has
// a launch in each line, fourteen integers (struct Launch), which are printed with its number.
//
//   nvcc -std=c++17 -arch=sm_90a -o shared_reads shared_reads.cu
//   python shared_reads.py > FILE; ncu --metrics lts__t_sectors_srcunit_tex_op_read.sum,... -k probe ./shared_reads FILE

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

struct Launch {
    int blocks;  // of 128 threads, one on an SM
    int by_sm;   // an id is the number of the SM, not of the block
    int first, last, step, other;  // ids that read: first, first + step, ... below last; and `other`
    int div, mod;                  // an id reads the stream id / div % mod
    int delay;                     // cycles by which an id begins after the one before it
    int how;                       // 0: loads of 16 bytes; 1: bulk copies; 2: boxes of 128 bytes by bytes / 128
    int bytes;                     // of a piece, a power of two up to 32 KB
    int pieces;                    // of a stream, one after another
    int depth;                     // pieces that are on their way at a time
    int rounds;                    // how often the stream is read
};

constexpr int STAGE = 32768;

__device__ unsigned shared_address(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }

__global__ void touch(const int4 *data, size_t many, int *out) {
    int sum = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < many; i += gridDim.x * blockDim.x) sum += data[i].x;
    if (sum == 12345) *out = sum;
}

__global__ void probe(const __grid_constant__ CUtensorMap map, const char *data, Launch launch, int *sms, int *out) {
    extern __shared__ __align__(1024) char stages[];
    __shared__ __align__(8) unsigned long long full[4];
    unsigned sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (threadIdx.x == 0) sms[blockIdx.x] = sm;
    int id = launch.by_sm ? sm : blockIdx.x;
    bool reads = id == launch.other
        || (id >= launch.first && id < launch.last && (id - launch.first) % launch.step == 0);
    int rank = id == launch.other ? 1 : (id - launch.first) / launch.step;
    if (threadIdx.x == 0)
        for (int i = 0; i < 4; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + i)));
    asm volatile("fence.proxy.async;");
    // All blocks begin at the next multiple of 131 us.
    unsigned long long now, start;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    start = ((now + 16384) >> 17) + 1 << 17;
    while (now < start) asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    long long begin = clock64();
    while (clock64() - begin < (long long)launch.delay * rank) {}
    __syncthreads();
    if (!reads) return;
    size_t stream = (size_t)(id / launch.div % launch.mod) * launch.pieces;
    int sum = 0, many = launch.pieces * launch.rounds;
    if (launch.how == 0) {
        for (int i = 0; i < many; ++i) {
            const char *piece = data + (stream + i % launch.pieces) * launch.bytes;
            for (int at = threadIdx.x * 16; at < launch.bytes; at += 128 * 16) sum += ((const int4 *)(piece + at))->x;
            __syncthreads();
        }
    } else if (threadIdx.x == 0) {
        for (int i = 0; i < many + launch.depth; ++i) {
            int slot = i % launch.depth;
            unsigned gate = shared_address(full + slot), into = shared_address(stages + slot * STAGE);
            if (i >= launch.depth) {
                unsigned phase = (i / launch.depth - 1) & 1, done = 0;
                while (!done)
                    asm volatile(
                        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                        : "=r"(done) : "r"(gate), "r"(phase) : "memory");
            }
            if (i >= many) continue;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gate), "r"(launch.bytes));
            size_t piece = stream + i % launch.pieces;
            if (launch.how == 1)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                             ::"r"(into), "l"(data + piece * launch.bytes), "r"(launch.bytes), "r"(gate) : "memory");
            else
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                             " [%0], [%1, {%2, %3}], [%4];"
                             ::"r"(into), "l"(&map), "r"(0), "r"((int)(piece * (launch.bytes / 128))), "r"(gate)
                             : "memory");
        }
    }
    if (sum == 12345) *out = sum;
}

static void check(int failure, const char *what) {
    if (failure) fprintf(stderr, "%s: %d\n", what, failure), exit(1);
}

int main(int many, char **words) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    check(many != 2 || !freopen(words[1], "r", stdin), "usage: shared_reads FILE");
    constexpr size_t SIZE = 64 << 20;
    char *data;
    int *sms, *out, host[1024];
    check(cudaMalloc(&data, SIZE), "malloc");
    check(cudaMalloc(&sms, sizeof host), "malloc");
    check(cudaMalloc(&out, 4), "malloc");
    check(cudaMemset(data, 0, SIZE), "memset");
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result), "entry");
    auto encode = (decltype(&cuTensorMapEncodeTiled))found;
    check(cudaFuncSetAttribute(probe, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * STAGE), "attribute");
    Launch l;
    for (int number = 0; scanf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d", &l.blocks, &l.by_sm, &l.first, &l.last, &l.step,
                               &l.other, &l.div, &l.mod, &l.delay, &l.how, &l.bytes, &l.pieces, &l.depth, &l.rounds) == 14;
         ++number) {
        CUtensorMap map;
        cuuint64_t sizes[2] = {64, SIZE / 128}, strides[1] = {128};
        cuuint32_t box[2] = {64, (cuuint32_t)(l.bytes < 128 ? 1 : l.bytes / 128)}, steps[2] = {1, 1};
        check(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, sizes, strides, box, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE), "map");
        size_t used = (size_t)l.mod * l.pieces * l.bytes;
        check(used > SIZE, "too large");
        touch<<<132, 1024>>>((const int4 *)data, used / 16, out);
        probe<<<l.blocks, 128, 4 * STAGE>>>(map, data, l, sms, out);
        check(cudaDeviceSynchronize(), "probe");
        if (number == 0) {
            check(cudaMemcpy(host, sms, l.blocks * 4, cudaMemcpyDeviceToHost), "copy");
            for (int i = 0; i < l.blocks; ++i) printf("block %d on %d\n", i, host[i]);
        }
        printf("launch %d: %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", number, l.blocks, l.by_sm, l.first, l.last, l.step,
               l.other, l.div, l.mod, l.delay, l.how, l.bytes, l.pieces, l.depth, l.rounds);
    }
}
