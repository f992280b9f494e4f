"""Estimate launches that a profiler measured, and keep both: what docs/time.md is written from.

    python scripts/measure/compare_times.py launches DEVICE TRACE h200.json OUT.csv
    python scripts/measure/compare_times.py programs DEVICE TRACES h200_launches.parquet OUT.csv
    python scripts/measure/compare_times.py others DEVICE TRACES h200_others.jsonl.gz OUT.csv
    python scripts/measure/compare_times.py fresh_launches DEVICE TRACE h200_fresh.json OUT.csv
    python scripts/measure/compare_times.py fresh DEVICE TRACES h100_fresh.jsonl.gz OUT.csv

TRACE is of launches.cu or more.cu of tests/validate/time, or of fresh2*.cu of
tests/validate/counters, recorded by `cutrace record` and called so; TRACES is a folder with a trace
`SIZE-PROGRAM.cutrace` for each program of the table, as scripts/try_collections.py records them, or
`PROGRAM.cutrace` for each that scripts/capture/programs.py profiled (`*_others.jsonl.gz` beside
launches.cu has what is read of its output, `*_fresh.jsonl.gz` that of programs profiled after the
model was made). Each launch is estimated at the clock that it was measured at.
Lines, one a launch, are added to OUT; launches that the trace has not as a whole are left out.
"""

import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from cutrace.analyzer.counting.atomic_contention import count_contention
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.time.estimate import Estimate, EstimateInput, estimate, sums_of_one
from cutrace.analyzer.time.host_memory import find_host_traffic
from cutrace.analyzer.time.sample_warps import sample_warps
from cutrace.analyzer.time.units import PROFILED
from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import load_measured
from cutrace.traces.reader import LaunchTrace, Trace, read_trace

UNITS = ("sm", "l1tex", "lts", "dram")
COLUMNS = (
    *("set", "program", "launch", "kernel", "mhz", "measured", "estimate", "slowest", "busiest"),
    *("bound", "limit", *UNITS),
)


def throughput(unit: str) -> str:
    """The metric of a unit's share of its best."""
    return f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed"


def compared(
    device: str,
    name: tuple[str, str],
    trace: Trace,
    launch: LaunchTrace,
    told: dict[str, Any],
    mhz: float,
) -> list[object]:
    """A line of the table for a set's program; empty without bounds."""
    profile = analyze(replace(trace, launches=(launch,)), device).launches[0]
    return line(device, name, launch, profile, told, mhz)


def line(
    device: str,
    name: tuple[str, str],
    launch: LaunchTrace,
    profile: LaunchProfile,
    told: Mapping[str, Any],
    mhz: float,
) -> list[object]:
    """The same of a launch that is analyzed."""
    if not profile.bounds:
        return []
    found, bound = at_clock(device, profile, launch, mhz), profile.bounds[0]
    shares = [told.get(throughput(unit)) or 0 for unit in UNITS]
    head = (*name, launch.number, launch.launch.signature.partition("(")[0], round(mhz))
    times = round(told["gpu__time_duration.sum"]), round(found.ns)
    return [
        *head,
        *times,
        found.parts[0].what,
        busiest(found),
        round(bound.ns),
        bound.resource,
        *shares,
    ]


def busiest(found: Estimate) -> str:
    """The profiler's name of the unit that is estimated to be busiest."""
    return PROFILED[max(found.busy, key=lambda name: found.busy[name])]


def at_clock(device: str, profile: LaunchProfile, launch: LaunchTrace, mhz: float) -> Estimate:
    """The estimate of a launch at a clock."""
    known = load_device(device)
    measured, resident = load_measured(known), profile.raw.facts["resident_blocks"]
    assert measured
    sums, instructions = sums_of_one(profile.raw.counts), launch.instructions()
    turns = partial(count_contention, launch)
    host = find_host_traffic(profile.raw.counts, launch.launch, known.chip.host_gb_per_s)
    asked = EstimateInput(
        *(sums, instructions, profile.bounds, launch.launch, int(resident or 1), known, mhz),
        *(turns, host),
    )
    return estimate(asked, sample_warps(launch), measured)


def own_launches(
    device: str, trace: Path, capture: Path, set_: str = "ours"
) -> Iterator[list[object]]:
    """The launches of a source of ours, called as the trace."""
    told = json.loads(capture.read_text())
    opened, source = read_trace(trace), f"{trace.stem}.cu"
    records = [each for each in told["launches"] if each["source"] == source]
    for launch, record in zip(opened.launches, records, strict=True):
        values = dict(zip(told["metrics"], record["base"], strict=True))
        mhz = values["sm__cycles_elapsed.avg.per_second"] / 1e6
        yield compared(device, (set_, source), opened, launch, values, mhz)


def program_launches(device: str, traces: Path, table: Path) -> Iterator[list[object]]:
    """The captured launches of programs of two sizes, found in their traces."""
    rows = pl.read_parquet(table)
    for path in sorted(traces.glob("*.cutrace")):
        size, _, program = path.stem.partition("-")
        mine = rows.filter((pl.col("size") == size) & (pl.col("program") == program))
        yield from _found(device, ("programs", path), list(mine.iter_rows(named=True)))


def other_launches(
    device: str, traces: Path, captured: Path, set_: str = "others"
) -> Iterator[list[object]]:
    """The captured launches of programs that are built and called as they are."""
    for line in gzip.decompress(captured.read_bytes()).decode().splitlines():
        run = json.loads(line)
        path = traces / f"{run['name']}.cutrace"
        rows = [
            {
                **{"kernel": row["Kernel Name"], "grid": row["Grid Size"]},
                **{"block": row["Block Size"], **row["counters"]},
            }
            for row in run["launches"]
        ]
        yield from _found(device, (set_, path), rows)


def _found(
    device: str, name: tuple[str, Path], waiting: list[dict[str, Any]]
) -> Iterator[list[object]]:
    """Find captured launches in a trace by kernel, grid and block."""
    set_, path = name
    for launch, trace in _launches(path) if waiting and path.exists() else ():
        if not waiting:
            return
        row = next((row for row in waiting if _is(row, launch)), None)
        if row is not None:
            waiting.remove(row)
            mhz = row["gpc__cycles_elapsed.avg.per_second"] / 1e6
            yield compared(device, (set_, path.stem), trace, launch, row, mhz)


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
    return kernel.partition("(")[0].partition("<")[0].rpartition("::")[2].rpartition(" ")[2]


def main(kind: str, device: str, source: str, measured: str, target: str) -> None:
    """Add to the table."""
    kinds: Mapping[str, Callable[[str, Path, Path], Iterator[list[object]]]] = {
        **{"launches": own_launches, "programs": program_launches, "others": other_launches},
        "fresh": partial(other_launches, set_="fresh programs"),
        "fresh_launches": partial(own_launches, set_="fresh kernels"),
    }
    found = kinds[kind]
    new = not Path(target).exists()
    with open(target, "a", newline="", buffering=1) as opened:
        writer = csv.writer(opened, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        try:
            writer.writerows(filter(None, found(device, Path(source), Path(measured))))
        except CutraceError as problem:
            raise SystemExit(str(problem)) from problem


if __name__ == "__main__":
    main(*sys.argv[1:])
