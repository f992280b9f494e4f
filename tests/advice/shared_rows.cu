// Weigh the rows of a matrix by a vector. Bad: what is stored may be what is loaded, for all that
// the compiler knows. Good: it knows that they lie apart.
// expect: read_only on k20 gtx750ti
// cutrace: badRows<<<64, 128>>>(out:f32[8192], in:f32[8192]=arange, by:f32[64]=arange)
// cutrace: goodRows<<<64, 128>>>(out, in, by)

__global__ void badRows(float *out, const float *in, const float *by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = -8; k <= 8; k++) sum += in[min(max(i + k, 0), 8191)] * by[k + 8];
    out[i] = sum;
}

__global__ void goodRows(float *out, const float *__restrict__ in, const float *__restrict__ by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = -8; k <= 8; k++) sum += in[min(max(i + k, 0), 8191)] * by[k + 8];
    out[i] = sum;
}
