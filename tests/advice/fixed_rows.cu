// Add the rows of two matrices whose width the compiler knows. Bad: 70 words. Good: 96.
// expect: misaligned on 8800gtx gtx280 gtx580 h200
// cutrace: badFixed<<<64, 64>>>(odd:f32[4480]=arange, other:f32[4480]=arange)
// cutrace: goodFixed<<<64, 64>>>(even:f32[6144]=arange, second:f32[6144]=arange)

template <int WIDTH>
__device__ void add(float *sum, const float *in)
{
    int i = blockIdx.x * WIDTH + threadIdx.x;
    sum[i] += in[i];
}

__global__ void badFixed(float *sum, const float *in) { add<70>(sum, in); }

__global__ void goodFixed(float *sum, const float *in) { add<96>(sum, in); }
