// c = a b by tiles: a block reads each tile of a and of b once. n is a multiple of TILE.
// cutrace: productTiled<16><<<(4, 4), (16, 16)>>>(c:f32[64,64],
//     a:f32[64,64]=random:1, b:f32[64,64]=random:2, 64)
// cutrace: productTiled<32><<<(2, 2), (32, 32)>>>(c, a, b, 64)
// cutrace: productTiled<4><<<(2, 2), (4, 4)>>>(c8:f32[8,8],
//     a8:f32[8,8]=random:1, b8:f32[8,8]=random:2, 8)
// cutrace: productTiled<2><<<(4, 4), (2, 2)>>>(c8, a8, b8, 8)

template <int TILE>
__global__ void productTiled(float *c, const float *a, const float *b, int n)
{
    __shared__ float tileA[TILE][TILE];
    __shared__ float tileB[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int column = blockIdx.x * TILE + x;

    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tileA[y][x] = a[row * n + start + x];
        tileB[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += tileA[y][k] * tileB[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
