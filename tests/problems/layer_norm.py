# problem: level1/40_LayerNorm.py
# sizes: batch_size=8 dim1=8 dim2=8
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    centred = tl.where(at < n, x - tl.sum(x, 0) / n, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    weight = tl.load(weight_ptr + at, mask=at < n)
    bias = tl.load(bias_ptr + at, mask=at < n)
    tl.store(out_ptr + row * n + at, centred * scale * weight + bias, mask=at < n)


class ModelNew(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = torch.nn.LayerNorm(shape)

    def forward(self, x):
        out, n = torch.empty_like(x), x[0].numel()
        ln, block = self.ln, triton.next_power_of_2(n)
        layer_norm[(x.shape[0],)](x, ln.weight, ln.bias, out, n, ln.eps, BLOCK=block)
        return out
