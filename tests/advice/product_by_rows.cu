// A product of matrices. Bad: every thread loads its row and its column. Good: a block loads tiles
// of both once; several results a thread would not help while its 16 blocks leave SMs idle.
// expect: reuse on gtx580 h200
// cutrace: badProduct<<<(4, 4), (16, 16)>>>(c:f32[64,64], a:f32[64,64]=arange, b:f32[64,64]=arange)
// cutrace: goodProduct<<<(4, 4), (16, 16)>>>(c, a, b)

__global__ void badProduct(float *c, const float *a, const float *b)
{
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[row * 64 + k] * b[k * 64 + column];
    c[row * 64 + column] = sum;
}

__global__ void goodProduct(float *c, const float *a, const float *b)
{
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < 64; first += 16) {
        left[threadIdx.y][threadIdx.x] = a[row * 64 + first + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * 64 + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * 64 + column] = sum;
}
