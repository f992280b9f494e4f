// Step 2: the same additions by neighbouring threads, whose words lie ever farther apart.
// cutrace: reduceStrided<<<128, 128>>>(sums:i32[128], in:i32[16384]=arange)

__global__ void reduceStrided(int *sums, const int *in)
{
    __shared__ int part[128];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();

    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        unsigned i = 2 * distance * t;
        if (i < blockDim.x)
            part[i] += part[i + distance];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
