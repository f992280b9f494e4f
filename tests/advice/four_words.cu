// A copy word by word, and four words at once.
// expect: nothing on 8800gtx gtx580 gtx980 h200
// cutrace: scalar<<<32, 128>>>(out:f32[4096], in:f32[4096]=arange)
// cutrace: vector<<<8, 128>>>(out, in)

__global__ void scalar(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 2;
}

__global__ void vector(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = reinterpret_cast<const float4 *>(in)[i];
    v.x *= 2;
    v.y *= 2;
    v.z *= 2;
    v.w *= 2;
    reinterpret_cast<float4 *>(out)[i] = v;
}
