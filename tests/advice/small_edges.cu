// Blocks of 16 x 16 threads. Bad: a branch by the parity of the column. Good: branches at both ends
// of a row, for its edges.
// expect: divergence on 8800gtx gtx580 h200
// cutrace: badParity<<<(4, 4), (16, 16)>>>(out:f32[64,64], 4)
// cutrace: goodEdges<<<(4, 4), (16, 16)>>>(out, 4)

__global__ void badParity(float *out, int rounds)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float value = x;
    if (threadIdx.x % 2)
        for (int k = 0; k < rounds; k++) value = value * 0.5f + y;
    else
        for (int k = 0; k < rounds; k++) value = value * 0.3f - y;
    out[y * 64 + x] = value;
}

__global__ void goodEdges(float *out, int rounds)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float value = x;
    if (threadIdx.x == 0 || threadIdx.x == 15)
        for (int k = 0; k < rounds; k++) value = value * 0.5f + y;
    out[y * 64 + x] = value;
}
