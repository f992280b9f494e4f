// A turned picture, whose neighbours stay near one another, and a copy.
// expect: nothing on gtx580 gtx980 h200
// cutrace: rotate<<<(4, 4), (16, 16)>>>(out:f32[64,64], in:f32[64,64]=arange, 64)
// cutrace: copy<<<(4, 4), (16, 16)>>>(out, in, 64)

__global__ void rotate(float *out, const float *in, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float u = (x - n / 2) * 0.9f - (y - n / 2) * 0.43f + n / 2,
          v = (x - n / 2) * 0.43f + (y - n / 2) * 0.9f + n / 2;
    int i = min(max((int)u, 0), n - 1), j = min(max((int)v, 0), n - 1);
    out[y * n + x] = in[j * n + i];
}

__global__ void copy(float *out, const float *in, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[y * n + x] = in[y * n + x];
}
