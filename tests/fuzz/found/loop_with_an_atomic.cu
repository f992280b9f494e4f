// array fault: a false deadlock, for an atomic decides a branch in a loop whose trips are known
// seed 0
// launch: k<<<(1, 1, 1), (32, 1, 1)>>> with values 0
extern "C" __global__ void k(int *out_i, unsigned *own)
{
    int t = threadIdx.x;
    int x = t;
    for (int k = 0; k < 100; k++) {
        if (t & 1) {
            for (int j = 0; j < 9; j++) {
                unsigned u = atomicInc(&own[t], 5u);
                if (u & 1) { x += 2; out_i[t] = x; }
            }
        } else {
            x += 3;
        }
    }
    for (int k = 16; k > 0; k >>= 1) x += __shfl_down_sync(0xffffffffu, x, k);
    out_i[t] = x;
}
