// cutrace: scale<<<(32, 128), (32, 8)>>>(out:f32[1048576], in:f32[1048576]=arange, 1024)
#include <cstdio>

__global__ void scale(float *out, const float *in, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    out[row * n + column] = 2.0f * in[row * n + column];
}

__global__ void reverse(float *out, const float *in, int n)
{
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = in[i];
    __syncthreads();
    out[n - 1 - i] = part[threadIdx.x];
}

int main()
{
    int n = 1024;
    float *in, *out;
    cudaMalloc(&in, n * n * sizeof(float));
    cudaMalloc(&out, n * n * sizeof(float));
    cudaMemset(in, 0, n * n * sizeof(float));
    scale<<<dim3(32, 128), dim3(32, 8)>>>(out, in, n);
    reverse<<<16, 256>>>(out, in, 4096);
    scale<<<dim3(32, 128), dim3(32, 8)>>>(out, in, n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
// cutrace: reverse<<<16, 256>>>(out, in, 4096)
