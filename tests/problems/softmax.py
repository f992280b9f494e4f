# problem: level1/23_Softmax.py
# sizes: batch_size=64 dim=1000
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    y = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * columns + at, y / tl.sum(y, 0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
