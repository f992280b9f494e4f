// Reverse an array straight through global memory.
// cutrace: reverseGlobal<<<1024, 256>>>(out:i32[262144], in:i32[262144]=arange)

__global__ void reverseGlobal(int *out, const int *in)
{
    int from = blockIdx.x * blockDim.x + threadIdx.x;
    int to = gridDim.x * blockDim.x - 1 - from;
    out[to] = in[from];
}
