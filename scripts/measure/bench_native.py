"""Time the bench's work as loops that `g++ -O2` compiled: what no recording can be faster than.

Of some cases there is a bare recorder besides, which keeps a row an access and looks its pattern
up, and does nothing else.
"""

import ctypes
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from bench_cases import Case

SOURCES = [str(Path(__file__).parent / f"bench_{name}.cpp") for name in ("native", "recorder")]
RECORDED = ("sparse_product", "search")
"""Cases of which there is a bare recorder."""


def build(folder: Path) -> ctypes.CDLL:
    """Compile the loops into `folder`."""
    library = folder / "bench_native.so"
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, *SOURCES, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def native(library: ctypes.CDLL, case: Case, runs: int) -> float:
    """Seconds of the case as a loop, the median of some runs, checked."""
    return median(_seconds(library[case.name], case, runs))


def bare_recorder(library: ctypes.CDLL, case: Case, runs: int) -> float | None:
    """Seconds of the bare recorder, the median of some runs in memory that was written before."""
    if case.name not in RECORDED:
        return None
    return median(_seconds(library[f"recorded_{case.name}"], case, runs + 1)[1:])


def _seconds(loop: Callable[..., object], case: Case, runs: int) -> list[float]:
    seconds = []
    for _ in range(runs):
        arrays = [np.ascontiguousarray(values).copy() for values in case.arrays().values()]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        launches = [_numbers(case, numbers, arrays[0].size) for _, _, numbers in case.launches()]
        start = time.perf_counter()
        for numbers in launches:
            loop(*pointers, *numbers)
        seconds.append(time.perf_counter() - start)
        np.testing.assert_array_equal(arrays[0], case.expected())
    return seconds


def _numbers(case: Case, numbers: tuple[int, ...], size: int) -> list[ctypes.c_int]:
    """What follows the arrays; where the kernel knows the size by its grid, the size."""
    return [ctypes.c_int(number) for number in numbers or (size,)]
