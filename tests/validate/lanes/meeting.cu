// Lanes that are named in one mask and come to it from several places: they wait for each other.

#define KERNEL(name) extern "C" __global__ void name(const unsigned *in, unsigned *out)
#define T unsigned t = threadIdx.x, l = t & 31, x = in[t]
#define OUT(k) out[(k) * blockDim.x + t]
#define ALL 0xffffffff

KERNEL(meet_shuffles) { T; unsigned y; if (x & 16) { y = in[x & 7]; y += __shfl_xor_sync(ALL, x, 16); } else { y = in[x & 15] * 3; y ^= __shfl_xor_sync(ALL, x + 100, 16); } OUT(0) = y; }
KERNEL(meet_votes) { T; unsigned y; if (x & 16) y = __ballot_sync(ALL, x & 1); else y = __ballot_sync(ALL, x & 2) + in[x & 7]; OUT(0) = y; }
KERNEL(meet_three) {
    T; unsigned y, w = x % 3;
    if (w == 0) { y = in[x & 7]; y += __shfl_down_sync(ALL, x, 1); }
    else if (w == 1) { y = in[x & 15] * 3; y ^= __shfl_down_sync(ALL, x + 100, 1); }
    else { y = in[x & 3] * 5; y -= __shfl_down_sync(ALL, x + 200, 1); }
    OUT(0) = y;
}
KERNEL(meet_twice) {
    T; unsigned y, z;
    if (x & 1) { y = __shfl_xor_sync(ALL, x, 1); y += in[y & 7]; z = __shfl_xor_sync(ALL, y, 2); z ^= in[z & 7]; }
    else { y = __shfl_xor_sync(ALL, x + 100, 1) * 3; z = __shfl_xor_sync(ALL, y + 7, 2) - in[y & 7]; }
    OUT(0) = y; OUT(1) = z;
}
KERNEL(meet_loop) {
    T; unsigned y = x;
    if (x & 1) { for (unsigned k = 0; k < 4; k++) y += __shfl_xor_sync(ALL, y, 1) ^ in[y & 7]; }
    else { y ^= __shfl_xor_sync(ALL, y, 1); y *= 3; y ^= __shfl_xor_sync(ALL, y, 1); y += in[y & 7]; y ^= __shfl_xor_sync(ALL, y, 1); y *= 5; y ^= __shfl_xor_sync(ALL, y, 1); }
    OUT(0) = y;
}
KERNEL(meet_any) { T; unsigned y, z; if (x & 1) { y = __any_sync(ALL, x == 1001); z = __all_sync(ALL, x > 0) + in[x & 7]; } else { y = __any_sync(ALL, 0) + 10; z = __all_sync(ALL, x != 1002) * 3 + in[x & 3]; } OUT(0) = y; OUT(1) = z; }
KERNEL(meet_match) { T; unsigned y; int p = 4; if (x & 1) y = __match_any_sync(ALL, x & 4) + in[x & 7]; else y = __match_any_sync(ALL, x & 6) ^ in[x & 3]; OUT(0) = y; OUT(1) = p; }
KERNEL(meet_redux) { T; unsigned y; if (x & 1) y = __reduce_add_sync(ALL, x) + in[x & 7]; else y = __reduce_add_sync(ALL, x * 100) * 3 + in[x & 3]; OUT(0) = y; }
KERNEL(meet_memory) {
    T; __shared__ unsigned box[64]; box[t] = 5; __syncwarp();
    unsigned y = 1;
    if (l == 3) { box[t / 32 * 32] = x * 7; __syncwarp(); y = 2 + in[x & 3]; }
    else { __syncwarp(); y = box[t / 32 * 32] + in[x & 7]; }
    OUT(0) = y;
}
KERNEL(meet_memory_back) {
    T; __shared__ unsigned box[64]; box[t] = 5; __syncwarp();
    unsigned y = 1;
    if (l != 3) { __syncwarp(); y = box[t / 32 * 32 + 3] + in[x & 7]; box[t] = y; __syncwarp(); }
    else { box[t] = x * 7 + in[x & 3]; __syncwarp(); __syncwarp(); y = box[t - 1] + box[t + 1]; }
    OUT(0) = y;
}
KERNEL(meet_some) {
    T; unsigned y = 9;
    if (l < 8) y = __shfl_xor_sync(0xffff, x, 8) + in[x & 7];
    else if (l < 16) y = __shfl_xor_sync(0xffff, x + 100, 8) * 3 + in[x & 3];
    else if (l < 24) y = __shfl_xor_sync(0xffff0000, x + 200, 8) + in[x & 1];
    else y = __shfl_xor_sync(0xffff0000, x + 300, 8) * 5;
    OUT(0) = y;
}
KERNEL(meet_late) {
    T; unsigned y = x, z;
    if (l < 8) { for (unsigned k = 0; k < (x & 7); k++) y += in[(y + k) & 31]; z = __shfl_xor_sync(ALL, y, 8); }
    else { if (l & 1) y = in[x & 31] * 3; z = __shfl_xor_sync(ALL, y + 1, 8) + 5; }
    OUT(0) = y; OUT(1) = z;
}
KERNEL(meet_nested) {
    T; unsigned y;
    if (l < 16) { if (l < 8) y = __shfl_sync(ALL, x, 31 - l); else y = __shfl_sync(ALL, x + 100, 31 - l) + in[x & 3]; }
    else { if (l < 24) y = __shfl_sync(ALL, x + 200, 31 - l) * 2; else y = __shfl_sync(ALL, x + 300, 31 - l) * 3 + in[x & 7]; }
    OUT(0) = y;
}
KERNEL(meet_gone) {
    T; unsigned y;
    if (l >= 28) { OUT(0) = 77; return; }
    if (x & 1) y = __shfl_xor_sync(ALL, x, 3) + in[x & 7]; else y = __shfl_xor_sync(ALL, x + 100, 3) * 3 + in[x & 3];
    OUT(0) = y;
}
KERNEL(meet_break) {
    T; unsigned s = x;
    for (unsigned k = 0; k < 6; k++) { s += __shfl_down_sync(ALL, s, 1); if ((x & 3) == k) break; s ^= in[s & 31]; }
    OUT(0) = s;
}
KERNEL(meet_calls) {
    T; unsigned y = x;
    if (x & 1) { for (unsigned k = 16; k > 0; k /= 2) y += __shfl_xor_sync(ALL, y, k); y += in[y & 7]; }
    else { for (unsigned k = 16; k > 0; k /= 2) y = max(y, __shfl_xor_sync(ALL, y, k)); y ^= in[y & 7]; }
    OUT(0) = y;
}
