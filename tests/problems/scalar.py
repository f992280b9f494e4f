# problem: level1/5_Matrix_scalar_multiplication.py
# sizes: M=256 N=256
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = s * x
    tl.store(out_ptr + at, y, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x, s):
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 1024),)](x, out, s, x.numel(), BLOCK=1024)
        return out
