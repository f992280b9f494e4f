// Four sums of powers of a megabyte. Bad: the second level loses the array from one sum to the next.
// Good: all four of a stretch before the next stretch.
// expect: thrashing on gtx580 sm_62
// cutrace: badSums<<<16, 256>>>(out:f32[4], in:f32[262144]=arange)
// cutrace: goodSums<<<16, 256>>>(out, in)

__device__ float raised(float x, int power)
{
    for (int i = 0; i < power; i++) x *= x;
    return x;
}

__global__ void badSums(float *out, const float *in)
{
    int first = blockIdx.x * 256 + threadIdx.x;
    for (int power = 0; power < 4; power++) {
        float sum = 0;
        for (int i = first; i < 262144; i += 4096) sum += raised(in[i], power);
        if (sum == 7) out[power] = sum;
        __syncthreads();
    }
}

__global__ void goodSums(float *out, const float *in)
{
    int first = blockIdx.x * 256 + threadIdx.x;
    float sums[4] = {0, 0, 0, 0};
    for (int i = first; i < 262144; i += 4096)
        for (int power = 0; power < 4; power++) sums[power] += raised(in[i], power);
    for (int power = 0; power < 4; power++)
        if (sums[power] == 7) out[power] = sums[power];
}
