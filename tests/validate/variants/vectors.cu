// Variants of one task each, for the order of estimates: test_variants.py has the tasks.

#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL (gridDim.x * blockDim.x)

// cutrace: total<0><<<4096, 256>>>(s:f32[4096], a:f32[1048576]=random:1)
// cutrace: total<1><<<4096, 256>>>(s, a)
// cutrace: total<2><<<528, 256>>>(s, a)
template <int WAY> __global__ void total(float *out, const float *in)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = I; i < 1048576; i += ALL) sum += in[i];
    if (WAY == 2) {
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (t % 32 == 0) part[t / 32] = sum;
        __syncthreads();
        if (t == 0) for (int k = 1; k < 8; k++) sum += part[k];
        if (t == 0) out[blockIdx.x] = sum;
        return;
    }
    part[t] = sum;
    __syncthreads();
    if (WAY == 0)
        for (int d = 1; d < 256; d *= 2) {
            if (t % (2 * d) == 0) part[t] += part[t + d];
            __syncthreads();
        }
    else
        for (int d = 128; d; d /= 2) {
            if (t < d) part[t] += part[t + d];
            __syncthreads();
        }
    if (t == 0) out[blockIdx.x] = part[0];
}

// cutrace: added<0><<<512, 256>>>(s, a)
// cutrace: added<1><<<512, 256>>>(s, a)
// cutrace: added<2><<<512, 256>>>(s, a)
template <int WAY> __global__ void added(float *out, const float *in)
{
    __shared__ float part[8];
    float sum = in[I];
    if (WAY) for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (WAY == 2) {
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) for (int k = 1; k < 8; k++) sum += part[k];
    }
    if (WAY == 0 || threadIdx.x % (WAY == 1 ? 32 : 256) == 0) atomicAdd(out, sum);
}

// cutrace: histogram<0><<<1024, 256>>>(bins:i32[256], v:i32[1048576]=arange)
// cutrace: histogram<1><<<1024, 256>>>(bins, v)
// cutrace: histogram<2><<<264, 256>>>(bins, v)
template <int WAY> __global__ void histogram(int *bins, const int *values)
{
    __shared__ int own[256];
    if (WAY) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = I; i < 262144; i += ALL) {
        unsigned bin = (values[i] * 2654435761u) >> 24;
        if (WAY) atomicAdd(own + bin, 1); else atomicAdd(bins + bin, 1);
    }
    __syncthreads();
    if (WAY) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}

// cutrace: smoothed<0><<<4096, 256>>>(b:f32[1048640], w:f32[1048640]=random:3)
// cutrace: smoothed<1><<<4096, 256>>>(b, w)
// cutrace: smoothed<2><<<1024, 256>>>(b, w)
template <int WAY> __global__ void smoothed(float *out, const float *in)
{
    if (WAY == 1) {
        __shared__ float tile[264];
        tile[threadIdx.x] = in[I];
        if (threadIdx.x < 8) tile[256 + threadIdx.x] = in[I + 256];
        __syncthreads();
        float sum = 0;
        for (int k = 0; k < 9; k++) sum += tile[threadIdx.x + k];
        out[I] = sum;
        return;
    }
    const int each = WAY ? 4 : 1;
    float v[8 + each];
    for (int k = 0; k < 8 + each; k++) v[k] = in[I * each + k];
    for (int e = 0; e < each; e++) {
        float sum = 0;
        for (int k = 0; k < 9; k++) sum += v[e + k];
        out[I * each + e] = sum;
    }
}

struct Point { float x, y, z, w; };
// cutrace: lengths<0><<<1024, 256>>>(b, w)
// cutrace: lengths<1><<<1024, 256>>>(b, w)
// cutrace: lengths<2><<<1024, 256>>>(b, w)
template <int WAY> __global__ void lengths(float *out, const float *in)
{
    float x, y, z;
    if (WAY == 0) { x = in[4 * I], y = in[4 * I + 1], z = in[4 * I + 2]; }
    if (WAY == 1) { x = in[I], y = in[I + 262144], z = in[I + 524288]; }
    if (WAY == 2) { float4 p = ((const float4 *)in)[I]; x = p.x, y = p.y, z = p.z; }
    out[I] = sqrtf(x * x + y * y + z * z);
}

// cutrace: saxpy<0><<<16384, 32>>>(b, a, 2)
// cutrace: saxpy<1><<<2048, 256>>>(b, a, 2)
// cutrace: saxpy<2><<<264, 256>>>(b, a, 2)
// cutrace: saxpy<3><<<4, 1024>>>(b, a, 2)
template <int WAY> __global__ void saxpy(float *y, const float *x, int factor)
{
    for (int i = I; i < 524288; i += ALL) y[i] += factor * x[i];
}

__constant__ float fixed[256];
// cutrace: lookup<0><<<2048, 256>>>(b, v, a)
// cutrace: lookup<1><<<2048, 256>>>(b, v, a)
// cutrace: lookup<2><<<2048, 256>>>(b, v, a)
template <int WAY> __global__ void lookup(float *out, const int *in, const float *table)
{
    __shared__ float own[256];
    if (WAY == 1) own[threadIdx.x] = table[threadIdx.x];
    if (WAY == 1) __syncthreads();
    unsigned at = (in[I] * 2654435761u) >> 24;
    float sum = 0;
    for (int k = 0; k < 8; k++, at = (at + 37) % 256)
        sum += WAY == 0 ? table[at] : WAY == 1 ? own[at] : fixed[at];
    out[I] = sum;
}

