// The same for any number of bins: the launch says how much shared memory they take.
// cutrace: histogramDynamic<<<16, 256, 512*4>>>(bins:u32[512]=zeros,
//     in:i32[65536]=random:7, 65536, 512)

__global__ void histogramDynamic(unsigned *bins, const int *in, int n, int count)
{
    extern __shared__ unsigned own[];
    for (int bin = threadIdx.x; bin < count; bin += blockDim.x)
        own[bin] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i] % count], 1);
    __syncthreads();

    for (int bin = threadIdx.x; bin < count; bin += blockDim.x)
        atomicAdd(&bins[bin], own[bin]);
}
