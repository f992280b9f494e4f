# problem: level1/48_Mean_reduction_over_a_dimension.py
# sizes: batch_size=4 dim1=128 dim2=255
# expect: correct
import torch
import triton
import triton.language as tl


@triton.jit
def mean(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.arange(0, ROWS)[:, None]
    mask = (row < rows) & (column[None, :] < columns)
    at = (tl.program_id(1) * rows + row) * columns + column[None, :]
    total = tl.sum(tl.load(x_ptr + at, mask=mask, other=0.0), 0)
    tl.store(out_ptr + tl.program_id(1) * columns + column, total / rows, mask=column < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        count, rows, columns = x.shape
        out = torch.empty(count, columns, device=x.device)
        grid = (triton.cdiv(columns, 32), count)
        mean[grid](x, out, rows, columns, ROWS=triton.next_power_of_2(rows), BLOCK=32)
        return out
