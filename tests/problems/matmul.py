# problem: level1/1_Square_matrix_multiplication_.py
# sizes: N=256
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(a_ptr, b_ptr, out_ptr, n, B: tl.constexpr):
    row = tl.program_id(1) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(0) * B + tl.arange(0, B)[None, :]
    k = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for first in range(0, n, B):
        a = tl.load(a_ptr + row * n + first + k[None, :])
        b = tl.load(b_ptr + (first + k[:, None]) * n + column)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(out_ptr + row * n + column, total)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out, n = torch.empty_like(a), a.shape[0]
        multiply[(n // 32, n // 32)](a, b, out, n, B=32)
        return out
