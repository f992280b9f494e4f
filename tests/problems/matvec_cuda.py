# problem: level1/4_Matrix_vector_multiplication_.py
# sizes: M=64 K=4096
# expect: correct
import ctypes
import subprocess
import tempfile

import torch
from torch.utils.cpp_extension import CUDA_HOME

SOURCE = r"""
__global__ void multiply(const float *a, const float *b, float *out, int k)
{
    float total = 0;
    for (int i = threadIdx.x; i < k; i += 32)
        total += a[blockIdx.x * k + i] * b[i];
    for (int step = 16; step; step /= 2)
        total += __shfl_down_sync(~0u, total, step);
    if (threadIdx.x == 0)
        out[blockIdx.x] = total;
}

extern "C" void run(const float *a, const float *b, float *out, int m, int k)
{
    multiply<<<m, 32>>>(a, b, out, k);
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
    def forward(self, a, b):
        out = torch.empty(a.shape[0], 1, device=a.device)
        kernels.run(*places(a, b, out), *a.shape)
        return out
