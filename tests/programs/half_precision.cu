// Half precision: axpy two at a time, a dot product by warps, conversions, and brain floats.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void axpy(__half2 *y, const __half2 *x, __half a, int pairs)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs)
        y[i] = __hfma2(__half2half2(a), x[i], y[i]);
}

__global__ void dot(float *out, const __half2 *x, const __half2 *y, int pairs)
{
    __half2 sum = __float2half2_rn(0.0f);
    for (int i = threadIdx.x; i < pairs; i += 32)
        sum = __hadd2(sum, __hmul2(x[i], y[i]));
    for (int reach = 16; reach > 0; reach /= 2)
        sum = __hadd2(sum, __shfl_xor_sync(0xffffffff, sum, reach));
    if (threadIdx.x == 0)
        *out = __low2float(sum) + __high2float(sum);
}

__global__ void convert(__half *down, short *nearest, float *up, const float *in,
                        const __half *halves, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        down[i] = __float2half(in[i]);
        nearest[i] = __half2short_rn(halves[i]);
        up[i] = __half2float(__habs(halves[i]));
    }
}

__global__ void clamp_and_pick(__half *out, const __half *x, __half low, __half high, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        __half v = __hmax(low, __hmin(x[i], high));
        out[i] = __hlt(v, __float2half(0.0f)) ? __hneg(v) : __hdiv(v, __float2half(4.0f));
    }
}

__global__ void brain(__nv_bfloat16 *out, const float *a, const float *b, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
        out[i] = __float2bfloat16(__bfloat162float(x) * __bfloat162float(y));
    }
}
