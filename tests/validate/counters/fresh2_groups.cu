// Kernels as people write them: warps and groups, copies ahead, matrices of mma.h.
// Written before any of them was run on a chip.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace cg = cooperative_groups;
typedef unsigned int u32;

// cutrace: tile_sums<<<4, 128>>>(sums:f32[64], in:f32[16384]=random:301)
__global__ void tile_sums(float *sums, const float *in)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = cg::reduce(tile, in[i], cg::plus<float>());
    if (tile.thread_rank() == 0) sums[i / 8] = v;
}

// cutrace: grouped_push<<<4, 128>>>(counter:i32[4], picked:i32[1024], in, 512)
__global__ void grouped_push(int *counter, int *picked, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0.5f) {
        auto active = cg::coalesced_threads();
        int at = 0;
        if (active.thread_rank() == 0) at = atomicAdd(counter + blockIdx.x, active.size());
        at = active.shfl(at, 0) + active.thread_rank();
        picked[blockIdx.x * 128 + at % 128] = i;
    }
}

// cutrace: matched_bins<<<4, 96>>>(bins:i32[64], keys:i32[1024]=random:302)
__global__ void matched_bins(int *bins, const int *keys)
{
    int key = keys[blockIdx.x * blockDim.x + threadIdx.x] & 15;
    u32 same = __match_any_sync(0xffffffff, key);
    if (__ffs(same) - 1 == threadIdx.x % 32) atomicAdd(bins + key, __popc(same));
}

// cutrace: pack_votes<<<8, 128>>>(words:u32[32], in)
__global__ void pack_votes(u32 *words, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 word = __ballot_sync(~0u, in[i] < 0.25f);
    if (i % 32 == 0) words[i / 32] = word;
}

// cutrace: rotate_lanes<<<4, 64>>>(out:f32[16384], in)
__global__ void rotate_lanes(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    float v[4];
    for (int k = 0; k < 4; k++) v[k] = in[i + k * 256];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = __shfl_sync(~0u, v[k], (lane + 8 * k) & 31);
    for (int k = 0; k < 4; k++) out[i + k * 256] = v[k];
}

// cutrace: sort_warp<<<4, 64>>>(sorted:i32[1024], keys)
__global__ void sort_warp(int *out, const int *keys)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, v = keys[i];
    for (int k = 2; k <= 32; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            int other = __shfl_xor_sync(0xffffffff, v, j);
            bool low = (lane & j) == 0, up = (lane & k) == 0;
            v = low == up ? min(v, other) : max(v, other);
        }
    out[i] = v;
}

// cutrace: copy_ahead<<<4, 64>>>(out, in, 16)
__global__ void copy_ahead(float *out, const float *in, int tiles)
{
    __shared__ float4 stage[2][64];
    const float4 *from = (const float4 *)in + blockIdx.x * 1024 + threadIdx.x;
    __pipeline_memcpy_async(&stage[0][threadIdx.x], from, 16);
    __pipeline_commit();
    float sum = 0.0f;
    for (int k = 0; k < tiles; k++) {
        if (k + 1 < tiles) __pipeline_memcpy_async(&stage[(k + 1) & 1][threadIdx.x], from + (k + 1) * 64, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = stage[k & 1][63 - threadIdx.x];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// cutrace: gather_ahead<<<4, 128>>>(out, in, keys)
__global__ void gather_ahead(float *out, const float *in, const int *keys)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    __pipeline_memcpy_async(&s[t], in + keys[i], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[i] = s[t ^ 1];
}

// cutrace: product_ahead<<<(2, 2), (16, 16)>>>(out, in, in, 32, 64)
__global__ void product_ahead(float *c, const float *a, const float *b, int n, int k)
{
    __shared__ float as[2][16][16], bs[2][16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    __pipeline_memcpy_async(&as[0][ty][tx], a + row * k + tx, 4);
    __pipeline_memcpy_async(&bs[0][ty][tx], b + ty * n + col, 4);
    __pipeline_commit();
    float sum = 0.0f;
    for (int s = 0; s < k / 16; s++) {
        int next = s + 1;
        if (next < k / 16) {
            __pipeline_memcpy_async(&as[next & 1][ty][tx], a + row * k + next * 16 + tx, 4);
            __pipeline_memcpy_async(&bs[next & 1][ty][tx], b + (next * 16 + ty) * n + col, 4);
            __pipeline_commit();
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[s & 1][ty][i] * bs[s & 1][i][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

using namespace nvcuda;
// cutrace: half_tiles<<<(2, 2), 32>>>(out, hx:f16[4096]=random:303, hy:f16[4096]=random:304, 32, 64)
__global__ void half_tiles(float *c, const half *a, const half *b, int n, int k)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
        wmma::load_matrix_sync(fb, b + i * n + blockIdx.x * 16, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, wmma::mem_row_major);
}

// cutrace: bf16_tiles<<<2, 64>>>(out, xb:u16[4096]=random:305, yb:u16[4096]=random:306)
__global__ void bf16_tiles(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b)
{
    __shared__ __nv_bfloat16 sa[2][16 * 24], sb[2][16 * 24];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = lane; i < 256; i += 32) {
        sa[warp][i / 16 * 24 + i % 16] = __float2bfloat16(i * 0.25f + (a == nullptr));
        sb[warp][i / 16 * 24 + i % 16] = __float2bfloat16((i % 7) * 0.5f + (b == nullptr));
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    wmma::load_matrix_sync(fa, sa[warp], 24);
    wmma::load_matrix_sync(fb, sb[warp], 24);
    wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 0.125f;
    wmma::store_matrix_sync(c + (blockIdx.x * 2 + warp) * 256, fc, 16, wmma::mem_col_major);
}
