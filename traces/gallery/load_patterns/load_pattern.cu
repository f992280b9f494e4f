// One warp loads 32 words: in order, permuted, one word off, 32 words apart, all the same one.
// cutrace: loadPattern<<<1, 32>>>(out:f32[32], in:f32[1024]=arange, 1, 0, 0)
// cutrace: loadPattern<<<1, 32>>>(out, in, 1, 13, 0)
// cutrace: loadPattern<<<1, 32>>>(out, in, 1, 0, 1)
// cutrace: loadPattern<<<1, 32>>>(out, in, 32, 0, 0)
// cutrace: loadPattern<<<1, 32>>>(out, in, 0, 0, 0)

__global__ void loadPattern(float *out, const float *in, int stride, int flipped, int offset)
{
    int lane = threadIdx.x;
    out[lane] = in[(lane ^ flipped) * stride + offset];
}
