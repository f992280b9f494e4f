// Launches that do nothing, and what launching costs, by grid, block and shared memory; loops that
// count, of which h100_empty.json has 31 cycles a round: (1,268,096 - 81,376) ns / 61,440 x 1.605.

// cutrace: nothing<<<1, 32>>>()
// cutrace: nothing<<<132, 32>>>()
// cutrace: nothing<<<132, 1024>>>()
// cutrace: nothing<<<1056, 256>>>()
// cutrace: nothing<<<16384, 32>>>()
// cutrace: nothing<<<16384, 256>>>()
// cutrace: nothing<<<16384, 1024>>>()
// cutrace: nothing<<<131072, 256>>>()
extern "C" __global__ void nothing() {}
// cutrace: asks<<<1, 32>>>(a:f32[1048576], 1)
// cutrace: asks<<<132, 256>>>(a, 1)
// cutrace: asks<<<16384, 256>>>(a, 1)
extern "C" __global__ void asks(float *a, int n) { if (n == 7) a[0] = 1; }
// cutrace: stores<<<1, 32>>>(a, 1)
// cutrace: stores<<<132, 256>>>(a, 1)
// cutrace: stores<<<4096, 256>>>(a, 1)
extern "C" __global__ void stores(float *a, int n) { a[blockIdx.x * blockDim.x + threadIdx.x] = n; }
// cutrace: shares<<<1, 256>>>(a, 7)
// cutrace: shares<<<16384, 256>>>(a, 7)
extern "C" __global__ void shares(float *a, int n)
{
    __shared__ float s[8192];
    s[threadIdx.x] = n;
    __syncthreads();
    if (s[(threadIdx.x + n) & 255] == 8) a[0] = 1;
}
// cutrace: follows<<<1, 32>>>(next:i32[1048576], a, 64)
// cutrace: follows<<<1, 32>>>(next, a, 256)
extern "C" __global__ void follows(int *next, float *a, int n)
{
    int at = threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < n; k++) at = next[(at + k * 4096) & 1048575];
    if (at == 77) a[0] = 1;
}
// cutrace: loops<<<1, 32>>>(a, 4096)
// cutrace: loops<<<1, 32>>>(a, 65536)
extern "C" __global__ void loops(float *a, int n)
{
    float v = n;
    #pragma unroll 1
    for (int k = 0; k < n; k++) v = v * 0.5f + 1;
    if (v == 7) a[0] = 1;
}
