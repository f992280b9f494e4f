// Smooth a signal. Bad: the output begins one word into its array. Good: each thread reads its own
// word and both neighbours, of which two are bound to begin beside a boundary: from 1.2 on that is
// little, before it costs so much that a texture is told.
// expect: misaligned on gtx280 gtx580 h200
// cutrace: badShift<<<8, 128>>>(shifted:f32[1056], in:f32[1056]=arange)
// cutrace: goodSmooth<<<8, 128>>>(smooth:f32[1056], in)

__global__ void badShift(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i + 1] = in[i] * 0.5f;
}

__global__ void goodSmooth(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 32;
    if (i >= 1055)
        return;
    out[i] = 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1];
}
