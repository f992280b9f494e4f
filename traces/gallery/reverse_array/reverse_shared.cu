// Reverse each block's piece in shared memory, so that both global accesses run forwards.
// cutrace: reverseShared<<<1024, 256>>>(out:i32[262144], in:i32[262144]=arange)

__global__ void reverseShared(int *out, const int *in)
{
    __shared__ int piece[256];
    int last = blockDim.x - 1;

    piece[last - threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();

    int mirrored = gridDim.x - 1 - blockIdx.x;
    out[mirrored * blockDim.x + threadIdx.x] = piece[threadIdx.x];
}
