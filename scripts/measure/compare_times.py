"""Estimate launches that a profiler measured, and keep both: what docs/time.md is written from.

    python scripts/measure/compare_times.py launches TRACE h200.json OUT.csv
    python scripts/measure/compare_times.py programs TRACES h200_launches.parquet OUT.csv

TRACE is of tests/validate/time/launches.cu, recorded by `cutrace record`; TRACES is a folder with a
trace `SIZE-PROGRAM.cutrace` for each program of the table, as scripts/try_collections.py records
them. Each launch is estimated at the clock that it was measured at. OUT gets a line a launch; those
that the trace has not as a whole are left out.
"""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from cutrace.analyzer.counting.turns import count_turns
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.time.estimate import Asked, estimate
from cutrace.analyzer.time.sample_warps import sample_warps
from cutrace.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import load_measured
from cutrace.traces.reader import LaunchTrace, Trace, read_trace

UNITS = ("sm", "l1tex", "lts", "dram")
COLUMNS = ("program", "launch", "kernel", "mhz", "measured", "estimate", "bound", "limit", *UNITS)
DEVICE = "h200"


def throughput(unit: str) -> str:
    """The metric of a unit's share of its best."""
    return f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed"


def compared(
    program: str, trace: Trace, launch: LaunchTrace, kernel: str, told: dict[str, Any], mhz: float
) -> list[object]:
    """A line of the table; empty if the launch has no bounds."""
    profile = analyze(replace(trace, launches=(launch,)), DEVICE).launches[0]
    if not profile.bounds:
        return []
    found = round(at_clock(profile, launch, mhz))
    shares = [told[throughput(unit)] for unit in UNITS]
    measured, bound = round(told["gpu__time_duration.sum"]), profile.bounds[0]
    head = (program, launch.number, kernel, round(mhz), measured)
    return [*head, found, round(bound.ns), bound.resource, *shares]


def at_clock(profile: LaunchProfile, launch: LaunchTrace, mhz: float) -> float:
    """The estimate of a launch at a clock, in nanoseconds."""
    device = load_device(DEVICE)
    measured, resident = load_measured(device), profile.raw.facts["resident_blocks"]
    assert measured
    counts, instructions = profile.raw.counts, launch.instructions()
    turns = partial(count_turns, launch)
    asked = Asked(
        counts, instructions, profile.bounds, launch.launch, int(resident or 1), device, mhz, turns
    )
    return estimate(asked, sample_warps(launch), measured).ns


def own_launches(trace: Path, capture: Path) -> Iterator[list[object]]:
    """The launches of launches.cu."""
    told = json.loads(capture.read_text())
    opened = read_trace(trace)
    for launch, record in zip(opened.launches, told["launches"], strict=True):
        values = dict(zip(told["metrics"], record["base"], strict=True))
        mhz = values["sm__cycles_elapsed.avg.per_second"] / 1e6
        yield compared("launches.cu", opened, launch, record["kernel"], values, mhz)


def program_launches(traces: Path, table: Path) -> Iterator[list[object]]:
    """The captured launches of programs, found in their traces by kernel, grid and block."""
    rows = pl.read_parquet(table)
    for path in sorted(traces.glob("*.cutrace")):
        size, _, program = path.stem.partition("-")
        mine = rows.filter((pl.col("size") == size) & (pl.col("program") == program))
        waiting = list(mine.iter_rows(named=True))
        for launch, trace in _launches(path) if waiting else ():
            row = next((row for row in waiting if _is(row, launch)), None)
            if row is not None:
                waiting.remove(row)
                mhz = row["gpc__cycles_elapsed.avg.per_second"] / 1e6
                yield compared(path.stem, trace, launch, _bare(row["kernel"]), row, mhz)


def _launches(path: Path) -> Iterator[tuple[LaunchTrace, Trace]]:
    trace = read_trace(path)
    yield from ((each, trace) for each in trace.launches if each.launch.kept.is_whole)


def _is(row: dict[str, Any], launch: LaunchTrace) -> bool:
    same = [_extents(row[name]) for name in ("grid", "block")]
    return _bare(row["kernel"]) in launch.launch.kernel and same == [
        list(launch.launch.grid),
        list(launch.launch.block),
    ]


def _extents(told: object) -> list[int]:
    """Three numbers as the table has them: a list, or text."""
    if isinstance(told, (list, tuple)):
        return [int(extent) for extent in told]
    return [int(part) for part in str(told).strip("()[] ").replace("x", ",").split(",")]


def _bare(kernel: str) -> str:
    return kernel.partition("(")[0].partition("<")[0].rpartition("::")[2]


def main(kind: str, source: str, measured: str, target: str) -> None:
    """Write the table."""
    found = {"launches": own_launches, "programs": program_launches}[kind]
    with open(target, "w", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(COLUMNS)
        try:
            _write(writer, found(Path(source), Path(measured)))
        except CutraceError as problem:
            raise SystemExit(str(problem)) from problem


def _write(writer: Any, lines: Iterator[Sequence[object]]) -> None:
    for line in lines:
        if line:
            writer.writerow(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
