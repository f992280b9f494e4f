// 80 values. Bad: kept in registers, all at once. Good: added as they come.
// expect: few_registers on gtx980 h200
// cutrace: fat<<<700, 256>>>(out:f32[262144], in:f32[262144]=arange)
// cutrace: thin<<<700, 256>>>(out, in)

__global__ void fat(float *out, const float *in)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float a[80];
#pragma unroll
    for (int j = 0; j < 80; ++j)
        a[j] = in[(i + j * 256) & 262143];
    float s = 0;
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int j = 0; j < 80; ++j)
            s += a[j] * a[(j * 7 + r * 13 + 1) % 80];
#pragma unroll
    for (int j = 0; j < 80; ++j)
        s = s * a[79 - j] + a[j];
    out[i] = s;
}

__global__ void thin(float *out, const float *in)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float s = 0;
    for (int j = 0; j < 80; ++j)
        s += in[(i + j * 256) & 262143];
    out[i] = s;
}
