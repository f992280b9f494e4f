"""Write docs/performance.md from docs/scale.json and docs/bench.json (of scripts/bench --json)."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from performance_goals import (
    Goal,
    byte_goals,
    memory_goals,
    oclgrind_goals,
    rate_goals,
    recorder_goals,
    sampling_goals,
    simulator_goals,
)

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.filled import filled  # noqa: E402

DOCS = ROOT / "docs"
PAGE = DOCS / "performance.md"

Measured = dict[str, Any]


def write() -> str:
    """The page."""
    scale = json.loads((DOCS / "scale.json").read_text())
    bench = DOCS / "bench.json"
    cases = json.loads(bench.read_text()) if bench.is_file() else {"cases": [], "machine": {}}
    parts = [
        HEAD.format(machine=_machine(scale["machine"])),
        *_programs(cases["cases"]),
        *_targets(scale),
        *(text for name, section in SECTIONS.items() if name in scale for text in section(scale)),
    ]
    return filled("\n\n".join(parts) + "\n")


HEAD = """# How fast, how large, how sure

cutrace's targets, and what it reaches. A **bold** result misses its target; the reason follows its
table.

Measured on {machine}. The sections from [one
core](#what-one-core-does-in-a-second) to [cost](#how-cost-grows) use four test kernels:

| kernel | each thread |
| --- | --- |
| stream | loads consecutive words |
| gather | loads random words |
| spmv | multiplies a row of a sparse matrix |
| wander | branches at random |"""


def _machine(machine: Mapping[str, object]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']},"
        f" Python {machine['python']}, NumPy {machine['numpy']}, Numba {machine['numba']}"
    )


def _programs(cases: Sequence[Measured]) -> Iterator[str]:
    """How fast a recording is beside other programs, a table per program."""
    for text, goals in (
        (OCLGRIND, oclgrind_goals(cases)),
        (SIMULATOR, simulator_goals(cases)),
        (RECORDER, recorder_goals(cases)),
    ):
        yield from _section(text, list(goals))


def _targets(scale: Measured) -> Iterator[str]:
    """The other targets but those of samples, a table per kind."""
    memory = [goal for each in scale.get("memory", ()) for goal in memory_goals(each)]
    bytes_of = [goal for size in scale.get("bytes", ()) for goal in byte_goals(size)]
    yield from _section(RATES, list(rate_goals(scale)))
    yield from _section(BYTES, bytes_of)
    yield from _section(PEAK, [goal for goal in memory if goal.target.endswith("GiB")])
    yield from _section(GROWTH, [goal for goal in memory if goal.target.endswith("%")])


def _section(text: str, goals: Sequence[Goal]) -> Iterator[str]:
    """Its text, its table, and why targets are missed."""
    if goals:
        yield text
        yield _goal_table(goals)
        yield from _reasons(goals)


def _reasons(goals: Sequence[Goal]) -> Iterator[str]:
    """Why targets are missed."""
    missed = dict.fromkeys(goal.reason for goal in goals if not goal.is_met)
    if missed:
        yield "\n".join(f"- Missed: {reason}" for reason in missed)


OCLGRIND = """## Beside other programs

The tables have the time of another program divided by the time of cutrace. 114 x means that cutrace
is 114 times as fast; the brackets have the target. cutrace's time ends when the trace is on disk.
Times in seconds are in `docs/bench.json` (`scripts/bench --json`).

Oclgrind is a simulator of OpenCL. It runs the OpenCL version of the kernel, on both cores, and
records nothing:"""
SIMULATOR = (
    """Numba's simulator runs the Python of a kernel. It is slow, so the sizes are smaller:"""
)
RECORDER = """The *bare recorder* (`scripts/measure/bench_recorder.cpp`) is a loop in C++. It does
the least that a recording must do: it runs warps and keeps the accesses, but checks no addresses
and writes no files. The ratio is cutrace's time divided by the recorder's. Less is better:"""
RATES = """## What one core does in a second

`scripts/scale` measures this and the following: CPU seconds of one process, the best of three. A
*row* of a trace is one memory instruction of a warp. To *replay* a trace is to pass its rows
through the model of a device. A cache gets a *request* for each line that a row accesses."""
BYTES = "## Size of a trace"
PEAK = """## Memory

The peak of a process with 100 million accesses of lanes. The interpreter and libraries alone take
0.1 to 0.17 GiB."""
GROWTH = """How much the peak grows from 10 to 100 million accesses:"""


