// Kernels whose times the profiler measured (h200.json): docs/time.md holds bounds and estimates to
// them. Nothing of them was used to choose a parameter.

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

// cutrace: copy<<<16384, 256>>>(a:f32[4194304]=random:1, b:f32[4194304]=random:2, 4194304)
// cutrace: copy<<<1024, 256>>>(a, b, 262144)
// cutrace: copy<<<32768, 128>>>(a, b, 4194304)
extern "C" __global__ void copy(float *a, const float *b, int n)
{
    INDEX;
    if (i < n) a[i] = b[i];
}
// cutrace: copy_four<<<4096, 256>>>(a, b, 1048576)
extern "C" __global__ void copy_four(float4 *a, const float4 *b, int n)
{
    INDEX;
    if (i < n) a[i] = b[i];
}
// cutrace: copy_strided<<<4096, 256>>>(a, b, 2, 1048576)
// cutrace: copy_strided<<<2048, 256>>>(a, b, 8, 524288)
// cutrace: copy_strided<<<512, 256>>>(a, b, 32, 131072)
extern "C" __global__ void copy_strided(float *a, const float *b, int stride, int n)
{
    INDEX;
    if (i < n) a[i * stride] = b[i * stride];
}
// cutrace: triad<<<4096, 256>>>(x:f64[1048576]=random:3, y:f64[1048576]=random:4, 1048576)
extern "C" __global__ void triad(double *x, const double *y, int n)
{
    INDEX;
    if (i < n) x[i] = x[i] + 3.0 * y[i];
}
// cutrace: few_threads<<<132, 64>>>(a, b, 1048576)
// cutrace: few_threads<<<132, 1024>>>(a, b, 4194304)
// cutrace: few_threads<<<1, 256>>>(a, b, 65536)
extern "C" __global__ void few_threads(float *a, const float *b, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        a[i] = b[i] * 2.0f;
}
// cutrace: turn<0><<<(64, 64), (32, 8)>>>(a, b, 2048)
// cutrace: turn<1><<<(64, 64), (32, 8)>>>(a, b, 2048)
// cutrace: turn<2><<<(64, 64), (32, 8)>>>(a, b, 2048)
template <int WAY> __global__ void turn(float *out, const float *in, int n)
{
    __shared__ float tile[32][WAY == 2 ? 33 : 32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (WAY == 0) {
        for (int k = 0; k < 32; k += 8) out[x * n + y + k] = in[(y + k) * n + x];
        return;
    }
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
// cutrace: product<<<(16, 16), (16, 16)>>>(a, b, b, 256)
// cutrace: product<<<(16, 64), (32, 8)>>>(a, b, b, 512)
extern "C" __global__ void product(float *c, const float *a, const float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
// cutrace: tiled<16><<<(32, 32), (16, 16)>>>(a, b, b, 512)
// cutrace: tiled<32><<<(16, 16), (32, 32)>>>(a, b, b, 512)
template <int T> __global__ void tiled(float *c, const float *a, const float *b, int n)
{
    __shared__ float as[T][T], bs[T][T];
    int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
    float sum = 0;
    for (int t = 0; t < n; t += T) {
        as[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
        __syncthreads();
        for (int k = 0; k < T; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}
// cutrace: add_up<0><<<4096, 256>>>(a, b)
// cutrace: add_up<1><<<4096, 256>>>(a, b)
// cutrace: add_up<2><<<4096, 256>>>(a, b)
template <int WAY> __global__ void add_up(float *out, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = in[blockIdx.x * 256 + t];
    if (WAY == 2) {
        for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
        if (t % 32 == 0) s[t / 32] = v;
        __syncthreads();
        if (t == 0) {
            for (int k = 1; k < 8; k++) v += s[k];
            out[blockIdx.x] = v;
        }
        return;
    }
    s[t] = v;
    __syncthreads();
    if (WAY == 0)
        for (int d = 1; d < 256; d *= 2) {
            if (t % (2 * d) == 0) s[t] += s[t + d];
            __syncthreads();
        }
    else
        for (int d = 128; d; d >>= 1) {
            if (t < d) s[t] += s[t + d];
            __syncthreads();
        }
    if (t == 0) out[blockIdx.x] = s[0];
}
// cutrace: count<<<2048, 256>>>(bins:i32[256], keys:i32[524288]=random:5, 524288)
extern "C" __global__ void count(int *bins, const int *keys, int n)
{
    INDEX;
    if (i < n) atomicAdd(&bins[keys[i] & 255], 1);
}
// cutrace: count_shared<<<264, 256>>>(bins, keys, 524288)
extern "C" __global__ void count_shared(int *bins, const int *keys, int n)
{
    __shared__ int mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[keys[i] & 255], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
// cutrace: total<<<4096, 256>>>(a, b)
extern "C" __global__ void total(float *out, const float *in)
{
    INDEX;
    atomicAdd(out, in[i]);
}
// cutrace: five_points<<<(64, 256), (32, 8)>>>(a, b, 2048)
extern "C" __global__ void five_points(float *out, const float *in, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) return;
    int i = y * n + x;
    out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}
// cutrace: seven_points<<<(4, 16, 128), (32, 8)>>>(a, b, 128)
extern "C" __global__ void seven_points(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
    if (x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1) return;
    int i = (z * n + y) * n + x;
    out[i] = in[i] * 0.4f + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]
        + in[i - n * n] + in[i + n * n]);
}
// cutrace: bodies<<<32, 128>>>(a, b, 4096)
extern "C" __global__ void bodies(float4 *force, const float4 *at, int n)
{
    __shared__ float4 tile[128];
    INDEX;
    float4 p = at[i], f = make_float4(0, 0, 0, 0);
    for (int t = 0; t < n; t += 128) {
        tile[threadIdx.x] = at[t + threadIdx.x];
        __syncthreads();
        #pragma unroll 4
        for (int k = 0; k < 128; k++) {
            float dx = tile[k].x - p.x, dy = tile[k].y - p.y, dz = tile[k].z - p.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = tile[k].w * r * r * r;
            f.x += dx * s; f.y += dy * s; f.z += dz * s;
        }
        __syncthreads();
    }
    force[i] = f;
}
// cutrace: chain_of<1><<<528, 256>>>(a, 512)
// cutrace: chain_of<4><<<528, 256>>>(a, 512)
// cutrace: chain_of<1><<<133, 1024>>>(a, 512)
// cutrace: chain_of<4><<<16, 32>>>(a, 2048)
template <int N> __global__ void chain_of(float *out, int times)
{
    INDEX;
    float v[N];
    for (int k = 0; k < N; k++) v[k] = i + k;
    #pragma unroll 4
    for (int t = 0; t < times; t++)
        for (int k = 0; k < N; k++) v[k] = v[k] * 0.999f + 1.0f;
    float sum = 0;
    for (int k = 0; k < N; k++) sum += v[k];
    out[i] = sum;
}
// cutrace: doubles<<<528, 256>>>(x, 256)
extern "C" __global__ void doubles(double *out, int times)
{
    INDEX;
    double v = i, w = 1;
    #pragma unroll 4
    for (int t = 0; t < times; t++) { v = v * 0.999 + 1.0; w = w * 0.99 + v; }
    out[i] = v + w;
}
// cutrace: functions<<<1024, 256>>>(a, b, 16)
extern "C" __global__ void functions(float *out, const float *in, int times)
{
    INDEX;
    float v = in[i];
    for (int t = 0; t < times; t++) v = __expf(-v) + __sinf(v) + sqrtf(v * v + 1.0f);
    out[i] = v;
}
// cutrace: remainders<<<528, 256>>>(bins, keys, 64, 1000003)
extern "C" __global__ void remainders(int *out, const int *in, int times, int by)
{
    INDEX;
    int v = in[i];
    for (int t = 0; t < times; t++) v = (v * 7 + t) % (by + t);
    if (v == -1) out[0] = v;
}
// cutrace: follow<<<132, 128>>>(bins, keys, 64)
extern "C" __global__ void follow(int *out, const int *next, int hops)
{
    INDEX;
    int at = i * 29;
    for (int k = 0; k < hops; k++) at = (next[at] + at * 7 + k) & 524287;
    if (at == -1) out[0] = at;
}
// cutrace: gather<<<2048, 256>>>(a, b, keys)
extern "C" __global__ void gather(float *out, const float *in, const int *keys)
{
    INDEX;
    out[i] = in[keys[i] & 4194303];
}
// cutrace: rows_alone<<<16, 128>>>(a, b, 2048)
extern "C" __global__ void rows_alone(float *out, const float *m, int n)
{
    INDEX;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += m[i * n + k];
    out[i] = sum;
}
// cutrace: rows_by_warp<<<512, 128>>>(a, b, 2048)
extern "C" __global__ void rows_by_warp(float *out, const float *m, int n)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum += m[row * n + k];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) out[row] = sum;
}
// cutrace: columns<<<16, 128>>>(a, b, 2048)
extern "C" __global__ void columns(float *out, const float *m, int n)
{
    INDEX;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += m[k * n + i];
    out[i] = sum;
}
// cutrace: sort_block<<<512, 512>>>(keys)
extern "C" __global__ void sort_block(int *keys)
{
    __shared__ int s[512];
    int t = threadIdx.x, base = blockIdx.x * 512;
    s[t] = keys[base + t];
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            __syncthreads();
            int other = t ^ j;
            if (other > t && (s[t] > s[other]) == !(t & k)) {
                int v = s[t]; s[t] = s[other]; s[other] = v;
            }
        }
    __syncthreads();
    keys[base + t] = s[t];
}
// cutrace: fractal<<<(32, 64), (16, 16)>>>(bins2:i32[524288], 512, 128)
extern "C" __global__ void fractal(int *out, int width, int most)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, k = 0;
    float cx = x * 3.0f / width - 2, cy = y * 2.0f / 1024 - 1, a = 0, b = 0;
    while (k < most && a * a + b * b < 4) {
        float t = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = t;
        k++;
    }
    out[y * width + x] = k;
}
// cutrace: options<<<1024, 256>>>(a, b, 262144)
extern "C" __global__ void options(float *out, const float *price, int n)
{
    INDEX;
    if (i >= n) return;
    float s = price[i] * 30 + 5, x = 20, t = 1.5f, r = 0.02f, v = 0.3f;
    float root = sqrtf(t), d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * root);
    float d2 = d1 - v * root, k = 1 / (1 + 0.2316419f * fabsf(d1)), q = 1 / (1 + 0.2316419f * fabsf(d2));
    float c1 = expf(-0.5f * d1 * d1) * k * (0.319f + k * (-0.356f + k * 1.78f));
    float c2 = expf(-0.5f * d2 * d2) * q * (0.319f + q * (-0.356f + q * 1.78f));
    out[i] = s * c1 - x * expf(-r * t) * c2;
}
// cutrace: softmax<<<1024, 256>>>(a, b, 2048)
extern "C" __global__ void softmax(float *out, const float *in, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, base = blockIdx.x * n;
    float most = -1e30f, sum = 0;
    for (int k = t; k < n; k += 256) most = fmaxf(most, in[base + k]);
    s[t] = most;
    for (int d = 128; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] = fmaxf(s[t], s[t + d]);
    }
    __syncthreads();
    most = s[0];
    __syncthreads();
    for (int k = t; k < n; k += 256) sum += __expf(in[base + k] - most);
    s[t] = sum;
    for (int d = 128; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    __syncthreads();
    sum = s[0];
    for (int k = t; k < n; k += 256) out[base + k] = __expf(in[base + k] - most) / sum;
}
// cutrace: conflicts<<<528, 256>>>(a, 1, 128)
// cutrace: conflicts<<<528, 256>>>(a, 8, 128)
// cutrace: conflicts<<<528, 256>>>(a, 32, 128)
extern "C" __global__ void conflicts(float *out, int stride, int times)
{
    __shared__ float s[8192];
    int t = threadIdx.x;
    for (int k = t; k < 8192; k += 256) s[k] = k;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < times; k++) sum += s[(t * stride + k) & 8191];
    out[blockIdx.x * 256 + t] = sum;
}
// cutrace: nothing<<<1, 32>>>(a)
// cutrace: nothing<<<4096, 256>>>(a)
extern "C" __global__ void nothing(float *a) { if (blockDim.x == 1) a[0] = 1; }
