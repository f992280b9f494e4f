// Pictures: the Mandelbrot set with escape times, ordered dithering with a table in constant
// memory, Conway's life on bits and on cells, and a convolution in two separable passes.

__global__ void mandelbrot(unsigned char *out, int width, int height, float left, float top,
                           float step, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float cr = fmaf(step, x, left), ci = fmaf(-step, y, top), zr = 0.0f, zi = 0.0f;
    int count = 0;
    while (count < most) {
        float rr = __fmul_rn(zr, zr), ii = __fmul_rn(zi, zi);
        if (__fadd_rn(rr, ii) > 4.0f)
            break;
        zi = __fadd_rn(__fmul_rn(2.0f * zr, zi), ci);
        zr = __fadd_rn(__fsub_rn(rr, ii), cr);
        ++count;
    }
    out[y * width + x] = count;
}

__constant__ unsigned char bayer[4][4] = {
    {0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};

__global__ void dither(unsigned *bits, const unsigned char *grey, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    bool on = grey[y * width + x] > bayer[y & 3][x & 3] * 16 + 8;
    unsigned word = __ballot_sync(0xffffffff, on);
    if (threadIdx.x % 32 == 0)
        bits[y * (width / 32) + x / 32] = __brev(word);
}

__global__ void life_cells(unsigned char *next, const unsigned char *now, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int count = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy)
                count += now[(y + dy + height) % height * width + (x + dx + width) % width];
    next[y * width + x] = count == 3 || (count == 2 && now[y * width + x]);
}

__device__ unsigned row_of(const unsigned *now, int words, int word, int y, int height, int shift)
{
    const unsigned *row = now + (y + height) % height * words;
    unsigned here = row[word];
    if (shift < 0)
        return __funnelshift_l(row[(word + words - 1) % words], here, 1);
    if (shift > 0)
        return __funnelshift_r(here, row[(word + 1) % words], 1);
    return here;
}

__global__ void life_bits(unsigned *next, const unsigned *now, int words, int height)
{
    int word = threadIdx.x, y = blockIdx.x;
    unsigned ones = 0, twos = 0, fours = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int shift = -1; shift <= 1; ++shift) {
            if (!dy && !shift)
                continue;
            unsigned add = row_of(now, words, word, y + dy, height, shift);
            unsigned carry = ones & add;
            ones ^= add;
            unsigned more = twos & carry;
            twos ^= carry;
            fours |= more;
        }
    unsigned alive = now[y * words + word];
    next[y * words + word] = twos & ~fours & (ones | alive);
}

#define RADIUS 8
#define COLUMNS 32
#define ROWS 8

__constant__ float weights[2 * RADIUS + 1];

__global__ void convolve_rows(float *out, const float *in, int width)
{
    __shared__ float line[ROWS][COLUMNS + 2 * RADIUS];
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y;
    const float *row = in + y * width;
    line[threadIdx.y][threadIdx.x + RADIUS] = row[x];
    if (threadIdx.x < RADIUS) {
        line[threadIdx.y][threadIdx.x] = x >= RADIUS ? row[x - RADIUS] : 0.0f;
        line[threadIdx.y][threadIdx.x + RADIUS + COLUMNS] =
            x + COLUMNS < width ? row[x + COLUMNS] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    #pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k)
        sum += weights[RADIUS - k] * line[threadIdx.y][threadIdx.x + RADIUS + k];
    out[y * width + x] = sum;
}

__global__ void convolve_columns(float *out, const float *in, int width, int height)
{
    __shared__ float column[ROWS + 2 * RADIUS][COLUMNS];
    int x = blockIdx.x * COLUMNS + threadIdx.x, top = blockIdx.y * ROWS - RADIUS;
    for (int k = threadIdx.y; k < ROWS + 2 * RADIUS; k += ROWS)
        column[k][threadIdx.x] =
            top + k >= 0 && top + k < height ? in[(top + k) * width + x] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    #pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k)
        sum += weights[RADIUS - k] * column[threadIdx.y + RADIUS + k][threadIdx.x];
    out[(top + RADIUS + threadIdx.y) * width + x] = sum;
}
