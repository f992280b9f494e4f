// cub's block-wide primitives: reductions by three algorithms, scans with a prefix carried from
// tile to tile, a sort by key, and a load that turns striped into blocked order.

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

struct Smaller {
    __device__ int operator()(int a, int b) const { return a < b ? a : b; }
};

template <int BLOCK, cub::BlockReduceAlgorithm ALGORITHM>
__global__ void reduce_blocks(int *sums, int *least, const int *in)
{
    using Reduce = cub::BlockReduce<int, BLOCK, ALGORITHM>;
    __shared__ typename Reduce::TempStorage room;
    int value = in[blockIdx.x * BLOCK + threadIdx.x];
    int sum = Reduce(room).Sum(value);
    __syncthreads();
    int low = Reduce(room).Reduce(value, Smaller());
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        least[blockIdx.x] = low;
    }
}

struct Carry {
    long long total;

    __device__ long long operator()(long long sum)
    {
        long long before = total;
        total += sum;
        return before;
    }
};

template <int BLOCK, int EACH>
__global__ void scan_tiles(long long *out, const long long *in, int n)
{
    using Load = cub::BlockLoad<long long, BLOCK, EACH, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<long long, BLOCK>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Scan::TempStorage scan;
    } room;
    Carry carry{0};
    for (int start = 0; start < n; start += BLOCK * EACH) {
        long long items[EACH];
        Load(room.load).Load(in + start, items, n - start, 0ll);
        __syncthreads();
        Scan(room.scan).ExclusiveSum(items, items, carry);
        __syncthreads();
        for (int k = 0; k < EACH; ++k) {
            int at = start + threadIdx.x * EACH + k;
            if (at < n)
                out[at] = items[k];
        }
    }
}

__global__ void sort_block(unsigned *keys, unsigned short *values)
{
    using Sort = cub::BlockRadixSort<unsigned, 64, 4, unsigned short>;
    __shared__ typename Sort::TempStorage room;
    unsigned own[4];
    unsigned short carried[4];
    for (int k = 0; k < 4; ++k) {
        own[k] = keys[threadIdx.x * 4 + k];
        carried[k] = threadIdx.x * 4 + k;
    }
    Sort(room).Sort(own, carried);
    for (int k = 0; k < 4; ++k) {
        keys[threadIdx.x * 4 + k] = own[k];
        values[threadIdx.x * 4 + k] = carried[k];
    }
}
