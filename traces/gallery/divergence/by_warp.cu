// The same work, renumbered: a warp takes 32 even numbers, the next one the odd ones between them.
// cutrace: byWarp<<<4, 128>>>(out:i32[512], 10)

__global__ void byWarp(int *out, int rounds)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int warp = thread / warpSize;
    int id = (thread - warpSize * ((warp + 1) / 2)) * 2 + warp % 2;
    int value = id;
    if (warp % 2 == 0)
        for (int k = 0; k < rounds; k++)
            value = (value * 3 + k) % 1009;
    else
        for (int k = 0; k < rounds; k++)
            value = (value * 5 + k) % 2003;
    out[id] = value;
}
