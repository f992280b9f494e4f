// Transpose a matrix element by element: the reads follow the rows, the writes the columns.
// cutrace: transposeNaive<<<(8, 4), (16, 16)>>>(out:f32[128,64], in:f32[64,128]=arange, 128, 64)
// cutrace: transposeNaive<<<(4, 2), (32, 32)>>>(out, in, 128, 64)
// cutrace: transposeNaive<<<(3, 2), (32, 32)>>>(ragged_out:f32[72,40],
//     ragged:f32[40,72]=arange, 72, 40)

__global__ void transposeNaive(float *out, const float *in, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}
