"""What running the blocks of one launch in two processes could save, from what it would cost.

The blocks would be halved between two forks that write into shared memory; their rows would go
through a pipe to the one that writes the trace, in the order of the blocks; and of every access to
global memory its bytes would be marked, to see afterwards whether a block read what another wrote.
Each part is measured by itself in CPU seconds, and the sum divided by two is the best that two
cores could do.
"""

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scale_kernels import Record, record_loop, record_spmv, record_transpose

from cutrace.traces.launch_writer import LaunchWriter
from cutrace.traces.schema import Space

ROWS = ("patterns", "accesses", "paths", "control", "lanes_on")
LINE = 4
"""Bytes that a mark stands for: a word."""


class Tap:
    """Stands before the writer of a launch, and times what each of its parts would take."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("write", "send", "mark"), 0.0)
        self._offsets: list[NDArray[Any]] = []
        self._marks: NDArray[np.uint8] = np.zeros(1 << 28, np.uint8)

    def measure(self, record: Callable[[], float]) -> dict[str, float]:
        """Return the CPU seconds of a recording, and of the parts."""
        kept = {name: getattr(LaunchWriter, name) for name in (*ROWS, "close")}
        try:
            for name in ROWS:
                setattr(LaunchWriter, name, self._timed(name, kept[name]))
            LaunchWriter.close = self._clock("write", kept["close"])  # type: ignore[method-assign]
            whole = record()
        finally:
            for name, method in kept.items():
                setattr(LaunchWriter, name, method)
        whole -= self.seconds["send"] + self.seconds["mark"]
        return {"whole": whole, **self.seconds}

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method that takes rows."""
        write = self._clock("write", method)

        def take(writer: LaunchWriter, *columns: Any) -> Any:
            self._clock("send", lambda: pickle.loads(pickle.dumps(columns, 5)))()
            if name == "patterns":
                self._offsets.append(np.array(columns[1]))
            if name == "accesses":
                self._clock("mark", self._mark)(*columns)
            return write(writer, *columns)

        return take

    def _mark(self, *columns: Any) -> None:
        """Mark the words that rows in global memory touch."""
        space, base, pattern = (np.asarray(column) for column in columns[5:])
        self._offsets = [np.concatenate(self._offsets)]
        here = space == Space.GLOBAL
        _mark_words(self._marks, base[here].astype(np.int64), pattern[here], self._offsets[0])

    def _clock(self, part: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its CPU seconds are added to a part."""

        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return act(*arguments)
            finally:
                self.seconds[part] += time.process_time() - start

        return timed


@numba.njit(cache=False)
def _mark_words(marks: Any, base: Any, pattern: Any, offsets: Any) -> None:
    """Mark the word of each lane of each row."""
    for row in range(len(base)):
        for lane in range(32):
            marks[(base[row] + offsets[pattern[row], lane]) // LINE] = 1


RECORDS: dict[str, Record] = {
    "transpose 4096 x 4096": record_transpose,
    "spmv 100000 rows": record_spmv,
    "stream": lambda trace: record_loop(trace, "stream", 1 << 20, 32),
    "gather": lambda trace: record_loop(trace, "gather", 1 << 18, 32),
    "wander": lambda trace: record_loop(trace, "wander", 1 << 18, 32),
}


def measure_jobs(trace: Path) -> list[dict[str, Any]]:
    """For each recording the CPU seconds of its parts, and how much faster two cores could be."""
    found = []
    for name, record in RECORDS.items():
        record(trace)
        runs = [Tap().measure(lambda record=record: record(trace)) for _ in range(3)]  # type: ignore[misc]
        parts = min(runs, key=lambda run: run["whole"])
        fork = fork_seconds()
        halved = (parts["whole"] + parts["send"] + parts["mark"]) / 2
        best = parts["whole"] / (halved + fork)
        found.append({"kernel": name, **parts, "fork": fork, "best": best})
    return found


def fork_seconds() -> float:
    """Seconds from a fork of this process to its end."""
    start = time.perf_counter()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return time.perf_counter() - start
