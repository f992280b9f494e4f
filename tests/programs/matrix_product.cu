// Matrix products and transposes: vector loads, tiles held in registers, double precision with
// dynamic shared memory, the transpose by tiles with diagonal blocks.

template <int TILE>
__global__ void product_tiles(float *c, const float *a, const float *b, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        as[ty][tx] = row < n && start + tx < n ? a[row * n + start + tx] : 0.0f;
        bs[ty][tx] = column < n && start + ty < n ? b[(start + ty) * n + column] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}

#define WIDE 64
#define DEEP 8
#define EACH 4

__global__ void __launch_bounds__(256) product_registers(float *c, const float *__restrict__ a,
                                                         const float *__restrict__ b, int n)
{
    __shared__ __align__(16) float as[DEEP][WIDE], bs[DEEP][WIDE];
    int t = threadIdx.x, tx = t % 16 * EACH, ty = t / 16 * EACH;
    float sums[EACH][EACH] = {};
    for (int start = 0; start < n; start += DEEP) {
        if (t < 128) {
            int row = t / 2, k = t % 2 * 4;
            float4 four = *(const float4 *)&a[(blockIdx.y * WIDE + row) * n + start + k];
            as[k][row] = four.x;
            as[k + 1][row] = four.y;
            as[k + 2][row] = four.z;
            as[k + 3][row] = four.w;
        } else {
            int k = (t - 128) / 16, column = (t - 128) % 16 * 4;
            *(float4 *)&bs[k][column] =
                *(const float4 *)&b[(start + k) * n + blockIdx.x * WIDE + column];
        }
        __syncthreads();
        for (int k = 0; k < DEEP; ++k) {
            float left[EACH], right[EACH];
            *(float4 *)left = *(float4 *)&as[k][ty];
            *(float4 *)right = *(float4 *)&bs[k][tx];
            #pragma unroll
            for (int i = 0; i < EACH; ++i)
                #pragma unroll
                for (int j = 0; j < EACH; ++j)
                    sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        *(float4 *)&c[(blockIdx.y * WIDE + ty + i) * n + blockIdx.x * WIDE + tx] =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}

__global__ void product_double(double *c, const double *a, const double *b, int rows, int inner,
                               int columns)
{
    extern __shared__ double shared[];
    int side = blockDim.x;
    double *as = shared, *bs = shared + side * side;
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * side + ty, column = blockIdx.x * side + tx;
    double sum = 0.0;
    for (int start = 0; start < inner; start += side) {
        bool in_a = row < rows && start + tx < inner, in_b = start + ty < inner && column < columns;
        as[ty * side + tx] = in_a ? a[row * inner + start + tx] : 0.0;
        bs[ty * side + tx] = in_b ? b[(start + ty) * columns + column] : 0.0;
        __syncthreads();
        for (int k = 0; k < side; ++k)
            sum += as[ty * side + k] * bs[k * side + tx];
        __syncthreads();
    }
    if (row < rows && column < columns)
        c[row * columns + column] = sum;
}

__global__ void transpose_diagonal(int *out, const int *in, int n)
{
    __shared__ int tile[32][33];
    int by = blockIdx.x, bx = (blockIdx.x + blockIdx.y) % gridDim.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y)
        tile[k][threadIdx.x] = in[(by * 32 + k) * n + bx * 32 + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += blockDim.y)
        out[(bx * 32 + k) * n + by * 32 + threadIdx.x] = tile[threadIdx.x][k];
}

__global__ void transpose_bytes(uchar4 *out, const uchar4 *in, int quads)
{
    unsigned *from = (unsigned *)in, *to = (unsigned *)out;
    int x = threadIdx.x, y = blockIdx.x, words = quads;
    unsigned r0 = from[(4 * y + 0) * words + x], r1 = from[(4 * y + 1) * words + x];
    unsigned r2 = from[(4 * y + 2) * words + x], r3 = from[(4 * y + 3) * words + x];
    unsigned low01 = __byte_perm(r0, r1, 0x5140), high01 = __byte_perm(r0, r1, 0x7362);
    unsigned low23 = __byte_perm(r2, r3, 0x5140), high23 = __byte_perm(r2, r3, 0x7362);
    to[(4 * x + 0) * words + y] = __byte_perm(low01, low23, 0x5410);
    to[(4 * x + 1) * words + y] = __byte_perm(low01, low23, 0x7632);
    to[(4 * x + 2) * words + y] = __byte_perm(high01, high23, 0x5410);
    to[(4 * x + 3) * words + y] = __byte_perm(high01, high23, 0x7632);
}
