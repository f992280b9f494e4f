// A filter of 17 weights from global memory, and from a stretch of shared memory.
// expect: nothing on gtx580 gtx980 h200
// cutrace: conv<<<16, 128>>>(out:f32[2048], in:f32[2064]=random:1)
// cutrace: convShared<<<16, 128>>>(out, in)

__constant__ float k[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};
__global__ void conv(float *out, const float *__restrict__ in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = 0;
    for (int j = 0; j < 17; ++j)
        s += k[j] * in[i + j];
    out[i] = s;
}

__global__ void convShared(float *out, const float *__restrict__ in)
{
    __shared__ float t[144];
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = 0;
    t[threadIdx.x] = in[i];
    if (threadIdx.x < 16)
        t[128 + threadIdx.x] = in[i + 128];
    __syncthreads();
    for (int j = 0; j < 17; ++j)
        s += k[j] * t[threadIdx.x + j];
    out[i] = s;
}
