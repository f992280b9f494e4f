// c = a b by tiles, for any n: what lies beyond the matrices is taken as zero.
// cutrace: productPadded<16><<<(4, 4), (16, 16)>>>(c:f32[50,50],
//     a:f32[50,50]=random:1, b:f32[50,50]=random:2, 50)

template <int TILE>
__global__ void productPadded(float *c, const float *a, const float *b, int n)
{
    __shared__ float tileA[TILE][TILE];
    __shared__ float tileB[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int column = blockIdx.x * TILE + x;

    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        bool hasA = row < n && start + x < n;
        bool hasB = start + y < n && column < n;
        tileA[y][x] = hasA ? a[row * n + start + x] : 0.0f;
        tileB[y][x] = hasB ? b[(start + y) * n + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += tileA[y][k] * tileB[k][x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}
