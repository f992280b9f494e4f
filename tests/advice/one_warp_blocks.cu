// Double numbers. Bad: a block is one warp, of which an SM holds eight. Good: eight warps.
// expect: small_blocks on 8800gtx gtx580
// cutrace: twice<<<1024, 32>>>(x:f32[32768]=arange)
// cutrace: twice<<<128, 256>>>(x)

__global__ void twice(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= 2;
}
