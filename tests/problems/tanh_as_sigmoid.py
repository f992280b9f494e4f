# problem: level1/22_Tanh.py
# sizes: batch_size=16 dim=16384
# expect: output
import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.sigmoid(2 * x)  # minus one half, twice: forgotten
    tl.store(out_ptr + at, y, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        tanh[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
