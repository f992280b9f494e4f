// Cooperative groups: the block, tiles of a warp, the threads that happen to be together, and the
// whole grid.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

template <typename Tile>
__device__ int sum_tile(const Tile &tile, int value)
{
    for (int reach = tile.size() / 2; reach > 0; reach /= 2)
        value += tile.shfl_down(value, reach);
    return value;
}

__global__ void sums_of_tiles(int *sums4, int *sums16, int *sums32, const int *in)
{
    cg::thread_block block = cg::this_thread_block();
    int value = in[block.group_index().x * block.size() + block.thread_rank()];
    auto warp = cg::tiled_partition<32>(block);
    auto half = cg::tiled_partition<16>(warp);
    auto four = cg::tiled_partition<4>(block);
    int number = block.group_index().x * block.size() + block.thread_rank();
    int a = sum_tile(four, value), b = sum_tile(half, value), c = sum_tile(warp, value);
    if (four.thread_rank() == 0)
        sums4[number / 4] = a;
    if (half.thread_rank() == 0)
        sums16[number / 16] = b;
    if (warp.thread_rank() == 0)
        sums32[number / 32] = c;
}

__global__ void reduce_and_scan(int *greatest, int *before, const int *in)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = cg::this_grid().thread_rank();
    int most = cg::reduce(tile, in[i], cg::greater<int>());
    before[i] = cg::exclusive_scan(tile, in[i]);
    if (tile.thread_rank() == tile.num_threads() - 1)
        greatest[i / 8] = most;
}

__global__ void count_together(int *counts, const int *keys, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (keys[i] % 3 == 0) {
        cg::coalesced_group together = cg::coalesced_threads();
        int before = 0;
        if (together.thread_rank() == 0)
            before = atomicAdd(&counts[0], together.size());
        before = together.shfl(before, 0);
        atomicMax(&counts[1], before + (int)together.thread_rank());
        if (together.any(keys[i] == 33))
            atomicAdd(&counts[2], 1);
    } else {
        auto labelled = cg::labeled_partition(cg::coalesced_threads(), keys[i] % 3);
        if (labelled.thread_rank() == 0)
            atomicAdd(&counts[2 + keys[i] % 3], labelled.size());
    }
}

__global__ void odd_even_sort(int *data, int n)
{
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int round = 0; round < n; ++round) {
        int at = 2 * i + (round & 1);
        if (at + 1 < n && data[at] > data[at + 1]) {
            int swap = data[at];
            data[at] = data[at + 1];
            data[at + 1] = swap;
        }
        grid.sync();
    }
}
