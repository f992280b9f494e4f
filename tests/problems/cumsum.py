# problem: level1/89_cumsum.py
# sizes: batch_size=64 input_shape=(512,)
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def cumsum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        cumsum[(x.shape[0],)](x, out, BLOCK=x.shape[1])
        return out
