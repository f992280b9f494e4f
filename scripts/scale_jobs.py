"""What running the blocks of one launch in two threads could save at best.

Machine code of the compiled engine runs without Python's lock, so that two waves of blocks could
run at once; what is between (numbering patterns in order of the rows, sharing histories, handing
rows to the writer, which has a thread of its own) takes turns. Every word of global memory that a
block reads or writes would have to be marked, to see afterwards whether one read what another
wrote. Each part is measured in CPU seconds of one thread; the best is half of the machine code and
of the marks, and all of the rest.
"""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np
from bench_cases import large_cases
from scale_kernels import Record, record_loop, record_spmv, record_transpose

from cutrace.tracer.host.function import ConfiguredFunction
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Space

wave: Any = import_module("cutrace.tracer.engine.compiled.wave")
WORD = 4
"""Bytes that a mark stands for."""

RECORDS: dict[str, Record] = {
    "transpose 4096 x 4096": record_transpose,
    "spmv 100000 rows": record_spmv,
    "stream": lambda trace: record_loop(trace, "stream", 1 << 20, 32),
    "gather": lambda trace: record_loop(trace, "gather", 1 << 18, 32),
    "wander": lambda trace: record_loop(trace, "wander", 1 << 18, 32),
    **{c.name: c.record for c in large_cases() if c.name in ("mandelbrot", "tiled_product")},
}


class Tap:
    """Counts the CPU seconds of this thread in launches, and in the machine code of kernels."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("launch", "machine"), 0.0)

    def measure(self, record: Callable[[], float]) -> dict[str, float]:
        """Return the seconds that a recording takes in each."""
        call, routines = ConfiguredFunction.__call__, wave.routines
        run, account = routines()
        try:
            ConfiguredFunction.__call__ = self._clock("launch", call)  # type: ignore[method-assign]
            wave.routines = lambda: (self._clock("machine", run), account)
            record()
        finally:
            ConfiguredFunction.__call__ = call  # type: ignore[method-assign]
            wave.routines = routines
        return self.seconds

    def _clock(self, part: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its CPU seconds are added to a part."""

        def timed(*arguments: Any) -> Any:
            start = time.thread_time()
            try:
                return act(*arguments)
            finally:
                self.seconds[part] += time.thread_time() - start

        return timed


def measure_jobs(trace: Path) -> list[dict[str, Any]]:
    """For each recording its CPU seconds, and how much faster two threads could be."""
    found = []
    for name, record in RECORDS.items():
        record(trace)
        runs = [Tap().measure(lambda record=record: record(trace)) for _ in range(3)]  # type: ignore[misc]
        parts = min(runs, key=lambda run: run["launch"])
        parts["mark"] = mark_seconds(trace)
        halved = (parts["machine"] + parts["mark"]) / 2
        best = parts["launch"] / (parts["launch"] - parts["machine"] + halved)
        found.append({"kernel": name, **parts, "best": best})
    return found


def mark_seconds(trace: Path) -> float:
    """CPU seconds to mark the words that the rows of a launch in global memory touch."""
    (launch,) = read_trace(trace).launches
    _, offsets = launch.patterns()
    marks, seconds = np.zeros(1 << 28, np.uint8), 0.0
    for batch in launch.access_batches():
        rows = batch.filter(batch["space"].to_numpy() == Space.GLOBAL)
        base, pattern = rows["base"].to_numpy().astype(np.int64), rows["pattern"].to_numpy()
        _mark_words(marks, base[:0], pattern[:0], offsets)  # compiled before it is timed
        start = time.thread_time()
        _mark_words(marks, base, pattern, offsets)
        seconds += time.thread_time() - start
    return seconds


@numba.njit(cache=False)
def _mark_words(marks: Any, base: Any, pattern: Any, offsets: Any) -> None:
    """Mark the word of each lane of each row."""
    for row in range(len(base)):
        for lane in range(32):
            marks[(base[row] + offsets[pattern[row], lane]) // WORD] = 1
