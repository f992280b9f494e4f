// Code whose lanes read others that are off, gone, at another place, or not in the mask. The ISA
// leaves most of it open; a GPU gave what lanes.parquet holds. A block is a warp, or 48 threads.

#define KERNEL(name) extern "C" __global__ void name(const unsigned *in, unsigned *out)
#define T unsigned t = threadIdx.x, l = t & 31, x = in[t]
#define OUT(k) out[(k) * blockDim.x + t]

KERNEL(arm_down) { T; unsigned y = 7; if (l < 16) y = __shfl_down_sync(0xffff, x, 8); OUT(0) = y; OUT(1) = x; }
KERNEL(arm_up) { T; unsigned y = 7; if (l >= 16) y = __shfl_up_sync(0xffff0000, x, 8); OUT(0) = y; OUT(1) = x; }
KERNEL(arm_xor) { T; unsigned y = 7; if (l < 16) y = __shfl_xor_sync(0xffff, x, 16); OUT(0) = y; OUT(1) = x; }
KERNEL(arm_index) { T; unsigned y = 7; if (l < 16) y = __shfl_sync(0xffff, x, 31 - l); OUT(0) = y; OUT(1) = x; }
KERNEL(arm_width) { T; unsigned y = 7; if (l < 20) y = __shfl_down_sync(0xfffff, x, 3, 8); OUT(0) = y; OUT(1) = x; }
KERNEL(odd_lanes) { T; unsigned y = 7; if (l & 1) y = __shfl_xor_sync(0xaaaaaaaa, x, 1); OUT(0) = y; OUT(1) = x; }
KERNEL(by_data) { T; unsigned y = 7; unsigned m = __ballot_sync(0xffffffff, x & 2); if (x & 2) y = __shfl_up_sync(m, x, 1); OUT(0) = y; OUT(1) = m; }

KERNEL(both_arms) {
    T; unsigned y;
    if (l < 16) y = __shfl_xor_sync(0xffff, x, 16);
    else y = __shfl_xor_sync(0xffff0000, x + 100, 16);
    OUT(0) = y;
}
KERNEL(both_arms_work) {
    T; unsigned y;
    if (l < 16) { x = x * x + in[x & 7]; y = __shfl_xor_sync(0xffff, x, 16); x ^= y; }
    else { x = x * 3 + in[x & 15]; y = __shfl_xor_sync(0xffff0000, x, 16) * 5; x -= y; }
    OUT(0) = y; OUT(1) = x;
}
KERNEL(other_arm_changed) {
    T; unsigned y;
    if (l < 16) y = __shfl_xor_sync(0xffff, x, 16);
    else { x = x * 3 + in[x & 7]; y = x; }
    OUT(0) = y; OUT(1) = x;
}
KERNEL(own_arm_changed) {
    T; unsigned y = 1;
    if (l < 16) { x = x * 5 + in[x & 7]; y = __shfl_xor_sync(0xffff, x, 16); }
    OUT(0) = y; OUT(1) = x;
}
KERNEL(four_arms) {
    T; unsigned y = 0, m = 0x11111111u << (l & 3);
    switch (in[t] & 3) {
    case 0: y = __shfl_xor_sync(m, x, 1); break;
    case 1: y = __shfl_xor_sync(m, x, 2) + 1; break;
    case 2: y = __shfl_xor_sync(m, x, 4) + 2; break;
    default: y = __shfl_xor_sync(m, x, 3) + 3;
    }
    OUT(0) = y;
}
KERNEL(nested_arms) {
    T; unsigned y = 3, z = 4;
    if (l < 24) {
        y = __shfl_down_sync(0xffffff, x, 4);
        if (l & 4) { z = __shfl_xor_sync(0x00f0f0f0, x + y, 12); }
        y += __shfl_down_sync(0xffffff, z, 12);
    }
    OUT(0) = y; OUT(1) = z;
}

