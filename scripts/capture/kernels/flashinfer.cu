// FlashInfer's kernels, those of SGLang: norms, sampling, merged states.
#include "host.h"

#include <flashinfer/activation.cuh>
#include <flashinfer/attention/cascade.cuh>
#include <flashinfer/norm.cuh>
#include <flashinfer/quantization.cuh>
#include <flashinfer/sampling.cuh>

using namespace flashinfer;

__device__ float silu(const float &x) { return x / (1.f + __expf(-x)); }

int main() {
    int rows = 72, width = 2048, heads = 8, size = 128;
    auto *x = numbers<__nv_bfloat16>(rows * width), *weight = numbers<__nv_bfloat16>(width),
         *residual = numbers<__nv_bfloat16>(rows * width, 2.f), *out = zeros<__nv_bfloat16>(rows * width);
    check(norm::RMSNorm(x, weight, out, rows, width, width, width, 1e-6f, false), "RMSNorm");
    print_sum("RMSNorm", out, rows * width);
    check(norm::FusedAddRMSNorm(x, residual, weight, rows, width, width, width, 1e-6f, false), "FusedAddRMSNorm");
    print_sum("FusedAddRMSNorm", residual, rows * width);
    activation::act_and_mul_kernel<__nv_bfloat16, silu><<<rows, width / 2 / 8>>>(out, x, width / 2);
    print_sum("silu_and_mul", out, rows * width / 2);
    auto *a = numbers<__half>(rows * heads * size), *b = numbers<__half>(rows * heads * size, 2.f),
         *merged = zeros<__half>(rows * heads * size);
    auto *s = numbers<float>(rows * heads), *t = numbers<float>(rows * heads, 2.f), *u = zeros<float>(rows * heads);
    check(MergeState(a, s, b, t, merged, u, rows, heads, size), "MergeState");
    print_sum("MergeState", merged, rows * heads * size);
    check(MergeStates(a, s, merged, u, 6, rows / 6, heads, size), "MergeStates");
    print_sum("MergeStates", merged, rows / 6 * heads * size);
    auto *bits = zeros<uint8_t>(4096);
    check(quantization::PackBits((bool *)integers<uint8_t>(32768, 2), bits, 32768, quantization::BitOrder::kLittle, 0),
          "PackBits");
    print_sum("PackBits", bits, 4096);
    auto *logits = numbers<float>(rows * width, 3.f);
    int *tokens = zeros<int>(rows);
    check(sampling::SamplingFromLogits(logits, tokens, (int *)nullptr, rows, width, true, (uint64_t *)nullptr, 1234ull,
                                       (uint64_t *)nullptr, 0ull), "SamplingFromLogits");
    print_sum("SamplingFromLogits", tokens, rows);
}
