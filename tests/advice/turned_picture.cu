// Turn a picture by some thirty degrees. Bad on 1.x: from global memory, where lanes follow no row.
// Good: in place, row by row.
// expect: texture on 8800gtx gtx280
// cutrace: badPicture<<<(8, 8), (16, 16)>>>(out:f32[128,128], in:f32[128,128]=arange, 128)
// cutrace: goodPicture<<<(8, 8), (16, 16)>>>(out, in, 128)

__global__ void badPicture(float *out, const float *in, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int u = (7 * x - 4 * y) / 8 & 127, v = (4 * x + 7 * y) / 8 & 127;
    out[y * width + x] = in[v * width + u];
}

__global__ void goodPicture(float *out, const float *in, int width)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[y * width + x] = in[y * width + x] * 0.5f;
}
