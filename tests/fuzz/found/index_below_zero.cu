// array fault: an index that goes below zero in 32 bits and comes back kept its carry (needle)
// launch: k<<<(1, 1, 1), (16, 1, 1)>>> with values 0
extern "C" __global__ void k(int *out_i, const int *in_i)
{
    __shared__ int table[17][17];
    int t = threadIdx.x;
    for (int i = t; i < 17 * 17; i += 16)
        table[i / 17][i % 17] = in_i[i];
    __syncthreads();
    for (int m = 0; m < 16; m++) {
        if (t <= m)
            table[m - t + 1][t + 1] = table[m - t][t] ^ table[m - t + 1][t] ^ table[m - t][t + 1];
        __syncthreads();
    }
    for (int m = 14; m >= 0; m--) {
        if (t <= m)
            table[16 - t][t + 16 - m] ^= table[15 - t][t + 15 - m];
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        out_i[t * 8 + i] = table[t + 1][2 * i + 1];
}
