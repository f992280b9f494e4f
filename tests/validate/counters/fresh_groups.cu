// Cooperative groups and copies that are waited for later, as people write them: of the third set,
// captured before any model saw them.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

// cutrace: sum_tiles<<<32, 128>>>(sums:i32[4096], in:i32[16384]=random:1, 4096)
__global__ void sum_tiles(int *sums, const int *in, int n)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    int v = i < n ? in[i] : 0;
    for (int d = tile.size() / 2; d > 0; d /= 2)
        v += tile.shfl_down(v, d);
    if (tile.thread_rank() == 0)
        sums[i / 8] = v;
}

// cutrace: keep_some<<<16, 96>>>(kept:i32[16384], count:i32[1], in, 1500)
__global__ void keep_some(int *kept, int *count, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 4 == 1) {
        cg::coalesced_group together = cg::coalesced_threads();
        int start = 0;
        if (together.thread_rank() == 0)
            start = atomicAdd(count, together.size());
        kept[8192 + i] = together.shfl(start, 0) >= 0 ? together.thread_rank() : -1;
    }
}

// cutrace: most_of_block<<<16, 256>>>(sums, in)
__global__ void most_of_block(int *most, const int *in)
{
    __shared__ int s[8];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int v = cg::reduce(warp, in[blockIdx.x * 256 + block.thread_rank()], cg::greater<int>());
    if (warp.thread_rank() == 0)
        s[warp.meta_group_rank()] = v;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        v = cg::reduce(warp, s[warp.thread_rank() % 8], cg::greater<int>());
        if (warp.thread_rank() == 0)
            most[blockIdx.x] = v;
    }
}

// cutrace: two_stages<<<16, 128>>>(out:f32[65536], big:f32[65536]=random:2, 2048)
__global__ void two_stages(float4 *out, const float4 *in, int n)
{
    __shared__ float4 s[2][128];
    int t = threadIdx.x, each = n / gridDim.x, base = blockIdx.x * each;
    __pipeline_memcpy_async(&s[0][t], &in[base + t], sizeof(float4));
    __pipeline_commit();
    for (int k = 0; k < 8; k++) {
        if (k < 7)
            __pipeline_memcpy_async(&s[(k + 1) & 1][t], &in[base + (k + 1) * 128 + t],
                                    sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 a = s[k & 1][t], b = s[k & 1][127 - t];
        out[base + k * 128 + t] = make_float4(a.x + b.w, a.y + b.z, a.z + b.y, a.w + b.x);
        __syncthreads();
    }
}

// cutrace: halo_words<<<64, 128>>>(out, big, 8192)
__global__ void halo_words(float *out, const float *in, int n)
{
    __shared__ float s[128 + 4];
    int g = blockIdx.x * 128 + threadIdx.x;
    __pipeline_memcpy_async(&s[threadIdx.x + 2], &in[g], 4);
    if (threadIdx.x < 4) {
        int at = blockIdx.x * 128 + (threadIdx.x < 2 ? (int)threadIdx.x - 2 : 126 + threadIdx.x);
        __pipeline_memcpy_async(&s[threadIdx.x < 2 ? threadIdx.x : 128 + threadIdx.x],
                                &in[min(max(at, 0), n - 1)], 4);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 5; k++)
        sum += s[threadIdx.x + k];
    out[g] = sum;
}

// cutrace: tile_product<<<(4, 4), (16, 16)>>>(out, big, big, 64)
__global__ void tile_product(float *c, const float *a, const float *b, int n)
{
    __shared__ __align__(16) float s[2][16][16], t[2][16][16];
    int tx = threadIdx.x, ty = threadIdx.y, now = 0;
    auto fetch = [&](int k, int into) {
        if (tx < 4)
            __pipeline_memcpy_async(&s[into][ty][tx * 4],
                                    &a[(blockIdx.y * 16 + ty) * n + k + tx * 4], 16);
        else if (tx < 8)
            __pipeline_memcpy_async(&t[into][ty][(tx - 4) * 4],
                                    &b[(k + ty) * n + blockIdx.x * 16 + (tx - 4) * 4], 16);
        __pipeline_commit();
    };
    float sum = 0.0f;
    fetch(0, 0);
    for (int k = 0; k < n; k += 16, now ^= 1) {
        if (k + 16 < n)
            fetch(k + 16, now ^ 1);
        if (k + 16 < n)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        __syncthreads();
        for (int j = 0; j < 16; j++)
            sum += s[now][ty][j] * t[now][j][tx];
        __syncthreads();
    }
    c[(blockIdx.y * 16 + ty) * n + blockIdx.x * 16 + tx] = sum;
}
