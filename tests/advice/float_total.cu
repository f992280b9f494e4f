// Total of floats. Bad: every lane adds to it, and floats cannot be combined by the assembler. Good:
// shuffles first.
// expect: contention on gtx580 h200
// cutrace: badTotal<<<8, 128>>>(total:f32[1]=zeros, in:f32[1024]=arange)
// cutrace: goodTotal<<<8, 128>>>(total, in)

__global__ void badTotal(float *total, const float *in)
{
    atomicAdd(total, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

__global__ void goodTotal(float *total, const float *in)
{
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum);
}
