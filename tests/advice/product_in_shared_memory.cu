// expect: register_tile on h100 h200
// A tiled product takes two words of shared memory for each multiply-add; with 4 x 4 results a
// thread, 8 for 16.
// cutrace: one_result<<<(16, 16), (16, 16)>>>(c:f32[65536], a:f32[65536], b:f32[65536])
// cutrace: sixteen_results<<<(4, 4, 9), (16, 16)>>>(c, a, b)

__global__ void one_result(float *c, const float *a, const float *b)
{
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    left[y][x] = a[row * 256 + x];
    right[y][x] = b[y * 256 + column];
    __syncthreads();
    for (int again = 0; again < 8; again++)
        for (int k = 0; k < 16; k++) sum += left[y][(k + again) % 16] * right[(k + again) % 16][x];
    c[row * 256 + column] = sum;
}

__global__ void sixteen_results(float *c, const float *a, const float *b)
{
    __shared__ float left[16][64], right[16][64];
    int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 64, first = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int i = 0; i < 4; i++) {
        left[y][x + 16 * i] = a[y * 256 + top + x + 16 * i];
        right[y][x + 16 * i] = b[y * 256 + first + x + 16 * i];
    }
    __syncthreads();
    for (int again = 0; again < 8; again++)
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sums[i][j] += left[(k + again) % 16][y + 16 * i]
                        * right[(k + again) % 16][x + 16 * j];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(top + y + 16 * i) * 256 + first + x + 16 * j] = sums[i][j];
}
