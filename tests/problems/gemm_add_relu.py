# problem: level2/76_Gemm_Add_ReLU.py
# sizes: batch_size=64 in_features=256 out_features=256
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def fused(x_ptr, weight_ptr, bias_ptr, out_ptr, features, outputs, B: tl.constexpr):
    row = tl.program_id(1) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(0) * B + tl.arange(0, B)[None, :]
    k = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for first in range(0, features, B):
        x = tl.load(x_ptr + row * features + first + k[None, :])
        weight = tl.load(weight_ptr + column * features + first + k[:, None])
        total = tl.dot(x, weight, total, input_precision="ieee")
    total += tl.load(bias_ptr + column)
    tl.store(out_ptr + row * outputs + column, tl.maximum(total, 0.0))


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        weight = self.gemm.weight
        outputs, features = weight.shape
        out = torch.empty(x.shape[0], outputs, device=x.device)
        grid = (outputs // 32, x.shape[0] // 32)
        fused[grid](x, weight, self.bias, out, features, outputs, B=32)
        return out
