// expect: narrow_access on v100 h100
// Bytes one by one, or sixteen at once.
// cutrace: bytes<<<512, 256>>>(out:u8[131072], in:u8[131072]=random:1)
// cutrace: vectors<<<32, 256>>>(out, in)

__global__ void bytes(unsigned char *out, const unsigned char *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 255 - in[i];
}

__global__ void vectors(unsigned char *out, const unsigned char *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 v = ((const uint4 *)in)[i];
    ((uint4 *)out)[i] = make_uint4(~v.x, ~v.y, ~v.z, ~v.w);
}
