// Step 5: the last warp goes on alone, without loop and block-wide barriers.
// cutrace: reduceLastWarp<<<64, 128>>>(sums:i32[64], in:i32[16384]=arange)

__device__ void addAbove(volatile int *part, unsigned t, unsigned distance)
{
    int sum = part[t] + part[t + distance];
    __syncwarp();
    part[t] = sum;
    __syncwarp();
}

__global__ void reduceLastWarp(int *sums, const int *in)
{
    __shared__ int part[128];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x * 2 + t;
    part[t] = in[i] + in[i + blockDim.x];
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 32; distance /= 2) {
        if (t < distance)
            part[t] += part[t + distance];
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
