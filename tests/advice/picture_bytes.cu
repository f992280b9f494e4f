// Invert a picture of bytes. Bad on 1.x: a byte a thread. Good: four bytes a thread.
// expect: uncoalesced on 8800gtx
// cutrace: badBytes<<<16, 256>>>(out:u8[4096], in:u8[4096]=arange)
// cutrace: goodBytes<<<4, 256>>>(words:u32[1024], four:u32[1024]=arange)

__global__ void badBytes(unsigned char *out, const unsigned char *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 255 - in[i];
}

__global__ void goodBytes(unsigned *out, const unsigned *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = ~in[i];
}
