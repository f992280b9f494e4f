// vLLM's kernels, as Aphrodite Engine has them. Each `*_cut.cuh` is a file of its csrc up to the host functions.
#include "host.h"

namespace c10 {
struct Half : __half {
    using __half::__half;
};
struct BFloat16 : __nv_bfloat16 {
    using __nv_bfloat16::__nv_bfloat16;
};
struct Float8_e4m3fn {};
struct Float8_e4m3fnuz {};
}  // namespace c10

#define TORCH_CHECK(...)
#include "layernorm_cut.cuh"
#include "pos_encoding_cut.cuh"
#include "attention/attention_kernels.cuh"
#include "moe_align_cut.cuh"

using namespace aphrodite;
using c10::Half;
constexpr auto PLAIN = Fp8KVCacheDataType::kAuto;

static void normalize() {
    int tokens = 48, width = 1024;
    auto *in = numbers<Half>(tokens * width), *weight = numbers<Half>(width), *out = zeros<Half>(tokens * width);
    rms_norm_kernel<Half, 8, 2><<<tokens, 128>>>(out, in, width, 0, 0, 0, 0, weight, 1e-5f, tokens, width);
    print_sum("rms_norm", out, tokens * width);
    auto *residual = numbers<Half>(tokens * width, 2.f);
    fused_add_rms_norm_kernel<Half, 8><<<tokens, 128>>>(in, width, residual, weight, 1e-5f, tokens, width);
    print_sum("fused_add_rms_norm", in, tokens * width);
}

static void rotate() {
    int tokens = 40, heads = 8, kv_heads = 2, size = 64;
    auto *q = numbers<Half>(tokens * heads * size), *k = numbers<Half>(tokens * kv_heads * size);
    rotary_embedding_kernel<Half, true><<<tokens, 256>>>(
        integers<int64_t>(tokens, 512), q, k, numbers<float>(512 * size), size, heads * size, kv_heads * size, size, heads,
        kv_heads, size, 0, false);
    print_sum("rotary_embedding", q, tokens * heads * size);
}

static void attend() {
    constexpr int SIZE = 64, BLOCK = 16, PART = 512;
    int seqs = 6, heads = 8, kv_heads = 2, blocks = 192, most = 48;
    auto *query = numbers<Half>(seqs * heads * SIZE);
    auto *keys = numbers<Half>(blocks * kv_heads * SIZE * BLOCK), *values = numbers<Half>(blocks * kv_heads * SIZE * BLOCK);
    auto *scale = numbers<float>(1);
    int *tables = integers<int>(seqs * most, blocks), *lengths = device_copy<int>({700, 33, 512, 129, 1, 260});
    auto *out = zeros<Half>(seqs * heads * SIZE), *parts = zeros<Half>(seqs * heads * SIZE * 2);
    auto *sums = zeros<float>(seqs * heads * 2), *largest = zeros<float>(seqs * heads * 2);
    int q_stride = heads * SIZE, kv_block = kv_heads * SIZE * BLOCK, kv_head = SIZE * BLOCK, shared = most * BLOCK * 4;
    paged_attention_v1_kernel<uint16_t, uint16_t, SIZE, BLOCK, 128, PLAIN, false><<<dim3(heads, seqs), 128, shared>>>(
        (uint16_t *)out, (uint16_t *)query, (uint16_t *)keys, (uint16_t *)values, kv_heads, 0.125f, tables, lengths, most,
        nullptr, q_stride, kv_block, kv_head, scale, scale, 0, 0, 0, 64, 0);
    print_sum("paged_attention_v1", out, seqs * heads * SIZE);
    paged_attention_v2_kernel<uint16_t, uint16_t, SIZE, BLOCK, 128, PLAIN, false, PART>
        <<<dim3(heads, seqs, 2), 128, PART * 4>>>(
            sums, largest, (uint16_t *)parts, (uint16_t *)query, (uint16_t *)keys, (uint16_t *)values, kv_heads, 0.125f,
            tables, lengths, most, nullptr, q_stride, kv_block, kv_head, scale, scale, 0, 0, 0, 64, 0);
    paged_attention_v2_reduce_kernel<uint16_t, SIZE, 128, PART><<<dim3(heads, seqs), 128, 2 * 2 * 4>>>(
        (uint16_t *)out, sums, largest, (uint16_t *)parts, lengths, 2);
    print_sum("paged_attention_v2", out, seqs * heads * SIZE);
}

static void align_experts() {
    int tokens = 300, experts = 32, topk = 2, block = 16, many = tokens * topk;
    int padded = many + experts * (block - 1), *ids = integers<int>(many, experts), *sorted = zeros<int>(padded);
    int *of_block = zeros<int>(padded), *after = zeros<int>(1), *sums = zeros<int>(experts + 1);
    moe::moe_align_block_size_kernel<int><<<2, 1024, 32 * 4 + 64>>>(
        ids, sorted, of_block, after, nullptr, experts, 32, 32, block, many, sums, padded, topk, false);
    moe::count_and_sort_expert_tokens_kernel<int><<<3, 256>>>(ids, sorted, sums, nullptr, many, experts, padded, topk, false);
    print_sum("moe_align_block_size", of_block, padded / block);
    auto *in = numbers<float>(tokens * topk * 256), *out = zeros<float>(tokens * 256);
    moe::moe_sum_kernel<float, 2><<<tokens, 256>>>(out, in, 256);
    print_sum("moe_sum", out, tokens * 256);
}

int main() {
    normalize(), rotate(), attend(), align_experts();
}
