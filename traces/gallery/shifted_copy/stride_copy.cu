// Copy every n-th word of an array.
// cutrace: strideCopy<<<64, 256>>>(out:f32[524288], in:f32[524288]=arange, 1)
// cutrace: strideCopy<<<64, 256>>>(out, in, 2)
// cutrace: strideCopy<<<64, 256>>>(out, in, 8)
// cutrace: strideCopy<<<64, 256>>>(out, in, 16)
// cutrace: strideCopy<<<64, 256>>>(out, in, 32)

__global__ void strideCopy(float *out, const float *in, int stride)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    out[i] = in[i];
}
