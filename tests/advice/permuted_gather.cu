// Copy through an index. Bad: neighbours go to places all over the array. Good: neighbours go to
// neighbours, blocks all over.
// expect: uncoalesced on gtx580 h200
// cutrace: badGather<<<16, 128>>>(out:i32[2048], in:i32[2048]=arange)
// cutrace: goodGather<<<16, 128>>>(out, in)

__global__ void badGather(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 773 % 2048];
}

__global__ void goodGather(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i / 32 * 23 % 64) * 32 + i % 32];
}
