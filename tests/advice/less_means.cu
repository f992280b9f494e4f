// Take the mean of each row away. Bad: each store may change what is loaded next. Good: it may not.
// expect: read_only on h100 h200
// cutrace: badMeans<<<16, 256>>>(out:f32[131072], in:f32[131072]=random:1, mean:f32[32]=arange)
// cutrace: goodMeans<<<16, 256>>>(out, in, mean)

__global__ void badMeans(float *out, const float *in, const float *mean)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = 0; row < 32; ++row) out[row * 4096 + i] = in[row * 4096 + i] - mean[row];
}

__global__ void goodMeans(
    float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ mean)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = 0; row < 32; ++row) out[row * 4096 + i] = in[row * 4096 + i] - mean[row];
}
