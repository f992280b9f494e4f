"""Time a kernel in Numba's CUDA simulator: `NUMBA_ENABLE_CUDASIM=1 python
scripts/measure/bench_simulator.py NAME`.

The kernels are those of the bench in Numba's words, in the sizes of `bench_cases.SMALL`; the first
array is compared with what it should hold. Prints the seconds from launch to return.
"""

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from bench_cases import small_cases
from numba import float32, int32, uint32

cuda: Any = import_module("numba.cuda")
jit: Callable[[Callable[..., None]], Any] = cuda.jit


@jit
def tiled_product(c: Any, a: Any, b: Any, n: int) -> None:
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 16 + y, cuda.blockIdx.x * 16 + x
    total = np.float32(0)
    for start in range(0, n, 16):
        tile_a[y, x] = a[row, start + x]
        tile_b[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(16):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    c[row, column] = total


@jit
def reverse_array(out: Any, values: Any) -> None:
    place = cuda.grid(1)
    out[cuda.gridsize(1) - 1 - place] = values[place]


@jit
def transpose(out: Any, values: Any, width: int, height: int) -> None:
    tile = cuda.shared.array((16, 16), float32)
    x = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    y = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    if x < width and y < height:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = values[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 16 + cuda.threadIdx.x
    y = cuda.blockIdx.x * 16 + cuda.threadIdx.y
    if x < height and y < width:
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@jit
def histogram(bins: Any, values: Any, n: int) -> None:
    own = cuda.shared.array(256, uint32)
    own[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        cuda.atomic.add(own, values[i] % 256, 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, cuda.threadIdx.x, own[cuda.threadIdx.x])


@jit
def bitonic_sort(keys: Any) -> None:
    shared = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    shared[t] = keys[cuda.grid(1)]
    cuda.syncthreads()
    run = 2
    while run <= cuda.blockDim.x:
        distance = run // 2
        while distance > 0:
            partner = t ^ distance
            if t < partner:
                mine, theirs = shared[t], shared[partner]
                if (mine > theirs) == ((t & run) == 0):
                    shared[t], shared[partner] = theirs, mine
            cuda.syncthreads()
            distance //= 2
        run *= 2
    keys[cuda.grid(1)] = shared[t]


@jit
def mandelbrot(counts: Any, size: int, limit: int) -> None:
    x, y = cuda.grid(2)
    scale = np.float32(0.005859375)
    cr = np.float32(x) * scale - np.float32(2)
    ci = np.float32(y) * scale - np.float32(1.5)
    zr, zi, count = np.float32(0), np.float32(0), 0
    while count < limit and zr * zr + zi * zi < 4:
        zr, zi = zr * zr - zi * zi + cr, np.float32(2) * zr * zi + ci
        count += 1
    counts[y, x] = count


@jit
def sparse_product(y: Any, start: Any, column: Any, value: Any, x: Any, rows: int) -> None:
    row = cuda.grid(1)
    if row < rows:
        total = np.float32(0)
        for k in range(start[row], start[row + 1]):
            total += value[k] * x[column[k]]
        y[row] = total


@jit
def search(levels: Any, start: Any, edges: Any, nodes: int, level: int) -> None:
    node = cuda.grid(1)
    if node < nodes and levels[node] == level:
        for k in range(start[node], start[node + 1]):
            if levels[edges[k]] < 0:
                levels[edges[k]] = level + 1


def run(name: str) -> float:
    """Return the seconds of a case, checked."""
    case = next(case for case in small_cases() if case.name == name)
    arrays = [cuda.to_device(values) for values in case.arrays().values()]
    start = time.perf_counter()
    for grid, block, numbers in case.launches():
        globals()[name][grid, block](*arrays, *numbers)
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(arrays[0].copy_to_host(), case.expected())
    return seconds


if __name__ == "__main__":
    print(run(sys.argv[1]))
