// Read shared memory with a stride of 1, 2, 3, 4, 8, 9, 16, 32 and 33 words.
// cutrace: strideRead<<<1, 32>>>(out:i32[32], 1)
// cutrace: strideRead<<<1, 32>>>(out, 2)
// cutrace: strideRead<<<1, 32>>>(out, 3)
// cutrace: strideRead<<<1, 32>>>(out, 4)
// cutrace: strideRead<<<1, 32>>>(out, 8)
// cutrace: strideRead<<<1, 32>>>(out, 9)
// cutrace: strideRead<<<1, 32>>>(out, 16)
// cutrace: strideRead<<<1, 32>>>(out, 32)
// cutrace: strideRead<<<1, 32>>>(out, 33)

__global__ void strideRead(int *out, int stride)
{
    __shared__ int words[32 * 33];
    int lane = threadIdx.x;
    for (int i = lane; i < 32 * 33; i += 32)
        words[i] = 3 * i;
    __syncthreads();
    out[lane] = words[lane * stride];
}
