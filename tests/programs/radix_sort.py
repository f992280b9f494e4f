import numpy as np
from program import Program

N = 1000
BLOCKS = -(-N // 128)


def run(program: Program) -> None:
    keys = program.integers(0, 2**32, N, np.uint32) >> program.integers(0, 20, N, np.uint32)
    values = np.arange(N, dtype=np.uint32)
    a, a_values = program.to_device(keys), program.to_device(values)
    b, b_values = program.zeros(N, np.uint32), program.zeros(N, np.uint32)
    counts = program.zeros(16 * BLOCKS, np.uint32)
    for shift in range(0, 32, 4):
        program.launch("count_digits", BLOCKS, 128, counts, a, shift, N)
        program.launch("scan_counts", 1, 128, counts, 16 * BLOCKS)
        program.launch("scatter", BLOCKS, 128, b, b_values, a, a_values, counts, shift, N)
        a, b, a_values, b_values = b, a, b_values, a_values
    order = np.argsort(keys, kind="stable")
    program.same(a, keys[order])
    program.same(a_values, values[order])
