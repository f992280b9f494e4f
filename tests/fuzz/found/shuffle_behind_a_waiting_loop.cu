// values: lanes that left a loop which an atomic may end shuffled without the others
// launch: k<<<(1, 1, 1), (64, 1, 1)>>> with values 0
extern "C" __global__ void k(unsigned *out_u, unsigned *own)
{
    int t = threadIdx.x;
    unsigned u = 1000 + t;
    for (int j = 0; j < 16 * (t & 31); j++) {
        u = atomicAdd(&own[t * 4], 3u);
        if (u > 4000000000u)
            break;
    }
    out_u[t] = __shfl_xor_sync(0xffffffff, u, 1);
    out_u[t + 64] = __ballot_sync(0xffffffff, u & 1);
}
