// Copy an array with every address moved by the same number of words.
// cutrace: offsetCopy<<<64, 256>>>(out:f32[16416], in:f32[16416]=arange, 0)
// cutrace: offsetCopy<<<64, 256>>>(out, in, 1)
// cutrace: offsetCopy<<<64, 256>>>(out, in, 8)
// cutrace: offsetCopy<<<64, 256>>>(out, in, 16)
// cutrace: offsetCopy<<<64, 256>>>(out, in, 32)

__global__ void offsetCopy(float *out, const float *in, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + offset;
    out[i] = in[i];
}
