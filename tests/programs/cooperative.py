import numpy as np
from program import Program


def run(program: Program) -> None:
    values = program.integers(-1000, 1000, 256)
    device = program.to_device(values)
    sizes = 4, 16, 32
    sums = [program.zeros(256 // size, np.int32) for size in sizes]
    program.launch("sums_of_tiles", 2, 128, *sums, device)
    for size, array in zip(sizes, sums, strict=True):
        program.same(array, values.reshape(-1, size).sum(axis=1))

    greatest, before = program.zeros(32, np.int32), program.zeros(256, np.int32)
    program.launch("reduce_and_scan", 4, 64, greatest, before, device)
    eights = values.reshape(-1, 8)
    program.same(greatest, eights.max(axis=1))
    program.same(before, eights.cumsum(axis=1) - eights)

    keys = program.integers(0, 40, 200)
    counts = program.zeros(5, np.int32)
    program.launch("count_together", 2, 128, counts, program.to_device(keys), 200)
    thirds = np.bincount(keys % 3)
    warps = [keys[start : start + 32] for start in range(0, 200, 32)]
    seen = sum(int((w % 3 == 0).sum()) for w in warps if 33 in w)
    program.same(counts, [thirds[0], thirds[0] - 1, seen, thirds[1], thirds[2]])

    data = program.integers(0, 100, 70)
    device = program.to_device(data)
    program.launch("odd_even_sort", 5, 8, device, 70)
    program.same(device, np.sort(data))
