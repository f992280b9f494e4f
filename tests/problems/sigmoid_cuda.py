# problem: level1/21_Sigmoid.py
# sizes: batch_size=16 dim=16384
# expect: correct
import ctypes
import subprocess
import tempfile

import torch
from torch.utils.cpp_extension import CUDA_HOME

SOURCE = r"""
__global__ void sigmoid(const float4 *x, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        out[i] = make_float4(1 / (1 + expf(-v.x)), 1 / (1 + expf(-v.y)), 1 / (1 + expf(-v.z)),
                             1 / (1 + expf(-v.w)));
    }
}

extern "C" void run(const float4 *x, float4 *out, int n)
{
    sigmoid<<<(n / 4 + 255) / 256, 256>>>(x, out, n / 4);
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
    def forward(self, x):
        out = torch.empty_like(x)
        kernels.run(*places(x, out), x.numel())
        return out
