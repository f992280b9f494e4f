# problem: level2/1_Conv2D_ReLU_BiasAdd.py
# sizes: batch_size=2 in_channels=8 out_channels=16 height=32
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def finish(x_ptr, bias_ptr, out_ptr, pixels, BLOCK: tl.constexpr):
    channel, image = tl.program_id(1), tl.program_id(2)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = (image * tl.num_programs(1) + channel) * pixels + at
    x = tl.load(x_ptr + place, mask=at < pixels)
    y = tl.maximum(x, 0.0) + tl.load(bias_ptr + channel)
    tl.store(out_ptr + place, y, mask=at < pixels)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)  # of torch: its kernels are not counted
        out = torch.empty_like(x)
        images, channels, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        finish[(triton.cdiv(pixels, 256), channels, images)](x, self.bias, out, pixels, BLOCK=256)
        return out
