// Multiply rows by a factor that lies in memory. Bad: the store may change the factor for all that
// the compiler knows, and it is loaded in each turn. Good: it is loaded once.
// expect: repeated_address on gtx580 k20 h200
// cutrace: badRows<<<16, 128>>>(out:f32[65536], in:f32[65536]=arange, factor:f32[1]=arange, 32)
// cutrace: goodRows<<<16, 128>>>(out, in, factor, 32)

__global__ void badRows(float *out, const float *in, const float *factor, int rows)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, width = gridDim.x * blockDim.x;
    for (int row = 0; row < rows; row++)
        out[row * width + i] = *factor * in[row * width + i];
}

__global__ void goodRows(float *__restrict__ out, const float *__restrict__ in,
                         const float *__restrict__ factor, int rows)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, width = gridDim.x * blockDim.x;
    for (int row = 0; row < rows; row++)
        out[row * width + i] = *factor * in[row * width + i];
}
