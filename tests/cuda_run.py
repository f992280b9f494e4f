"""Helpers for tests of the engine: compile a few lines of CUDA C++, run them, look at the rows."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.traces.reader import LaunchTrace

Dimension = int | tuple[int, ...]


def run_kernel(
    source: str, grid: Dimension, block: Dimension, *arguments: Any, shared: int = 0
) -> list[NDArray[Any]]:
    """Run the only kernel of `source`; return the arrays among its arguments afterwards."""
    with traced_kernel(source, grid, block, *arguments, shared=shared) as (results, _):
        return results


def run_under_both(
    source: str, grid: Dimension, block: Dimension, *arguments: Any
) -> list[NDArray[Any]]:
    """As run_kernel, by both engines, which have to leave the same trace."""
    results: list[list[NDArray[Any]]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        results.append(_run(gpu, source, (grid, block, 0, 0), arguments))
        return results[-1]

    with tempfile.TemporaryDirectory() as folder:
        assert_same_under_both(Path(folder), run)
    return results[-1]


def _run(
    gpu: cutrace.Session, source: str, configuration: tuple[Any, ...], arguments: tuple[Any, ...]
) -> list[NDArray[Any]]:
    module = gpu.compile(source + "\n")
    arrays = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    (name,) = module.kernels
    module.get_function(name)[configuration](*arrays)
    return [
        device.copy_to_host()
        for device, host in zip(arrays, arguments, strict=True)
        if isinstance(host, np.ndarray)
    ]


@contextmanager
def traced_kernel(
    source: str, grid: Dimension, block: Dimension, *arguments: Any, shared: int = 0
) -> Iterator[tuple[list[NDArray[Any]], LaunchTrace]]:
    """Run the only kernel of `source`; give its arrays afterwards and its trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.cutrace"
        with cutrace.Session(path) as gpu:
            results = _run(gpu, source, (grid, block, 0, shared), arguments)
        yield results, cutrace.read_trace(path).launches[0]


def paths_of(trace: LaunchTrace, warp: int, block: int = 0) -> list[tuple[int, int, int]]:
    """Return what a warp ran: (basic block, active lanes, taken lanes), repeats written out."""
    paths = trace.paths().to_pylist()
    rows: list[tuple[int, int, int]] = []
    for batch in trace.control_batches():
        for row in batch.to_pylist():
            if (row["block"], row["warp"]) == (block, warp):
                path = paths[row["path"]]
                for values in zip(*path.values(), strict=True):
                    number, active, not_taken, targets, times = values
                    rows += [(number, active, active & ~not_taken if targets else 0)] * times
    return rows
