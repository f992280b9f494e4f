// Four ways to work on a word. Bad: the thread's number chooses. Good: the warp's number chooses.
// expect: divergence on 8800gtx gtx580 h200
// cutrace: badWays<<<4, 128>>>(out:i32[512], 9)
// cutrace: goodWays<<<4, 128>>>(out, 9)

__device__ int work(int way, int value, int rounds)
{
    switch (way) {
    case 0:
        for (int k = 0; k < rounds; k++) value = value * 3 + k;
        return value;
    case 1:
        for (int k = 0; k < rounds; k++) value = (value ^ k) * 5;
        return value;
    case 2:
        for (int k = 0; k < rounds; k++) value = value / (k + 2) + 7;
        return value;
    default:
        for (int k = 0; k < rounds; k++) value = value % (k + 3) - 1;
        return value;
    }
}

__global__ void badWays(int *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work(threadIdx.x % 4, i, rounds);
}

__global__ void goodWays(int *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work(threadIdx.x / 32, i, rounds);
}