def _goal_table(goals: Sequence[Goal]) -> str:
    """A row per work. A target of a whole column is in its title, others follow the results."""
    targets: dict[str, set[str]] = {}
    cells: dict[str, dict[str, str]] = {}
    for goal in goals:
        targets.setdefault(goal.column, set()).add(goal.target)
    for goal in goals:
        own = f" ({goal.target})" if len(targets[goal.column]) > 1 else ""
        cells.setdefault(goal.work, {})[goal.column] = goal.cell + own
    heads = (_title(column, some) for column, some in targets.items())
    rows = ((work, *(each.get(c, "") for c in targets)) for work, each in cells.items())
    return _table(("work", *heads), rows)


def _title(column: str, targets: set[str]) -> str:
    return f"{column} ({''.join(targets)})" if len(targets) == 1 else column


def _lines(lines: Sequence[Measured]) -> Iterator[str]:
    yield LINES
    yield _table(
        ("work", "sizes", "time grows by", "R²"),
        (
            (
                line["what"],
                f"{line['x'][0]:,} to {line['x'][-1]:,} {line['unit']}s",
                f"{_time(line['slope'])} per {line['unit']}",
                f"{line['r2']:.3f}",
            )
            for line in lines
        ),
    )


LINES = """## How cost grows

We timed each work at several sizes and fitted a straight line. R² is 1 for a perfect fit. Replay is
without caches. The traces are small, so for large ones take the rates
[above](#what-one-core-does-in-a-second). The time of replays on several devices is no straight
line: newer devices share most of a replay with each other, old ones do not."""


def _sampling(found: Sequence[Measured]) -> Iterator[str]:
    yield SAMPLING
    goals = [list(sampling_goals(m)) for m in found]
    heads = (_title(goal.column, {goal.target}) for goal in goals[0])
    yield _table(
        ("kernel", "blocks", "blocks run", "all, s", "sample, s", *heads, "samples"),
        (
            (
                m["kernel"],
                f"{m['blocks']:,}",
                m["sampled"],
                f"{m['seconds_whole']:.3f}",
                f"{m['seconds_sample']:.3f}",
                *(goal.cell for goal in some),
                m["seeds"],
            )
            for m, some in zip(found, goals, strict=True)
        ),
    )
    yield from _reasons([goal for some in goals for goal in some])


SAMPLING = """## Samples of blocks

`--sample-blocks 1%` runs 1 % of the blocks, at equal distances, and at least one block of each edge
of the grid. Of a small grid that is more than 1 %: of 391 blocks it runs 6. Each counter then
gets a 95 % confidence interval. *Coverage* is the share of samples whose interval contains the true
value, for the worst counter.

- The interval is wider than Student's. Where a few blocks do most of the work, Student's covers the
  true value in 70 to 85 % of the samples only. `analyzer/counting/interval.py` has the rule.
- A sample may miss rare blocks. If 1 in 100 blocks has 100 times the work, most samples of 40
  blocks have none of these.
- Only one block of each edge runs. Others of that edge may differ."""


SECTIONS: Mapping[str, Callable[[Measured], Iterator[str]]] = {
    "lines": lambda scale: _lines(scale["lines"]),
    "sampling": lambda scale: _sampling(scale["sampling"]),
}
"""The section of each part that scripts/scale measured."""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _time(seconds: float) -> str:
    """A time in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def main() -> None:
    """Write the page."""
    PAGE.write_text(write())


if __name__ == "__main__":
    main()
