// Even and odd threads do different work: every warp runs both arms, half its lanes idle in each.
// cutrace: byThread<<<4, 128>>>(out:i32[512], 10)

__global__ void byThread(int *out, int rounds)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int value = id;
    if (id % 2 == 0)
        for (int k = 0; k < rounds; k++)
            value = (value * 3 + k) % 1009;
    else
        for (int k = 0; k < rounds; k++)
            value = (value * 5 + k) % 2003;
    out[id] = value;
}
