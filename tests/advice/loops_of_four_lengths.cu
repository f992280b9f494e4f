// Loops of four lengths. Bad: by thread. Good: by warp.
// expect: divergence on 8800gtx gtx580 gtx980 h200
// cutrace: byThread<<<8, 128>>>(x:f32[1024]=arange)
// cutrace: byWarp<<<8, 128>>>(x)

__global__ void byThread(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = (threadIdx.x % 4) * 8;
    float v = x[i];
    for (int j = 0; j < n; ++j)
        v = v * 0.5f + j;
    x[i] = v;
}

__global__ void byWarp(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = (threadIdx.x / 32) * 8;
    float v = x[i];
    for (int j = 0; j < n; ++j)
        v = v * 0.5f + j;
    x[i] = v;
}
