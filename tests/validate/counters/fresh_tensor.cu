// Products by `mma.h`, as people write them: of the third set, captured before any model saw them.
// What they leave in memory is captured too.

#include <mma.h>

using namespace nvcuda;

// cutrace: whole_matrix<<<(2, 4), (64, 2)>>>(c:f32[64,64], a:f16[64,64]=random:1,
//          b:f16[64,64]=random:2, 64)
__global__ void whole_matrix(float *c, const half *a, const half *b, int n)
{
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16;
    int column = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (row >= n || column >= n)
        return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(x, a + row * n + k, n);
        wmma::load_matrix_sync(y, b + k * n + column, n);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

// cutrace: staged<<<(2, 2), 128>>>(d:f32[64,64], a, b, 64)
__global__ void staged(float *c, const half *a, const half *b, int n)
{
    __shared__ __align__(32) half s[32][32 + 8], t[32][32 + 8];
    int warp = threadIdx.x / 32, row = warp / 2 * 16, column = warp % 2 * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 32) {
        int y = threadIdx.x / 4, x = threadIdx.x % 4 * 8;
        *(uint4 *)&s[y][x] = *(const uint4 *)&a[(blockIdx.y * 32 + y) * n + k + x];
        *(uint4 *)&t[y][x] = *(const uint4 *)&b[(k + y) * n + blockIdx.x * 32 + x];
        __syncthreads();
        for (int j = 0; j < 32; j += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
            wmma::load_matrix_sync(x, &s[row][j], 40);
            wmma::load_matrix_sync(y, &t[j][column], 40);
            wmma::mma_sync(sum, x, y, sum);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(c + (blockIdx.y * 32 + row) * n + blockIdx.x * 32 + column, sum, n,
                            wmma::mem_row_major);
}

// cutrace: by_columns<<<1, 32>>>(e:f32[32,8], a, b)
__global__ void by_columns(float *c, const half *a, const half *b)
{
    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> x;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::load_matrix_sync(x, a, 64);
    wmma::load_matrix_sync(y, b, 64);
    wmma::mma_sync(sum, x, y, sum);
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] = sum.x[i] * 0.5f;
    wmma::store_matrix_sync(c, sum, 32, wmma::mem_col_major);
}

// cutrace: in_halves<<<1, 32>>>(f:f16[16,16], a, b)
__global__ void in_halves(half *c, const half *a, const half *b)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> sum;
    wmma::load_matrix_sync(sum, a + 16, 64, wmma::mem_row_major);
    for (int k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(x, a + k, 64);
        wmma::load_matrix_sync(y, b + k, 64);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

// cutrace: whole_numbers<<<1, 64>>>(g:i32[32,16], p:i8[32,16]=random:3, q:i8[16,16]=random:4)
__global__ void whole_numbers(int *c, const signed char *a, const signed char *b)
{
    int warp = threadIdx.x / 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 7);
    wmma::load_matrix_sync(x, a + warp * 256, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c + warp * 256, sum, 16, wmma::mem_row_major);
}

// cutrace: short_singles<<<1, 32>>>(h:f32[16,16], u:f32[16,64]=random:5, v:f32[64,16]=random:6)
__global__ void short_singles(float *c, const float *a, const float *b)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 64; k += 8) {
        wmma::load_matrix_sync(x, a + k, 64);
        wmma::load_matrix_sync(y, b + k * 16, 16);
        for (int i = 0; i < x.num_elements; i++)
            x.x[i] = wmma::__float_to_tf32(x.x[i] * 0.7f);
        for (int i = 0; i < y.num_elements; i++)
            y.x[i] = wmma::__float_to_tf32(y.x[i] + 0.3f);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
