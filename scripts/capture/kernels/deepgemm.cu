// DeepGEMM's product of bf16 matrices for 9.0: shapes and tiles as its heuristics may choose them.
#include "host.h"

#include <cuda.h>
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

using namespace deep_gemm;
using T = cutlass::bfloat16_t;

static CUtensorMap map_of(void *data, int inner, int outer, int box_inner, int box_outer) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result), "entry");
    CUtensorMap map;
    cuuint64_t sizes[2] = {cuuint64_t(inner), cuuint64_t(outer)}, strides[1] = {cuuint64_t(inner) * 2};
    cuuint32_t box[2] = {cuuint32_t(box_inner), cuuint32_t(box_outer)}, steps[2] = {1, 1};
    check(((decltype(&cuTensorMapEncodeTiled))found)(
              &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
              CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE), "map");
    return map;
}

template <int BLOCK_M, int BLOCK_N, int STAGES, int MULTICAST>
static void product(int m, int n, int k) {
    constexpr int K = 64, MATH = BLOCK_M <= 64 ? 128 : 256, CHIP = 132;
    auto *kernel = sm90_bf16_gemm_impl<cute::UMMA::Major::K, cute::UMMA::Major::K, 0, 0, 0, 1, BLOCK_M, BLOCK_N, K, 128, 128,
                                       128, STAGES, 128, MATH, MULTICAST, false, CHIP, GemmType::Normal, false, T>;
    auto *a = numbers<__nv_bfloat16>(m * k), *b = numbers<__nv_bfloat16>(n * k), *d = zeros<__nv_bfloat16>(m * n);
    int shared = BLOCK_M * BLOCK_N * 2 + STAGES * (BLOCK_M + BLOCK_N) * K * 2 + STAGES * 16 + 1024;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "attribute");
    cudaLaunchConfig_t config{};
    cudaLaunchAttribute attribute{};
    config.gridDim = CHIP, config.blockDim = 128 + MATH, config.dynamicSmemBytes = shared;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = MULTICAST, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute, config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, kernel, (int *)nullptr, uint32_t(m), uint32_t(n), uint32_t(k),
                             map_of(a, k, m, 64, BLOCK_M), map_of(b, k, n, 64, BLOCK_N), map_of(d, n, m, 64, BLOCK_M)),
          "launch");
    print_sum("bf16_gemm", d, m * n);
}

int main() {
    product<64, 128, 4, 1>(512, 1024, 512);
    product<128, 128, 4, 1>(1024, 768, 256);
    product<128, 64, 5, 2>(1024, 512, 512);
}
