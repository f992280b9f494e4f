// Kernels of ggml's CUDA backend (llama.cpp) by the functions that launch them.
#include "host.h"

#include "norm.cu"
#include "softcap.cu"
#include "tsembd.cu"

// Of the rest of the backend, which is not linked.
int ggml_cuda_get_device() { return 0; }
void ggml_cuda_error(const char *, const char *, const char *, int, const char *) { abort(); }

int main() {
    int rows = 96, width = 1024;
    auto *x = numbers<float>(rows * width), *y = numbers<float>(rows * width), *out = zeros<float>(rows * width);
    rms_norm_f32_cuda(x, out, width, rows, 1, 1, width, rows * width, rows * width, 1e-6f, 0);
    print_sum("rms_norm", out, rows * width);
    norm_f32_cuda(x, out, width, rows, 1, 1, width, rows * width, rows * width, 1e-6f, 0);
    print_sum("norm", out, rows * width);
    l2_norm_f32_cuda(x, out, width, rows, 1, 1, width, rows * width, rows * width, 1e-6f, 0);
    print_sum("l2_norm", out, rows * width);
    rms_norm_back_f32_cuda(x, y, out, width, rows, 1e-6f, 0);
    print_sum("rms_norm_back", out, rows * width);
    softcap_f32_cuda(x, out, .5f, 30.f, rows * width, 0);
    print_sum("softcap", out, rows * width);
    timestep_embedding_f32_cuda(x, out, rows, 256 * 4, 256, 10000, 0);
    print_sum("timestep_embedding", out, rows * 256);
}