KERNEL(gone) { T; if (l >= 20) return; OUT(0) = __shfl_xor_sync(0xfffff, x, 16); OUT(1) = __shfl_down_sync(0xfffff, x, 3); }
KERNEL(gone_named) { T; if (l >= 20) return; OUT(0) = __shfl_xor_sync(0xffffffff, x, 16); OUT(1) = __shfl_down_sync(0xffffffff, x, 3); }
KERNEL(gone_odd) { T; if (x & 1) return; OUT(0) = __shfl_xor_sync(0xffffffff, x, 1); OUT(1) = __shfl_up_sync(0xffffffff, x, 1); }
KERNEL(gone_votes) {
    T; if (l >= 20) return;
    OUT(0) = __ballot_sync(0xffffffff, x & 1); OUT(1) = __any_sync(0xffffffff, x == 1000); OUT(2) = __all_sync(0xffffffff, x);
    OUT(3) = __activemask();
}
KERNEL(gone_loop) {
    T; unsigned s = 0;
    for (unsigned k = 0; k < 4; k++) {
        if (l >= 28 - 5 * k) return;
        s += __shfl_down_sync((1u << (28 - 5 * k)) - 1, x, 2);
        OUT(k) = s;
    }
}
KERNEL(whole) { T; OUT(0) = __shfl_xor_sync(0xffffffff, x, 16); OUT(1) = __shfl_down_sync(0xffffffff, x, 9); OUT(2) = __shfl_up_sync(0xffffffff, x, 5, 8); OUT(3) = __shfl_sync(0xffffffff, x, x); }

KERNEL(own_half) { T; unsigned m = l < 16 ? 0xffff : 0xffff0000; OUT(0) = __shfl_xor_sync(m, x, 16); OUT(1) = __shfl_down_sync(m, x, 3); }
KERNEL(own_half_parted) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000;
    if (l < 16) x = x * 3 + in[x & 7]; else x = x * 5 + in[x & 15];
    OUT(0) = __shfl_xor_sync(m, x, 16); OUT(1) = __shfl_down_sync(m, x, 3);
}
KERNEL(own_eight) { T; unsigned m = 0xffu << (l & 24); OUT(0) = __shfl_xor_sync(m, x, 8); OUT(1) = __shfl_up_sync(m, x, 3); OUT(2) = __shfl_sync(m, x, 9); }
KERNEL(half_votes) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000;
    OUT(0) = __ballot_sync(m, x & 2); OUT(1) = __any_sync(m, l == 3); OUT(2) = __all_sync(m, l < 16); OUT(3) = __ballot_sync(m, l < 16);
}
KERNEL(half_votes_parted) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000, y = 0;
    if (l < 16) x = x * 3 + in[x & 7]; else x = x * 5 + in[x & 15];
    y = __any_sync(m, l == 3); OUT(0) = __ballot_sync(m, x & 2); OUT(1) = y; OUT(2) = __all_sync(m, l < 16);
}
KERNEL(half_match) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000; int p = 5;
    OUT(0) = __match_any_sync(m, x & 3); OUT(1) = __match_all_sync(m, l < 16, &p); OUT(2) = p;
}
KERNEL(half_match_long) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000; int p = 5;
    OUT(0) = __match_any_sync(m, (unsigned long long)(x & 3) << 32); OUT(1) = __match_all_sync(m, (unsigned long long)(x >> 3), &p); OUT(2) = p;
}
#if __CUDA_ARCH__ >= 800
KERNEL(half_redux) {
    T; unsigned m = l < 16 ? 0xffff : 0xffff0000;
    OUT(0) = __reduce_add_sync(m, x); OUT(1) = __reduce_max_sync(m, x); OUT(2) = __reduce_min_sync(m, (int)x - 1010); OUT(3) = __reduce_xor_sync(m, x);
}
KERNEL(arm_redux) { T; unsigned y = 7; if (l < 12) y = __reduce_add_sync(0xfff, x); else y = __reduce_max_sync(0xfffff000, x); OUT(0) = y; }
KERNEL(gone_redux) { T; if (l >= 20) return; OUT(0) = __reduce_add_sync(0xffffffff, x); OUT(1) = __reduce_and_sync(0xffffffff, x); }
KERNEL(eight_redux) { T; unsigned m = 0xffu << (l & 24); OUT(0) = __reduce_add_sync(m, x); OUT(1) = __reduce_or_sync(m, 1u << l); }
#endif
KERNEL(arm_match) { T; unsigned y = 7; int p = 9; if (l < 12) y = __match_any_sync(0xfff, x & 3); else y = __match_all_sync(0xfffff000, x & 0, &p); OUT(0) = y; OUT(1) = p; }
KERNEL(gone_match) { T; int p; if (l >= 20) return; OUT(0) = __match_any_sync(0xffffffff, x & 3); OUT(1) = __match_all_sync(0xffffffff, x & 0, &p); OUT(2) = p; }
KERNEL(arm_votes) {
    T; unsigned y = 7, z = 8, w = 9;
    if (l < 12) { y = __ballot_sync(0xfff, x & 1); z = __any_sync(0xfff, l == 20); w = __activemask(); }
    else { y = __ballot_sync(0xfffff000, x & 2); z = __all_sync(0xfffff000, l >= 12); w = __activemask(); }
    OUT(0) = y; OUT(1) = z; OUT(2) = w;
}

