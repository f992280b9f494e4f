// A product of matrices by tiles of 32 and of 16. Both have one result a thread, but their 4 and 16
// blocks leave most SMs idle, so that latency limits them.
// expect: nothing on h200
// cutrace: tiled<<<(2, 2), (32, 32)>>>(C:f32[64,64], A:f32[64,64]=random:1, B:f32[64,64]=random:2, 64)
// cutrace: tiled16<<<(4, 4), (16, 16)>>>(C, A, B, 64)

template <int T> __device__ void product(float *C, const float *A, const float *B, int n)
{
    __shared__ float a[T][T], b[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float s = 0;
    for (int t = 0; t < n / T; ++t) {
        a[threadIdx.y][threadIdx.x] = A[row * n + t * T + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(t * T + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < T; ++k)
            s += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    C[row * n + col] = s;
}

__global__ void tiled(float *C, const float *A, const float *B, int n)
{
    product<32>(C, A, B, n);
}

__global__ void tiled16(float *C, const float *A, const float *B, int n)
{
    product<16>(C, A, B, n);
}
