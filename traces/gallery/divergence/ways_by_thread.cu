// Four kinds of work, dealt out thread by thread: every warp runs all four arms.
// cutrace: waysByThread<<<4, 128>>>(out:i32[512], 10)

__device__ int work(int kind, int value, int rounds)
{
    if (kind == 0)
        for (int k = 0; k < rounds; k++)
            value = (value * 3 + k) % 1009;
    else if (kind == 1)
        for (int k = 0; k < rounds; k++)
            value = (value * 5 + k) % 2003;
    else if (kind == 2)
        for (int k = 0; k < rounds; k++)
            value = (value * 7 + k) % 3001;
    else
        for (int k = 0; k < rounds; k++)
            value = (value * 11 + k) % 4001;
    return value;
}

__global__ void waysByThread(int *out, int rounds)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    out[id] = work(id % 4, id, rounds);
}
