// Structures in shared memory. Bad: of eight words. Good: of seven.
// expect: bank_conflicts on 8800gtx gtx580 gtx980 h200
// cutrace: bad<<<8, 64>>>(out:f32[512], in:f32[512]=arange)
// cutrace: good<<<8, 64>>>(out, in)

struct Bad {
    float a, b, c, d, e, f, g, h;
};
struct Good {
    float a, b, c, d, e, f, g;
};
__global__ void bad(float *out, const float *in)
{
    __shared__ Bad s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t].a = in[i];
    s[t].c = 2 * in[i];
    __syncthreads();
    out[i] = s[63 - t].a + s[63 - t].c;
}

__global__ void good(float *out, const float *in)
{
    __shared__ Good s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t].a = in[i];
    s[t].c = 2 * in[i];
    __syncthreads();
    out[i] = s[63 - t].a + s[63 - t].c;
}
