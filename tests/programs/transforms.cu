// Transforms: Fourier's by radix two in shared memory, the cosine transform of 8 by 8 tiles and its
// inverse, Haar's wavelets and Walsh's, each in place.

template <int LOG>
__global__ void fourier(float2 *data, float direction)
{
    constexpr int N = 1 << LOG;
    __shared__ float2 line[N];
    float2 *own = data + blockIdx.x * N;
    for (int i = threadIdx.x; i < N; i += N / 2)
        line[__brev(i) >> (32 - LOG)] = own[i];
    #pragma unroll
    for (int half = 1; half < N; half *= 2) {
        __syncthreads();
        int k = threadIdx.x & (half - 1);
        int low = 2 * (threadIdx.x - k) + k, high = low + half;
        float sine, cosine;
        sincospif(direction * k / half, &sine, &cosine);
        float2 a = line[low], b = line[high];
        float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        line[low] = make_float2(a.x + turned.x, a.y + turned.y);
        line[high] = make_float2(a.x - turned.x, a.y - turned.y);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += N / 2)
        own[i] = line[i];
}

__constant__ float cosines[8][8];

template <bool INVERSE>
__global__ void cosine_tiles(float *out, const float *in, int width)
{
    __shared__ float tile[8][9], half[8][9];
    int x = threadIdx.x, y = threadIdx.y;
    int at = (blockIdx.y * 8 + y) * width + blockIdx.x * 8 + x;
    tile[y][x] = in[at];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k)
        sum += tile[y][k] * (INVERSE ? cosines[k][x] : cosines[x][k]);
    half[y][x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int k = 0; k < 8; ++k)
        sum += half[k][x] * (INVERSE ? cosines[k][y] : cosines[y][k]);
    out[at] = sum;
}

__global__ void haar(float *out, const float *in, int n)
{
    extern __shared__ float line[];
    int t = threadIdx.x;
    line[2 * t] = in[2 * t];
    line[2 * t + 1] = in[2 * t + 1];
    for (int half = n / 2; half > 0; half /= 2) {
        __syncthreads();
        float mean = 0.0f, difference = 0.0f;
        if (t < half) {
            mean = (line[2 * t] + line[2 * t + 1]) * 0.5f;
            difference = (line[2 * t] - line[2 * t + 1]) * 0.5f;
        }
        __syncthreads();
        if (t < half) {
            line[t] = mean;
            out[half + t] = difference;
        }
    }
    if (t == 0)
        out[0] = line[0];
}

__global__ void walsh(int *data, int n)
{
    int lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = data[i];
    for (int reach = 1; reach < 32 && reach < n; reach *= 2) {
        int other = __shfl_xor_sync(0xffffffff, value, reach);
        value = lane & reach ? other - value : value + other;
    }
    data[i] = value;
}
