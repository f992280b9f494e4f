"""Write docs/time.md from what compare_times.py kept (tests/validate/time/*.csv).

python scripts/write/time_page.py
"""

import csv
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "validate" / "time"
CALIBRATION = {("launches.cu", launch) for launch in ("10", "46", "47")}
"""Launches that parameters come from: few_threads in one block, and the empty kernels."""
UNIT = {
    **{"DRAM": "dram", "L2": "lts", "L1 data": "l1tex", "shared memory": "l1tex"},
    **{"issue slots": "sm", "atomics at one address": "lts", "texture units": "l1tex"},
    **{f"{name} units": "sm" for name in
       ("half-precision", "single-precision", "double-precision", "special function")},
}  # fmt: skip
"""The unit of the profiler whose throughput is highest where a resource limits."""
Row = dict[str, str]

HEAD = """# How long a launch takes

`bound_time` is proven: no launch is faster (docs/limits.md). `estimated_time` is an estimate of
what Nsight Compute calls `gpu__time_duration`, on compute capability 9.0, whose latencies were
measured on an H200 (`scripts/measure/latencies.py`; results in
`models/devices/measured/sm_90.csv`); elsewhere there are bounds alone. This page is written by
`scripts/write/time_page.py`.

## What it is made of

Some blocks' longest warps are run alone, each instruction waiting for what it reads, each load
with the latency of the caches that served it. What an SM holds at a time makes rounds of that.
Beside it stand the times of the units: issue, pipes, L1 and shared memory, L2, DRAM, atomics at
one address, the launching of blocks. Times meet as the third root of the sum of their cubes, as
bandwidth and latency do in the measurements; what an empty kernel takes is added
(`analyzer/time/estimate.py`). The clock is what the profiler sets, 1,500 MHz on an H200; free, the
chip runs at up to 1,980 MHz, and computes up to a quarter faster.

Parameters come from those measurements and from three launches that are not counted below: two
empty kernels and one block of dependent loads, at two clocks. What the assembler may do (how far
it moves instructions, what it unrolls) was chosen on the launches of tests/validate/counters, with
those of launches.cu beside them. That a load does not pass a store was seen on PolyBench's kernels
below. Neither of the two is wholly unseen, therefore.

`sm_90.csv` has the results that parameters come from. Left out of the run's are those of
instructions that the assembler had folded away, replays of constants, most rates of L1 and shared
memory, and an atomic on floats of shared memory.

## How far off it is

"""
TAIL = """
## What it does not know

- The assembler's code: what it unrolls, hoists or keeps in registers is guessed.
- Atomics at many addresses of a few sectors, and stores that fill sectors in part: both far too
  fast here (`count`, `turn<0>`).
- Lines that a neighbour has asked for: taken for as late as the miss of the same block, no later.
- Blocks that last longer than others beyond the eight that are looked at.
- Misses of the cache for instructions, of addresses' translation, and instructions that are
  emulated otherwise than as measured.
"""


def read(name: str) -> list[Row]:
    """The launches of a table, without those that parameters come from."""
    path = KEPT / name
    if not path.exists():
        return []
    with path.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    return [row for row in rows if (row["program"], row["launch"]) not in CALIBRATION]


def ratio(row: Row) -> float:
    """The estimate over what was measured."""
    return float(row["estimate"]) / float(row["measured"])


def share(rows: Sequence[Row], test: Callable[[Row], bool]) -> str:
    """How many launches pass, in percent."""
    return f"{100 * sum(map(test, rows)) / len(rows):.0f} %" if rows else ""


def highest(row: Row) -> str:
    """The unit with the highest throughput."""
    return max(("sm", "l1tex", "lts", "dram"), key=lambda unit: float(row[unit] or 0))


def agrees(row: Row) -> bool:
    """Whether the limit is a resource of the unit that the profiler found busiest."""
    return UNIT.get(row["limit"], "sm") == highest(row)


def ordered(rows: Sequence[Row]) -> tuple[int, int]:
    """Pairs of variants of a kernel whose order is right, and all; those 5 % apart or more."""
    right = every = 0
    for one, other in combinations([r for r in rows if r["program"] == "launches.cu"], 2):
        if one["kernel"].partition("<")[0] != other["kernel"].partition("<")[0]:
            continue
        times = float(one["measured"]), float(other["measured"])
        if max(times) < 1.05 * min(times):
            continue
        every += 1
        right += (times[0] < times[1]) == (float(one["estimate"]) < float(other["estimate"]))
    return right, every


def figures(rows: Sequence[Row]) -> str:
    """The table of shares, beside what is asked for."""
    lines = [
        "| | asked | all | 10 us and longer | programs | launches.cu |",
        "|---|---|---|---|---|---|",
    ]
    long = [row for row in rows if float(row["measured"]) >= 10000]
    own = [row for row in rows if row["program"] == "launches.cu"]
    sets = (rows, long, [row for row in rows if row not in own], own)
    lines.append("| launches | 300 | " + " | ".join(str(len(s)) for s in sets) + " |")
    kernels = [str(len({(r["program"], r["kernel"]) for r in s})) for s in sets]
    lines.append("| kernels | 100 | " + " | ".join(kernels) + " |")
    tests: list[tuple[str, str, Callable[[Row], bool]]] = [
        ("bound at or below the time", "99 %", lambda r: float(r["bound"]) <= float(r["measured"])),
        ("estimate within 25 %", "67 %", lambda r: 0.75 <= ratio(r) <= 1.25),
        ("estimate within a factor of 2", "95 %", lambda r: 0.5 <= ratio(r) <= 2),
    ]
    lines += [
        f"| {what} | {asked} | " + " | ".join(share(s, test) for s in sets) + " |"
        for what, asked, test in tests
    ]
    busy = [row for row in rows if float(row["measured"]) > 20000]
    right, every = ordered(rows)
    order = f"{100 * right / every:.0f} % of {every} pairs" if every else ""
    lines.append(f"| order of two variants | 90 % | {order} | | | |")
    agreed = f"{share(busy, agrees)} of {len(busy)}"
    lines.append(f"| limit is the busiest unit, above 20 us | 85 % | {agreed} | | | |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Every launch, the worst estimates first."""
    lines = [
        "| program | kernel | measured, us | estimate | ratio | bound | limit |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -max(ratio(row), 1 / ratio(row))):
        times = [f"{float(row[name]) / 1000:,.2f}" for name in ("measured", "estimate", "bound")]
        lines.append(
            f"| {row['program']} | `{row['kernel']}` | {times[0]} | {times[1]} | {ratio(row):.2f} |"
            f" {times[2]} | {row['limit']} |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """The document."""
    rows = [*read("launches.csv"), *read("programs.csv")]
    where = (
        "Against an H200: `tests/validate/time/launches.cu` at the clocks that the profiler sets,\n"
        "programs of cuda-samples, Rodinia and PolyBench at those of the chip, caches flushed\n"
        "before each launch, the estimate at the same clock. Sizes are from 2 us up.\n\n"
    )
    return f"{HEAD}{where}{figures(rows)}{TAIL}\n## Every launch\n\n{table(rows)}"


if __name__ == "__main__":
    (ROOT / "docs" / "time.md").write_text(page(), encoding="utf-8")
