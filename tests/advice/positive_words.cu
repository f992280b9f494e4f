// Count numbers above a half. Bad: each warp adds to the one count. Good: each block does.
// expect: contention on h100 h200
// cutrace: badCount<<<256, 256>>>(in:f32[65536]=random:1, found:i32[1])
// cutrace: goodCount<<<256, 256>>>(in, found)

__global__ void badCount(const float *in, int *found)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] > 0.5f) atomicAdd(found, 1);
}

__global__ void goodCount(const float *in, int *found)
{
    int mine = __syncthreads_count(in[blockIdx.x * blockDim.x + threadIdx.x] > 0.5f);
    if (threadIdx.x == 0) atomicAdd(found, mine);
}
