// Sums of groups of four lanes. Bad: every fourth lane adds up all four. Good: all add by shuffles,
// and every fourth lane stores.
// expect: divergence on gtx580 h200
// cutrace: badGroups<<<4, 128>>>(sums:i32[128], in:i32[512]=arange)
// cutrace: goodGroups<<<4, 128>>>(sums, in)

__global__ void badGroups(int *sums, const int *in)
{
    __shared__ int held[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    held[threadIdx.x] = in[i];
    __syncthreads();
    for (int step = 1; step < 8; step *= 2) {
        if (threadIdx.x % (2 * step) == 0)
            held[threadIdx.x] += held[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x % 32 == 0)
        sums[i / 4] = held[threadIdx.x];
}

__global__ void goodGroups(int *sums, const int *in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    int sum = in[i];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (threadIdx.x % 4 == 0)
        sums[i / 4] = sum;
}
