// Number the elements by way of shared memory: how many blocks fit on an SM is the question.
// cutrace: number<<<60, 100, 400>>>(out_small:f32[6000])
// cutrace: number<<<60, 256, 5120>>>(out_shared:f32[15360])
// cutrace: number<<<60, 512, 2048>>>(out_large:f32[30720])

__global__ void number(float *out)
{
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i;
    __syncthreads();
    out[i] = part[threadIdx.x];
}
