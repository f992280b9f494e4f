// Transpose tiles whose rows are one word longer, so that a column lies in as many banks as rows.
// cutrace: transposePadded<16><<<(8, 4), (16, 16)>>>(out:f32[128,64],
//     in:f32[64,128]=arange, 128, 64)
// cutrace: transposePadded<32><<<(4, 2), (32, 32)>>>(out, in, 128, 64)
// cutrace: transposePadded<32><<<(3, 2), (32, 32)>>>(ragged_out:f32[72,40],
//     ragged:f32[40,72]=arange, 72, 40)

template <int EDGE>
__global__ void transposePadded(float *out, const float *in, int width, int height)
{
    __shared__ float tile[EDGE][EDGE + 1];
    int x = blockIdx.x * EDGE + threadIdx.x;
    int y = blockIdx.y * EDGE + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();

    x = blockIdx.y * EDGE + threadIdx.x;
    y = blockIdx.x * EDGE + threadIdx.y;
    if (x < height && y < width)
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
