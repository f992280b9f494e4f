// Reverse words inside a block. Bad: a buffer of 40 KiB, most of it for nothing. Good: as much as
// there are threads.
// expect: much_shared on gtx580 k20 h200
// cutrace: badBuffer<<<2048, 128>>>(out:i32[262144], in:i32[262144]=arange)
// cutrace: goodBuffer<<<2048, 128>>>(out, in)

template <int WORDS>
__device__ void reverse(int *out, const int *in)
{
    __shared__ int held[WORDS];
    int first = blockIdx.x * blockDim.x;
    held[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

__global__ void badBuffer(int *out, const int *in) { reverse<10240>(out, in); }

__global__ void goodBuffer(int *out, const int *in) { reverse<128>(out, in); }
