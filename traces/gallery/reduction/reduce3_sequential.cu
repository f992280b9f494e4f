// Step 3: the upper half onto the lower one, again and again: neighbours touch neighbours.
// cutrace: reduceSequential<<<128, 128>>>(sums:i32[128], in:i32[16384]=arange)

__global__ void reduceSequential(int *sums, const int *in)
{
    __shared__ int part[128];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2) {
        if (t < distance)
            part[t] += part[t + distance];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
