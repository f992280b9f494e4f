// Lengths of vectors. Bad: three words each, one after the other. Good: four, loaded at once.
// expect: uncoalesced on 8800gtx gtx580 h200
// cutrace: badThree<<<8, 128>>>(out:f32[1024], three:f32[1024,3]=arange)
// cutrace: goodFour<<<8, 128>>>(out, four:f32[1024,4]=arange)

__global__ void badThree(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];
    out[i] = sqrtf(x * x + y * y + z * z);
}

__global__ void goodFour(float *out, const float4 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    out[i] = sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
}
