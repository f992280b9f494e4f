"""The kernels of the bench, in any size: what they are given, and what they should compute."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import bench_data
import numpy as np
from numpy.typing import NDArray

import cutrace

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery"
CUDA = ROOT / "scripts" / "measure" / "bench_cuda"
Size: TypeAlias = int | tuple[int, int]
Launch: TypeAlias = tuple[Size, Size, tuple[int, ...]]


def new_traces(folder: Path) -> Iterator[Path]:
    """Yield a new name for each trace, so that none is replaced.

    For minutes after files were deleted, ext4 takes ten times as long to make one: it looks for a
    number that was not in use just before.
    """
    return (folder / f"{number}.cutrace" for number in count())


@dataclass(frozen=True)
class Case:
    """A kernel that cutrace records and others run; `bar` is the ratio to reach.

    `arrays` are given first, the result foremost; `launches` are grid, block and what follows.
    `line` is the launch as the command line has it, where that can give such arrays.
    """

    name: str
    source: Path
    kernel: str
    arrays: Callable[[], dict[str, NDArray[Any]]]
    launches: Callable[[], list[Launch]]
    expected: Callable[[], NDArray[Any]]
    bar: float
    line: str = ""

    def record(self, trace: Path) -> float:
        """Return the seconds from the first launch to the closed trace."""
        templates = [self.kernel] if "<" in self.kernel else []
        with cutrace.Session(trace) as gpu:
            module = gpu.compile(self.source, name_expressions=templates)
            kernel = module.get_function(self.kernel)
            arrays = [gpu.to_device(values, name) for name, values in self.arrays().items()]
            launches = self.launches()
            start = time.perf_counter()
            for grid, block, numbers in launches:
                kernel[grid, block](*arrays, *numbers)
            computed = arrays[0].copy_to_host()
        seconds = time.perf_counter() - start
        np.testing.assert_array_equal(computed, self.expected())
        return seconds


def tiled_product(n: int, bar: float) -> Case:
    a = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    b = (np.arange(n * n, dtype=np.float32) % 5).reshape(n, n)
    return Case(
        "tiled_product",
        GALLERY / "matrix_product" / "product_tiled.cu",
        "productTiled<16>",
        lambda: {"c": np.zeros_like(a), "a": a, "b": b},
        lambda: [((n // 16, n // 16), (16, 16), (n,))],
        lambda: a @ b,
        bar,
        f"productTiled<16><<<({n // 16}, {n // 16}), (16, 16)>>>"
        f"(c:f32[{n},{n}], a:f32[{n},{n}]=random:1, b:f32[{n},{n}]=random:2, {n})",
    )


def reverse_array(n: int, bar: float) -> Case:
    values = np.arange(n, dtype=np.int32)
    return Case(
        "reverse_array",
        GALLERY / "reverse_array" / "reverse_global.cu",
        "reverseGlobal",
        lambda: {"out": np.zeros_like(values), "in": values},
        lambda: [(n // 256, 256, ())],
        lambda: values[::-1],
        bar,
        f"reverseGlobal<<<{n // 256}, 256>>>(out:i32[{n}], in:i32[{n}]=arange)",
    )


def transpose(n: int, bar: float) -> Case:
    values = np.arange(n * n, dtype=np.float32).reshape(n, n)
    return Case(
        "transpose",
        GALLERY / "transpose" / "transpose_shared.cu",
        "transposeShared<16>",
        lambda: {"out": np.zeros_like(values), "in": values},
        lambda: [((n // 16, n // 16), (16, 16), (n, n))],
        lambda: values.T,
        bar,
        f"transposeShared<16><<<({n // 16}, {n // 16}), (16, 16)>>>"
        f"(out:f32[{n},{n}], in:f32[{n},{n}]=arange, {n}, {n})",
    )


def histogram(n: int, bar: float) -> Case:
    blocks = min(256, n // 256)
    return Case(
        "histogram",
        GALLERY / "histogram" / "histogram_static.cu",
        "histogramStatic",
        lambda: {"bins": np.zeros(256, np.uint32), "in": bench_data.keys(n)},
        lambda: [(blocks, 256, (n,))],
        lambda: np.bincount(bench_data.keys(n) % 256, minlength=256).astype(np.uint32),
        bar,
        f"histogramStatic<<<{blocks}, 256>>>(bins:u32[256], in:i32[{n}]=random:9, {n})",
    )


def bitonic_sort(n: int, bar: float) -> Case:
    return Case(
        "bitonic_sort",
        GALLERY / "bitonic_sort" / "bitonic_sort.cu",
        "bitonicSort",
        lambda: {"keys": bench_data.keys(n)},
        lambda: [(n // 256, 256, ())],
        lambda: np.sort(bench_data.keys(n).reshape(-1, 256), axis=1).reshape(-1),
        bar,
        f"bitonicSort<<<{n // 256}, 256>>>(keys:i32[{n}]=random:9)",
    )


def mandelbrot(size: int, limit: int, bar: float) -> Case:
    return Case(
        "mandelbrot",
        CUDA / "mandelbrot.cu",
        "mandelbrot",
        lambda: {"counts": np.zeros((size, size), np.int32)},
        lambda: [((size // 16, size // 16), (16, 16), (size, limit))],
        lambda: bench_data.mandelbrot_counts(size, limit),
        bar,
        f"mandelbrot<<<({size // 16}, {size // 16}), (16, 16)>>>"
        f"(counts:i32[{size},{size}], {size}, {limit})",
    )


def sparse_product(rows: int, bar: float) -> Case:
    def arrays() -> dict[str, NDArray[Any]]:
        a, ones = bench_data.matrix(rows), np.ones(rows, np.float32)
        values = np.ones(a.column.size, np.float32)
        return {"y": 0 * ones, "start": a.start, "column": a.column, "value": values, "x": ones}

    return Case(
        "sparse_product",
        CUDA / "sparse_product.cu",
        "sparseProduct",
        arrays,
        lambda: [(-(-rows // 256), 256, (rows,))],
        lambda: bench_data.row_sums(rows),
        bar,
    )


def search(nodes: int, bar: float) -> Case:
    def arrays() -> dict[str, NDArray[Any]]:
        edges, first = bench_data.graph(nodes), bench_data.first_levels(nodes)
        return {"levels": first, "start": edges.start, "edges": edges.column}

    return Case(
        "search",
        CUDA / "search.cu",
        "search",
        arrays,
        lambda: [
            (-(-nodes // 256), 256, (nodes, level))
            for level in range(bench_data.levels(nodes).max() + 1)
        ],
        lambda: bench_data.levels(nodes),
        bar,
    )


def large_cases() -> list[Case]:
    """The sizes that Oclgrind runs."""
    return [
        tiled_product(256, 80.0),
        reverse_array(1 << 20, 25.0),
        transpose(1024, 25.0),
        histogram(1 << 20, 20.0),
        bitonic_sort(1 << 20, 20.0),
        mandelbrot(512, 256, 20.0),
        sparse_product(bench_data.ROWS, 20.0),
        search(bench_data.NODES, 20.0),
    ]


SMALL = {
    "tiled_product": 160,
    "reverse_array": 1 << 17,
    "transpose": 192,
    "histogram": 1 << 15,
    "bitonic_sort": 1 << 14,
    "mandelbrot": 384,
    "sparse_product": 1 << 17,
    "search": 1 << 14,
}
"""Sizes for which Numba's simulator needs half a minute each: ratios are not those of a launch's
floor of some milliseconds."""


def small_cases() -> list[Case]:
    """The sizes that Numba's simulator runs."""
    return [
        tiled_product(SMALL["tiled_product"], 1000.0),
        reverse_array(SMALL["reverse_array"], 1000.0),
        transpose(SMALL["transpose"], 1000.0),
        histogram(SMALL["histogram"], 1000.0),
        bitonic_sort(SMALL["bitonic_sort"], 1000.0),
        mandelbrot(SMALL["mandelbrot"], 64, 1000.0),
        sparse_product(SMALL["sparse_product"], 1000.0),
        search(SMALL["search"], 1000.0),
    ]
