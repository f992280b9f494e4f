// Lengths of points of four words, many times. Bad: each thread loads its words one by one. Good: it
// loads a point at once.
// expect: vector_loads on h200
// cutrace: badLengths<<<64, 128>>>(out:f32[8192], in:f32[32768]=arange)
// cutrace: goodLengths<<<64, 128>>>(out, in)

__global__ void badLengths(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[4 * i], y = in[4 * i + 1], z = in[4 * i + 2], w = in[4 * i + 3];
    out[i] = x * x + y * y + z * z + w * w;
}

__global__ void goodLengths(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 p = ((const float4 *)in)[i];
    out[i] = p.x * p.x + p.y * p.y + p.z * p.z + p.w * p.w;
}
