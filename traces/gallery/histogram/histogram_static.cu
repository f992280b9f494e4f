// Count values in 256 bins: first the block's own in shared memory, then into the common ones.
// cutrace: histogramStatic<<<16, 256>>>(bins:u32[256]=zeros, in:i32[65536]=random:7, 65536)

__global__ void histogramStatic(unsigned *bins, const int *in, int n)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i] % 256], 1);
    __syncthreads();

    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
