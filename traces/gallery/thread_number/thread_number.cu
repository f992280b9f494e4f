// Number the threads of a grid of blocks in all their dimensions: each writes its own cell once.
// cutrace: threadNumber<<<(4, 3, 2), (3, 2)>>>(cells:i32[144]=zeros)

__global__ void threadNumber(int *cells)
{
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int number = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    cells[number] += number + 1;
}
