// A table of 256 bytes, looked up by data. Bad: in constant memory. Good: in shared memory.
// expect: divergent_constant on gtx580 gtx980 h200
// cutrace: constantTable<<<8, 128>>>(out:u8[1024], in:u8[1024]=random:1)
// cutrace: sharedTable<<<8, 128>>>(out, in, table:u8[256]=arange)

__constant__ unsigned char gamma_[256] = {0, 1, 3, 5};
__global__ void constantTable(unsigned char *out, const unsigned char *in)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = gamma_[in[i]];
}

__global__ void sharedTable(unsigned char *out, const unsigned char *in, const unsigned char *table)
{
    __shared__ unsigned char s[256];
    for (int j = threadIdx.x; j < 256; j += 128)
        s[j] = table[j];
    __syncthreads();
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = s[in[i]];
}
