// Video and networks on small integers: sums of absolute differences four bytes at a time, motion
// search, products of bytes with dp4a, and a quantised layer.

__global__ void differences(unsigned *out, const unsigned *a, const unsigned *b, int words)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (int k = 0; k < words; ++k)
        sum += __vsadu4(a[i * words + k], b[i * words + k]);
    out[i] = sum;
}

#define SIDE 8
#define REACH 4

__global__ void motion(int2 *vectors, const unsigned char *now, const unsigned char *before,
                       int width, int height)
{
    __shared__ unsigned best;
    int bx = blockIdx.x * SIDE, by = blockIdx.y * SIDE;
    if (threadIdx.x == 0 && threadIdx.y == 0)
        best = 0xffffffffu;
    __syncthreads();
    int dx = (int)threadIdx.x - REACH, dy = (int)threadIdx.y - REACH;
    if (bx + dx >= 0 && by + dy >= 0 && bx + dx + SIDE <= width && by + dy + SIDE <= height) {
        unsigned sum = 0;
        for (int y = 0; y < SIDE; ++y)
            for (int x = 0; x < SIDE; ++x)
                sum = __usad(now[(by + y) * width + bx + x],
                             before[(by + dy + y) * width + bx + dx + x], sum);
        atomicMin(&best, sum << 8 | threadIdx.y << 4 | threadIdx.x);
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        vectors[blockIdx.y * gridDim.x + blockIdx.x] =
            make_int2((int)(best & 15) - REACH, (int)(best >> 4 & 15) - REACH);
}

__global__ void quantised_layer(signed char *out, const int *weights, const int *input, int words,
                                float scale)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < words; ++k)
        sum = __dp4a(weights[row * words + k], input[k], sum);
    int rounded = __float2int_rn(sum * scale);
    out[row] = max(-128, min(127, rounded));
}

__global__ void blend(uchar4 *out, const uchar4 *a, const uchar4 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uchar4 p = a[i], q = b[i];
    unsigned char mix[4] = {p.x, p.y, p.z, p.w};
    unsigned char other[4] = {q.x, q.y, q.z, q.w};
    for (int c = 0; c < 4; ++c)
        mix[c] = (mix[c] * other[3] + other[c] * (255 - other[3]) + 127) / 255;
    out[i] = make_uchar4(mix[0], mix[1], mix[2], mix[3]);
}
