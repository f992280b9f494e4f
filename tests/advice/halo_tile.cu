// Smooth a picture through tiles with an edge of neighbours. Bad: one row of the tile has 16 words
// and is read by columns. Good: read by rows; the tile's edge is loaded by the threads at its edge.
// expect: bank_conflicts on 8800gtx gtx580 h200
// cutrace: badHalo<<<(4, 4), (16, 16)>>>(out:f32[64,64], in:f32[64,64]=arange)
// cutrace: goodHalo<<<(2, 8), (32, 8)>>>(out, in)

__global__ void badHalo(float *out, const float *in)
{
    __shared__ float tile[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * 64 + x];
    __syncthreads();
    float left = tile[threadIdx.x][threadIdx.y > 0 ? threadIdx.y - 1 : 0];
    out[y * 64 + x] = left + tile[threadIdx.x][threadIdx.y];
}

__global__ void goodHalo(float *out, const float *in)
{
    __shared__ float tile[8][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x + 1] = in[y * 64 + x];
    if (threadIdx.x == 0)
        tile[threadIdx.y][0] = x > 0 ? in[y * 64 + x - 1] : 0;
    if (threadIdx.x == 31)
        tile[threadIdx.y][33] = x < 63 ? in[y * 64 + x + 1] : 0;
    __syncthreads();
    float *here = &tile[threadIdx.y][threadIdx.x];
    out[y * 64 + x] = 0.25f * here[0] + 0.5f * here[1] + 0.25f * here[2];
}
