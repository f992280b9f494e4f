"""Time the bench's work as loops that `g++ -O2` compiled: what no recording can be faster than."""

import ctypes
import subprocess
import time
from pathlib import Path
from statistics import median

import numpy as np
from bench_cases import Case

SOURCE = Path(__file__).parent / "bench_native.cpp"


def build(folder: Path) -> ctypes.CDLL:
    """Compile the loops into `folder`."""
    library = folder / "bench_native.so"
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, str(SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def native(library: ctypes.CDLL, case: Case, runs: int) -> float:
    """Seconds of the case as a loop, the median of some runs, checked."""
    seconds = []
    for _ in range(runs):
        arrays = [np.ascontiguousarray(values).copy() for values in case.arrays().values()]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        launches = [_numbers(case, numbers, arrays[0].size) for _, _, numbers in case.launches()]
        start = time.perf_counter()
        for numbers in launches:
            library[case.name](*pointers, *numbers)
        seconds.append(time.perf_counter() - start)
        np.testing.assert_array_equal(arrays[0], case.expected())
    return median(seconds)


def _numbers(case: Case, numbers: tuple[int, ...], size: int) -> list[ctypes.c_int]:
    """What follows the arrays; where the kernel knows the size by its grid, the size."""
    return [ctypes.c_int(number) for number in numbers or (size,)]
