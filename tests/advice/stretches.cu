// A long array. Bad: a stretch for each thread. Good: neighbours take neighbours, and stride over
// the grid.
// expect: uncoalesced on 8800gtx gtx580 gtx980 h200
// cutrace: chunks<<<4, 64>>>(x:f32[8192]=arange, 8192)
// cutrace: gridStride<<<4, 64>>>(x, 8192)

__global__ void chunks(float *x, int n)
{
    int per = n / (gridDim.x * blockDim.x), first = (blockIdx.x * blockDim.x + threadIdx.x) * per;
    for (int i = first; i < first + per; ++i)
        x[i] = x[i] * 2 + 1;
}

__global__ void gridStride(float *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = x[i] * 2 + 1;
}
