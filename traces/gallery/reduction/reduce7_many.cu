// Step 7: each thread first adds many numbers, a grid apart: fewer blocks, fewer steps in all.
// cutrace: reduceMany<128><<<8, 128>>>(sums:i32[8], in:i32[16384]=arange, 16384)

__device__ void addAbove(volatile int *part, unsigned t, unsigned distance)
{
    int sum = part[t] + part[t + distance];
    __syncwarp();
    part[t] = sum;
    __syncwarp();
}

template <unsigned THREADS>
__global__ void reduceMany(int *sums, const int *in, unsigned n)
{
    __shared__ int part[THREADS];
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = blockIdx.x * THREADS + t; i < n; i += gridDim.x * THREADS)
        sum += in[i];
    part[t] = sum;
    __syncthreads();

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
