// Kernels that launch kernels.
#include <cstdio>
#include <cuda_runtime.h>
__global__ void child(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }
__global__ void parent_loop(float *a, int n, int times) { if (!threadIdx.x) for (int i = 0; i < times; i++) child<<<(n + 255) / 256, 256>>>(a, n); }
__global__ void parent_each(float *a, int n) { child<<<1, 32>>>(a + threadIdx.x * 32, n); }
__global__ void parent_deep(float *a, int n, int depth) { if (!threadIdx.x) { if (depth) parent_deep<<<1, 32>>>(a, n, depth - 1); else child<<<(n + 255) / 256, 256>>>(a, n); } }
__global__ void parent_tail(float *a, int n) { if (!threadIdx.x) child<<<(n + 255) / 256, 256, 0, cudaStreamTailLaunch>>>(a, n); }
__global__ void parent_forget(float *a, int n, int times) { if (!threadIdx.x) for (int i = 0; i < times; i++) child<<<(n + 255) / 256, 256, 0, cudaStreamFireAndForget>>>(a, n); }
int main() {
    float *a; cudaMalloc(&a, 64 << 20); cudaMemset(a, 0, 64 << 20);
    child<<<64, 256>>>(a, 16384);
    parent_loop<<<1, 32>>>(a, 16384, 1); parent_loop<<<1, 32>>>(a, 16384, 8); parent_loop<<<1, 32>>>(a, 1 << 20, 8); parent_each<<<1, 64>>>(a, 32); parent_each<<<16, 64>>>(a, 32);
    parent_deep<<<1, 32>>>(a, 16384, 4); parent_tail<<<1, 32>>>(a, 16384); parent_forget<<<1, 32>>>(a, 16384, 8);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
