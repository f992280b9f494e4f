// Weights in constant memory. Bad: one for each thread. Good: one for each block.
// expect: divergent_constant on 8800gtx gtx580 gtx980 h200
// cutrace: bad<<<8, 128>>>(out:f32[1024], in:f32[1024]=arange)
// cutrace: good<<<8, 128>>>(out, in)

__constant__ float w[128] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ void bad(float *out, const float *in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = in[i] * w[threadIdx.x];
}

__global__ void good(float *out, const float *in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = in[i] * w[blockIdx.x];
}
