// A histogram of bytes. Bad: every thread counts in global memory. Good: each block counts in shared
// memory first, and adds its counts once.
// expect: contention on gtx580 gtx980 h200
// cutrace: badHistogram<<<8, 256>>>(bins:u32[256], data:u8[32768]=random:7, 32768)
// cutrace: goodHistogram<<<8, 256>>>(bins, data, 8192)

__global__ void badHistogram(unsigned *bins, const unsigned char *data, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}

__global__ void goodHistogram(unsigned *bins, const unsigned char *data, int n)
{
    __shared__ unsigned held[256];
    held[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&held[data[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], held[threadIdx.x]);
}
