// expect: async_copy on h100 h200
// Each block adds up 32 tiles: it waits for each, or copies the next one meanwhile.
// cutrace: waiting<<<264, 256>>>(out:f32[67584], in:f32[2162688]=random:1)
// cutrace: copying<<<264, 256>>>(out, in)

__global__ void waiting(float *out, const float *in)
{
    __shared__ float tile[256];
    float sum = 0;
    for (int round = 0; round < 32; round++) {
        tile[threadIdx.x] = in[(round * gridDim.x + blockIdx.x) * 256 + threadIdx.x];
        __syncthreads();
        sum += tile[255 - threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

__device__ void copy(float *to, const float *from)
{
    unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from));
    asm volatile("cp.async.commit_group;");
}

__global__ void copying(float *out, const float *in)
{
    __shared__ float tile[2][256];
    float sum = 0;
    copy(&tile[0][threadIdx.x], in + blockIdx.x * 256 + threadIdx.x);
    for (int round = 0; round < 32; round++) {
        int next = min(round + 1, 31);
        copy(&tile[(round + 1) % 2][threadIdx.x],
             in + (next * gridDim.x + blockIdx.x) * 256 + threadIdx.x);
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        sum += tile[round % 2][255 - threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
