# problem: level1/36_RMSNorm_.py
# sizes: batch_size=2 dim1=32 dim2=32
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x_ptr, out_ptr, eps, pixels, FEATURES: tl.constexpr, BLOCK: tl.constexpr):
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(1) * FEATURES * pixels + tl.arange(0, FEATURES)[:, None] * pixels
    mask = pixel[None, :] < pixels
    x = tl.load(x_ptr + at + pixel[None, :], mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, 0) / FEATURES + eps)
    tl.store(out_ptr + at + pixel[None, :], x / rms[None, :], mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.features, self.eps = features, eps

    def forward(self, x):
        out = torch.empty_like(x)
        pixels = x.shape[2] * x.shape[3]
        grid = (triton.cdiv(pixels, 64), x.shape[0])
        rms_norm[grid](x, out, self.eps, pixels, FEATURES=self.features, BLOCK=64)
        return out
