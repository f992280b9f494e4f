import numpy as np
from program import Program


def run(program: Program) -> None:
    values = program.integers(0, 2**32, 1024, np.uint32)
    device = program.to_device(values)
    program.launch("bitonic_shared", 4, 128, device)
    for size in (512, 1024):
        stride = size // 2
        while stride:
            program.launch("bitonic_global", 4, 128, device, size, stride)
            stride //= 2
    program.same(device, np.sort(values))

    n = 600
    numbers = program.integers(-50, 50, n)
    a, b, run_length = program.to_device(numbers), program.zeros(n, np.int32), 1
    while run_length < n:
        each = min(8, 2 * run_length)
        program.launch("merge_runs", -(-n // (64 * each)), 64, b, a, n, run_length, each)
        a, b, run_length = b, a, 2 * run_length
    program.same(a, np.sort(numbers))

    short = program.integers(-(2**15), 2**15, 300, np.int16)
    out = program.zeros(300, np.int16)
    program.launch("rank_sort", 2, 64, out, program.to_device(short), 300, shared=600)
    program.same(out, np.sort(short))
