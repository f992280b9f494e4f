// Sum a block's numbers, step 1: neighbours first, by threads that are multiples of 2, 4, 8...
// cutrace: reduceDivergent<<<128, 128>>>(sums:i32[128], in:i32[16384]=arange)

__global__ void reduceDivergent(int *sums, const int *in)
{
    __shared__ int part[128];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();

    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        if (t % (2 * distance) == 0)
            part[t] += part[t + distance];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
