// expect: small_grid on h100
// Four blocks on 132 SMs, or one on each.
// cutrace: few<<<4, 256>>>(out:f32[33792], in:f32[33792]=random:1, 33)
// cutrace: many<<<132, 256>>>(out, in, 1)

__global__ void few(float *out, const float *in, int each)
{
    for (int k = 0; k < each; k++) {
        int i = (k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
        out[i] = 2 * in[i] + out[(i + 32) % 33792];
    }
}

__global__ void many(float *out, const float *in, int each)
{
    for (int k = 0; k < each; k++) {
        int i = (k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
        out[i] = 2 * in[i];
    }
}
