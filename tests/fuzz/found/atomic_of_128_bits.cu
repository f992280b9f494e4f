// compiled killed: old values of 128 bits of more than 16 lanes were left behind the end of a stack
// launch: k<<<(1, 1, 1), (32, 1, 1)>>> with values 0
extern "C" __global__ void k(unsigned *out_u, unsigned *own)
{
    out_u[threadIdx.x] = cas_128(&own[threadIdx.x * 4], 77u, threadIdx.x, 5u);
}
