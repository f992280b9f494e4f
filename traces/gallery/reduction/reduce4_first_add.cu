// Step 4: each thread adds two numbers while it loads them: half the blocks do.
// cutrace: reduceFirstAdd<<<64, 128>>>(sums:i32[64], in:i32[16384]=arange)

__global__ void reduceFirstAdd(int *sums, const int *in)
{
    __shared__ int part[128];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x * 2 + t;
    part[t] = in[i] + in[i + blockDim.x];
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2) {
        if (t < distance)
            part[t] += part[t + distance];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
