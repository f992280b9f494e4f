// Sum the neighbours of each point of a grid, two away at most. Bad: tiles of 16 x 16 points are
// loaded for sums of 12 x 12. Good: tiles of 20 x 80 for 16 x 64, each thread four of them.
// expect: halo on 8800gtx
// cutrace: badEdges<<<(5, 5), (16, 16)>>>(out:f32[64,64], in:f32[68,80]=arange)
// cutrace: goodEdges<<<(1, 4), (64, 4)>>>(out, in)

__global__ void badEdges(float *out, const float *in)
{
    __shared__ float tile[16][17];
    int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * 12, top = blockIdx.y * 12;
    tile[y][x] = in[(top + y) * 80 + left + x];
    __syncthreads();
    if (x >= 12 || y >= 12) return;
    float sum = 0;
    for (int d = 0; d < 5; d++) sum += tile[y + d][x + 2] + tile[y + 2][x + d];
    out[(top + y) * 64 + left + x] = sum;
}

__global__ void goodEdges(float *out, const float *in)
{
    __shared__ float tile[20][81];
    int x = threadIdx.x, top = blockIdx.y * 16;
    for (int y = threadIdx.y; y < 20; y += 4)
        for (int at = x; at < 80; at += 64) tile[y][at] = in[(top + y) * 80 + at];
    __syncthreads();
    for (int y = threadIdx.y; y < 16; y += 4) {
        float sum = 0;
        for (int d = 0; d < 5; d++) sum += tile[y + d][x + 2] + tile[y + 2][x + d];
        out[(top + y) * 64 + x] = sum;
    }
}