// cutrace: scan<0><<<2048, 256>>>(b, a)
// cutrace: scan<1><<<2048, 256>>>(b, a)
// cutrace: scan<2><<<2048, 256>>>(b, a)
template <int WAY> __global__ void scan(float *out, const float *in)
{
    __shared__ float part[512];
    int t = threadIdx.x;
    float v = in[I];
    if (WAY == 0) {
        part[t] = v;
        __syncthreads();
        for (int d = 1; d < 256; d *= 2) {
            float add = t >= d ? part[t - d] : 0;
            __syncthreads();
            part[t] += add;
            __syncthreads();
        }
        out[I] = part[t];
    } else if (WAY == 1) {
        for (int d = 1; d < 32; d *= 2) {
            float add = __shfl_up_sync(~0u, v, d);
            if (t % 32 >= d) v += add;
        }
        if (t % 32 == 31) part[t / 32] = v;
        __syncthreads();
        for (int k = 0; k < t / 32; k++) v += part[k];
        out[I] = v;
    } else {
        part[t] = v;
        __syncthreads();
        if (t == 0) for (int k = 1; k < 256; k++) part[k] += part[k - 1];
        __syncthreads();
        out[I] = part[t];
    }
}

// cutrace: branches<0><<<1024, 256>>>(b, a)
// cutrace: branches<1><<<1024, 256>>>(b, a)
template <int WAY> __global__ void branches(float *out, const float *in)
{
    float v = in[I];
    bool even = WAY ? threadIdx.x / 32 % 2 == 0 : threadIdx.x % 2 == 0;
    if (even) for (int k = 0; k < 64; k++) v = __sinf(v) * 3;
    else for (int k = 0; k < 64; k++) v = __cosf(v) * 5;
    out[I] = v;
}

// cutrace: columns<0><<<512, 256>>>(b, a)
// cutrace: columns<1><<<512, 256>>>(b, a)
template <int WAY> __global__ void columns(float *out, const float *in)
{
    __shared__ float tile[32][32 + WAY];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (int k = 0; k < 32; k += 8) tile[y + k][x] = in[(blockIdx.x * 32 + y + k) * 32 + x];
    __syncthreads();
    float sum = 0;
    for (int again = 0; again < 8; again++)
        for (int k = 0; k < 32; k++) sum += tile[x][(k + y + again) % 32];
    out[I] = sum;
}

// cutrace: copy<1><<<4096, 256>>>(b, a)
// cutrace: copy<4><<<1024, 256>>>(b, a)
// cutrace: copy<16><<<256, 256>>>(b, a)
template <int BYTES> __global__ void copy(float *out, const float *in)
{
    if (BYTES == 1) ((char *)out)[I] = ((const char *)in)[I];
    if (BYTES == 4) out[I] = in[I];
    if (BYTES == 16) ((float4 *)out)[I] = ((const float4 *)in)[I];
}

// cutrace: polynomial<0><<<1024, 256>>>(b, a)
// cutrace: polynomial<1><<<1024, 256>>>(b, a)
// cutrace: polynomial<2><<<1024, 256>>>(b, a)
template <int WAY> __global__ void polynomial(float *out, const float *in)
{
    float x = in[I], sum = 0;
    if (WAY == 0) for (int k = 0; k < 16; k++) sum += k * powf(x, k);
    if (WAY == 1) for (int k = 15; k >= 0; k--) sum = sum * x + k;
    if (WAY == 2) { double d = 0; for (int k = 15; k >= 0; k--) d = d * x + k; sum = d; }
    out[I] = sum;
}

__constant__ float weights[64];
// cutrace: filtered<0><<<2048, 256>>>(b, w, a)
// cutrace: filtered<1><<<2048, 256>>>(b, w, a)
// cutrace: filtered<2><<<2048, 256>>>(b, w, a)
template <int WAY> __global__ void filtered(float *out, const float *in, const float *factors)
{
    __shared__ float tile[320], own[64];
    if (WAY == 2) {
        tile[threadIdx.x] = in[I];
        if (threadIdx.x < 64) tile[256 + threadIdx.x] = in[I + 256], own[threadIdx.x] = factors[threadIdx.x];
        __syncthreads();
    }
    float sum = 0;
    for (int k = 0; k < 64; k++)
        sum += WAY == 0 ? in[I + k] * factors[k] : WAY == 1 ? in[I + k] * weights[k]
                                                          : tile[threadIdx.x + k] * own[k];
    out[I] = sum;
}

// cutrace: searched<0><<<512, 256>>>(b, a, w)
// cutrace: searched<1><<<512, 256>>>(b, a, w)
template <int WAY> __global__ void searched(float *out, const float *keys, const float *sorted)
{
    __shared__ float top[1024];
    if (WAY) {
        for (int k = threadIdx.x; k < 1024; k += 256) top[k] = k / 1024.f;
        __syncthreads();
    }
    int low = 0;
    float key = keys[I];
    for (int step = 512; step; step /= 2) {
        float probe = WAY ? top[low + step - 1] : sorted[low + step - 1];
        if ((WAY ? probe : (low + step) / 1024.f + 1e-9f * probe) <= key) low += step;
    }
    out[I] = low;
}

// cutrace: pairs<0><<<32, 128>>>(s, a)
// cutrace: pairs<1><<<32, 128>>>(s, a)
// cutrace: pairs<2><<<4, 1024>>>(s, a)
template <int WAY> __global__ void pairs(float *out, const float *at)
{
    __shared__ float tile[128];
    float mine = at[I], force = 0;
    for (int first = 0; first < 4096; first += 128) {
        if (WAY == 1) {
            __syncthreads();
            tile[threadIdx.x] = at[first + threadIdx.x];
            __syncthreads();
        }
        for (int k = 0; k < 128; k++) {
            float d = (WAY == 1 ? tile[k] : at[first + k]) - mine;
            force += d * rsqrtf(d * d + 0.01f);
        }
    }
    out[I] = force;
}
