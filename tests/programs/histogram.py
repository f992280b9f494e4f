import numpy as np
from program import Program

N = 5000


def run(program: Program) -> None:
    data = (program.integers(0, 256, N) & program.integers(0, 256, N)).astype(np.uint8)
    expected = np.bincount(data, minlength=256)
    source, bins = program.to_device(data), program.zeros(256, np.uint32)
    program.launch("histogram_global", 3, 128, bins, source, N)
    program.same(bins, expected)
    bins.fill(0)
    program.launch("histogram_shared", 3, 128, bins, source, N)
    program.same(bins, expected)
    bins.fill(0)
    program.launch("histogram_warps", 3, 128, bins, program.to_device(data.view(np.uint32)), N // 4)
    program.same(bins, expected)
    bins.fill(0)
    program.launch("histogram_peers", -(-N // 128), 128, bins, source, N)
    program.same(bins, expected)
