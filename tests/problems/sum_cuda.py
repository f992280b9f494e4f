# problem: level1/47_Sum_reduction_over_a_dimension.py
# sizes: batch_size=4 dim1=128 dim2=255
# expect: correct
import ctypes
import subprocess
import tempfile

import torch
from torch.utils.cpp_extension import CUDA_HOME

SOURCE = r"""
__global__ void sum(const float *x, float *out, int rows, int columns)
{
    __shared__ float part[8][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    float total = 0;
    for (int row = threadIdx.y; row < rows; row += 8)
        if (column < columns)
            total += x[(blockIdx.y * rows + row) * columns + column];
    part[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int i = 1; i < 8; i++)
            total += part[i][threadIdx.x];
        out[blockIdx.y * columns + column] = total;
    }
}

extern "C" void run(const float *x, float *out, int count, int rows, int columns)
{
    sum<<<dim3((columns + 31) / 32, count), dim3(32, 8)>>>(x, out, rows, columns);
}
"""
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/kernel.cu", "w") as file:
        file.write(SOURCE)
    words = ("-shared", "-Xcompiler", "-fPIC", "-o", f"{folder}/kernel.so", f"{folder}/kernel.cu")
    subprocess.run((f"{CUDA_HOME}/bin/nvcc", *words), check=True)
    kernels = ctypes.CDLL(f"{folder}/kernel.so")


def places(*tensors):
    return [ctypes.c_void_p(each.data_ptr()) for each in tensors]


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        out = torch.empty(x.shape[0], 1, x.shape[2], device=x.device)
        kernels.run(*places(x, out), *x.shape)
        return out
