// Step 6: the block's size is known to the compiler, and no loop is left.
// cutrace: reduceUnrolled<128><<<64, 128>>>(sums:i32[64], in:i32[16384]=arange)

__device__ void addAbove(volatile int *part, unsigned t, unsigned distance)
{
    int sum = part[t] + part[t + distance];
    __syncwarp();
    part[t] = sum;
    __syncwarp();
}

template <unsigned THREADS>
__global__ void reduceUnrolled(int *sums, const int *in)
{
    __shared__ int part[THREADS];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * THREADS * 2 + t;
    part[t] = in[i] + in[i + THREADS];
    __syncthreads();

    if (THREADS >= 512) {
        if (t < 256)
            part[t] += part[t + 256];
        __syncthreads();
    }
    if (THREADS >= 256) {
        if (t < 128)
            part[t] += part[t + 128];
        __syncthreads();
    }
    if (THREADS >= 128) {
        if (t < 64)
            part[t] += part[t + 64];
        __syncthreads();
    }
    if (t < 32) {
        addAbove(part, t, 32);
        addAbove(part, t, 16);
        addAbove(part, t, 8);
        addAbove(part, t, 4);
        addAbove(part, t, 2);
        addAbove(part, t, 1);
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
