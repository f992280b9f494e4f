// expect: odd_blocks on rtx4090 rtx3060
// An SM of 8.6 and 8.9 has 48 warps: a block of 32 warps leaves 16 empty, one of 16 none.
// cutrace: large<<<256, 1024>>>(out:f32[262144], in:f32[262144]=random:1)
// cutrace: medium<<<512, 512>>>(out, in)

__global__ void large(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2 * in[i];
}

__global__ void medium(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2 * in[i];
}
