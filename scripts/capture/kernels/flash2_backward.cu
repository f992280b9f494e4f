// The backward pass of FlashAttention 2: what multiplies dO and O, the main loop, and the sum of dQ.
#include "host.h"

#define FLASHATTENTION_DISABLE_DROPOUT
#define FLASHATTENTION_DISABLE_ALIBI
#define FLASHATTENTION_DISABLE_LOCAL
#define FLASHATTENTION_DISABLE_SOFTCAP
#define FLASHATTENTION_DISABLE_UNEVEN_K
#include "flash_bwd_launch_template.h"

#ifndef WIDTH
#define WIDTH 64
#endif

int main() {
    using namespace flash;
    using T = cutlass::half_t;
    int batch = 1, heads = 2, length = 256, width = WIDTH, many = batch * heads * length * width;
    Flash_bwd_params p{};
    p.b = batch, p.h = p.h_k = heads, p.h_h_k_ratio = 1, p.d = p.d_rounded = width;
    p.seqlen_q = p.seqlen_k = p.seqlen_q_rounded = p.seqlen_k_rounded = length, p.total_q = batch * length;
    auto **in = new __half *[4];
    for (int i = 0; i < 4; ++i) in[i] = numbers<__half>(many, 1.f + i / 4.f);
    p.q_ptr = in[0], p.k_ptr = in[1], p.v_ptr = in[2], p.do_ptr = in[3], p.o_ptr = numbers<__half>(many, .5f);
    auto *dq = zeros<__half>(many), *dk = zeros<__half>(many), *dv = zeros<__half>(many);
    p.dq_ptr = dq, p.dk_ptr = dk, p.dv_ptr = dv;
    for (auto *stride : {&p.q_batch_stride, &p.k_batch_stride, &p.v_batch_stride, &p.o_batch_stride, &p.do_batch_stride,
                         &p.dq_batch_stride, &p.dk_batch_stride, &p.dv_batch_stride})
        *stride = heads * length * width;
    for (auto *stride : {&p.q_row_stride, &p.k_row_stride, &p.v_row_stride, &p.o_row_stride, &p.do_row_stride,
                         &p.dq_row_stride, &p.dk_row_stride, &p.dv_row_stride})
        *stride = heads * width;
    for (auto *stride : {&p.q_head_stride, &p.k_head_stride, &p.v_head_stride, &p.o_head_stride, &p.do_head_stride,
                         &p.dq_head_stride, &p.dk_head_stride, &p.dv_head_stride})
        *stride = width;
    p.softmax_lse_ptr = numbers<float>(batch * heads * length, 4.f);
    p.dsoftmax_sum = zeros<float>(batch * heads * length), p.dq_accum_ptr = zeros<float>(many);
    p.scale_softmax = 1 / sqrtf(width), p.scale_softmax_log2 = p.scale_softmax * 1.44269504f;
    p.p_dropout = 1.f, p.p_dropout_in_uint8_t = 255, p.rp_dropout = 1.f, p.scale_softmax_rp_dropout = p.scale_softmax;
    p.is_causal = true, p.window_size_left = -1, p.window_size_right = 0;
    // From lengths as in any batch to a launch with the tiles that the library has for this width
    if (WIDTH == 64)
        run_flash_bwd<Flash_bwd_kernel_traits<WIDTH, 128, 128, 8, 4, 4, 4, false, false, T>, false, true>(p, 0);
    else
        run_flash_bwd<Flash_bwd_kernel_traits<WIDTH, 64, 128, 8, 2, 4, 2, false, false, T>, false, true>(p, 0);
    print_sum("dq", dq, many), print_sum("dk", dk, many), print_sum("dv", dv, many);
}