KERNEL(loop_lengths) {
    T; unsigned n = l & 3, s = x;
    for (unsigned k = 0; k <= n; k++) {
        unsigned m = 0xffffffff;
        if (k > 0) m = 0xeeeeeeee;
        if (k > 1) m = 0xcccccccc;
        if (k > 2) m = 0x88888888;
        s += __shfl_xor_sync(m, s, 1);
    }
    OUT(0) = s;
}
KERNEL(loop_blocks) {
    T; unsigned s = x;
    for (unsigned k = 0; k < 4; k++) {
        if (l >= 8 * (4 - k)) break;
        s += __shfl_down_sync(0xffffffffu >> (8 * k), s, 4);
    }
    OUT(0) = s;
}
KERNEL(loop_gathered) {
    T; unsigned s = x, m = 0xffffffff, k = 0;
    while (true) {
        m = __ballot_sync(m, k <= (x & 7));
        if (k > (x & 7)) break;
        s += __shfl_up_sync(m, s, 1) ^ k;
        k++;
    }
    OUT(0) = s; OUT(1) = m;
}

__device__ unsigned reduced(unsigned mask, unsigned s) {
    for (int offset = 16; offset > 0; offset /= 2) s += __shfl_down_sync(mask, s, offset);
    return s;
}
KERNEL(few_reduced) {
    T; __shared__ unsigned box[32];
    unsigned s = reduced(0xffffffff, x);
    if (l == 0) box[t / 32] = s;
    __syncthreads();
    unsigned ballot = __ballot_sync(0xffffffff, l < 2);
    if (l < 2) { s = box[l] + 1; s = reduced(ballot, s); }
    OUT(0) = s; OUT(1) = ballot;
}
KERNEL(eight_reduced) {
    T; unsigned ballot = __ballot_sync(0xffffffff, l < 8), s = 5;
    if (l < 8) { s = in[l] * 3; s = reduced(ballot, s); }
    OUT(0) = s;
}
KERNEL(odd_reduced) {
    T; unsigned s = 5;
    if (x & 1) { s = in[l] * 3; s = reduced(0xaaaaaaaa, s); }
    OUT(0) = s;
}
KERNEL(after_parting) {
    T; unsigned y = 0;
    for (unsigned k = 0; k < (x & 5); k++) y += in[(x + k) & 31];
    y += __shfl_xor_sync(0xffffffff, y, 7); OUT(0) = y;
    if (l & 2) { y = y * 3; } else { y = in[y & 31]; }
    OUT(1) = __shfl_down_sync(0xffffffff, y, 3); OUT(2) = __activemask();
}
KERNEL(doubles) { T; double d = x; if (l < 16) d = __shfl_xor_sync(0xffff, d, 16); OUT(0) = (unsigned)d; unsigned long long q = (unsigned long long)x << 30; if (l & 8) q = __shfl_down_sync(0xff00ff00, q, 8); OUT(1) = q >> 28; }
KERNEL(arm_full) { T; unsigned y = 1; if (x & 16) { y = in[x & 7]; y += __shfl_xor_sync(0xffffffff, x, 16); } OUT(0) = y; }
KERNEL(loop_full) { T; unsigned s = x; for (unsigned k = 0; k <= (l & 3); k++) s += __shfl_xor_sync(0xffffffff, s, 1) + in[s & 31]; OUT(0) = s; }
