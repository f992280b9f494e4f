# problem: level1/25_Swish.py
# sizes: batch_size=16 dim=16384
# expect: correct
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>

__global__ void swish(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] / (1 + expf(-x[i]));
}

torch::Tensor run(torch::Tensor x)
{
    auto out = torch::empty_like(x);
    swish<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
"""
module = load_inline("swish", "torch::Tensor run(torch::Tensor x);", SOURCE, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.run(x)
