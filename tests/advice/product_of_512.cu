// A product of 512 x 512: one result a thread, from tiles of 16 x 16, takes two words of shared
// memory for each multiply-add. With 4 x 4 results a thread of a block's 64 x 64, 8 for 16.
// expect: register_tile on h100 h200
// cutrace: one_result<<<(32, 32), (16, 16)>>>(c:f32[262144], a:f32[262144], b:f32[262144])
// cutrace: sixteen_results<<<(16, 16), (64, 4)>>>(d:f32[1048576], e:f32[131072], f:f32[131072])

__global__ void one_result(float *c, const float *a, const float *b)
{
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int start = 0; start < 512; start += 16) {
        left[y][x] = a[row * 512 + start + x];
        right[y][x] = b[(start + y) * 512 + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * 512 + column] = sum;
}

// a is stored by columns: both tiles have the rows of one k
__global__ void sixteen_results(float *c, const float *a, const float *b)
{
    __shared__ float left[16][64], right[16][64];
    int x = threadIdx.x % 16, y = threadIdx.x / 16 * 4 + threadIdx.y;
    int top = blockIdx.y * 64, first = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int start = 0; start < 128; start += 16) {
        for (int k = threadIdx.y; k < 16; k += 4) {
            left[k][threadIdx.x] = a[(start + k) * 1024 + top + threadIdx.x];
            right[k][threadIdx.x] = b[(start + k) * 1024 + first + threadIdx.x];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += left[k][y + 16 * i] * right[k][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(top + y + 16 * i) * 1024 + first + x + 16 * j] = sums[i][j];
}
