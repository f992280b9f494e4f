// Four cases. Bad: by thread. Good: by warp.
// expect: divergence on 8800gtx gtx580 gtx980 h200
// cutrace: bad<<<8, 128>>>(x:f32[1024]=arange)
// cutrace: good<<<8, 128>>>(x)

__device__ float work(float v, int k)
{
    for (int i = 0; i < 5; ++i)
        v = v * 1.5f + k;
    return v;
}

__global__ void bad(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    switch (threadIdx.x & 3) {
    case 0:
        x[i] = fabsf(work(x[i], 1));
        break;
    case 1:
        x[i] = work(x[i], 2) / 3;
        break;
    case 2:
        x[i] = sqrtf(work(x[i], 4));
        break;
    default:
        x[i] = expf(x[i]);
        break;
    }
}

__global__ void good(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    switch (threadIdx.x >> 5) {
    case 0:
        x[i] = fabsf(work(x[i], 1));
        break;
    case 1:
        x[i] = work(x[i], 2) / 3;
        break;
    case 2:
        x[i] = sqrtf(work(x[i], 4));
        break;
    default:
        x[i] = expf(x[i]);
        break;
    }
}
