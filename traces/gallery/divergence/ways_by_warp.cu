// The same four kinds of work, dealt out warp by warp: a warp takes every fourth number.
// cutrace: waysByWarp<<<4, 128>>>(out:i32[512], 10)

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

__global__ void waysByWarp(int *out, int rounds)
{
    const int ways = 4;
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int warp = thread / warpSize;
    int lane = thread % warpSize;
    int id = warp / ways * ways * warpSize + lane * ways + warp % ways;
    out[id] = work(warp % ways, id, rounds);
}
