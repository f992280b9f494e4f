"""What running the blocks of one launch in several threads saves: the same recordings with one job
and with more, by turns, from the launch to the closed trace. Clock time is the best of some runs,
and says little on a machine that does other work; CPU seconds of all threads are beside it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench_cases import mandelbrot, tiled_product
from scale_kernels import Record, record_loop, record_spmv, record_transpose

from cutrace.tracer.host.launch.function import ConfiguredFunction
from cutrace.tracer.host.selection.watch import choose_watch, watching
from cutrace.tracer.host.session import Session

RUNS = 5
MOST_JOBS = 8

RECORDS: dict[str, Record] = {
    "transpose 4096 x 4096": record_transpose,
    "spmv 100000 rows": record_spmv,
    "spmv 1600000 rows": lambda trace: record_spmv(trace, 1_600_000),
    "stream": lambda trace: record_loop(trace, "stream", 1 << 20, 32),
    "gather": lambda trace: record_loop(trace, "gather", 1 << 18, 32),
    "wander": lambda trace: record_loop(trace, "wander", 1 << 18, 32),
    "tiled product 512^3": tiled_product(512, 0).record,
    "mandelbrot 1024^2 x 256": mandelbrot(1024, 256, 0).record,
}


def measure_jobs(trace: Path) -> list[dict[str, Any]]:
    """For each recording and number of jobs its seconds by the clock and of all threads."""
    cores = os.cpu_count() or 1
    numbers = sorted({1, 2, min(4, cores), min(MOST_JOBS, cores)})
    found = []
    for name, record in RECORDS.items():
        record(trace)
        best = {jobs: (float("inf"), float("inf")) for jobs in numbers}
        for _ in range(RUNS):
            for jobs in numbers:
                seconds = _clock(lambda record=record: record(trace), jobs)  # type: ignore[misc]
                best[jobs] = min(best[jobs], seconds)
        found.append({
            "kernel": name,
            "jobs": numbers,
            "clock": [best[jobs][0] for jobs in numbers],
            "cpu": [best[jobs][1] for jobs in numbers],
        })  # fmt: skip
    return found


def _clock(record: Callable[[], float], jobs: int) -> tuple[float, float]:
    """Return seconds by the clock and of all threads, from the launch to the closed trace."""
    launch = ConfiguredFunction.__call__
    times: list[tuple[float, float]] = []

    def note(*_: object) -> None:
        times.append((time.perf_counter(), time.process_time()))

    def noting(self: ConfiguredFunction, *arguments: object) -> None:
        note()
        launch(self, *arguments)

    with (
        watching(choose_watch(jobs=jobs)),
        patch.object(ConfiguredFunction, "__call__", noting),
        patch.object(Session, "at_close", [note]),
    ):
        record()
    (began, before), *_, (ended, after) = times
    return ended - began, after - before
