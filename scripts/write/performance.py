"""Write docs/performance.md from docs/scale.json and docs/bench.json (of scripts/bench --json)."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from performance_goals import (
    Goal,
    bench_goals,
    byte_goals,
    memory_goals,
    rate_goals,
    sampling_goals,
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
        *_targets(cases["cases"], scale),
        *(text for name, section in SECTIONS.items() if name in scale for text in section(scale)),
    ]
    return filled("\n\n".join(parts) + "\n")


HEAD = """# How fast, how large, how sure

Measured on {machine}. `scripts/bench --json` gives medians of wall time, for
the first table (seconds in `docs/bench.json`). `scripts/scale` gives CPU seconds of one process
after a first run, the best of three, for the rest. Its kernels: *stream* loads consecutive words,
*gather* random words, *spmv* multiplies a sparse matrix, in *wander* each lane branches at random.
A *row* of a trace is one memory instruction of a warp."""


def _machine(machine: Mapping[str, object]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']},"
        f" Python {machine['python']}, NumPy {machine['numpy']}, Numba {machine['numba']}"
    )


def _targets(cases: Sequence[Measured], scale: Measured) -> Iterator[str]:
    """Every target with its result, a table per kind; those of samples have a section."""
    yield TARGETS
    memory = [goal for each in scale.get("memory", ()) for goal in memory_goals(each)]
    tables = [
        list(bench_goals(cases)),
        list(rate_goals(scale)),
        [goal for size in scale.get("bytes", ()) for goal in byte_goals(size)],
        memory,
    ]
    for goals in filter(None, tables):
        yield from (MEMORY,) if goals is memory else ()
        yield _goal_table(goals)
    yield from _reasons([goal for goals in tables for goal in goals])


def _reasons(goals: Sequence[Goal]) -> Iterator[str]:
    """Why targets are missed."""
    missed = dict.fromkeys(goal.reason for goal in goals if not goal.is_met)
    if missed:
        yield "Missed targets, and why:\n\n" + "\n".join(f"- {reason}" for reason in missed)


TARGETS = """## Targets and results

Targets are written "at least" or "at most"; a bold result misses its target. `x` is the time of
another program divided by cutrace's, from the launch to the closed trace: more is better. For
Numba's simulator both ran the size in brackets. The *bare recorder*
(`scripts/measure/bench_recorder.cpp`), a loop compiled by g++, runs warps and keeps their rows, but
checks no addresses and writes nothing. The last two columns are cutrace's time divided by the
recorder's, which has SpMV and BFS: less is better."""
MEMORY = """Memory, with 10^8 accesses of lanes: the peak of the process, interpreter and libraries
(100 to 170 MB) included, and its relative increase from 10^7 accesses (0.1 is 10 %):"""


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
    yield (
        "## How cost grows\n\nThe table fits the time by `offset + slope * size`; R² is 1 for a"
        " perfect line. Replay is without caches; its slopes are uncertain, since these traces are"
        " small: for a row of a larger one use the [table of rates](#targets-and-results)."
        " Devices are added from the newest, which share most of a replay, to the oldest, with"
        " rules of their own: no line fits."
    )
    yield _table(
        ("what", "sizes", "slope", "offset, s", "R²"),
        (
            (
                line["what"],
                f"{line['x'][0]} - {line['x'][-1]}",
                f"{_time(line['slope'])} per {line['unit']}",
                f"{line['offset']:.3f}",
                f"{line['r2']:.3f}",
            )
            for line in lines
        ),
    )


def _sampling(found: Sequence[Measured]) -> Iterator[str]:
    yield SAMPLING
    goals = [list(sampling_goals(m)) for m in found]
    heads = (_title(goal.column, {goal.target}) for goal in goals[0])
    yield _table(
        ("kernel", "blocks", "blocks run", "all, s", "sample, s", *heads, "seeds"),
        (
            (
                m["kernel"],
                m["blocks"],
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

`--sample-blocks 1%` runs the first and the last block of a grid (with several dimensions one block
per corner, edge and face), and one from each of equal stretches in between: together 1 %. Of
grids below 2,000 blocks it runs 1 %, rounded up, and the ends: of 391 blocks 4 and 2. From there on
at least 20 lie in between. Each counter gets a 95 % confidence interval. It may miss rare blocks
unlike all others (if 1 in 100 blocks has 100 times the work, most samples of 40 have none of
these), and blocks of an edge unlike the one that ran. *Least coverage* is
the share of seeds whose interval contains the true value, for the worst counter.

Student's interval alone is too narrow: in a sparse matrix whose rows have Pareto's lengths
(exponent 1.3) a few blocks do much of the work, and it covers the true value in 70 to 85 % of the
samples. So the blocks in between are split into at most 20 groups, each of which gives a value
of the counter. The interval is widened by the distance from the median value to the least (below)
and to the greatest (above), times 10 / groups. With four blocks of such a matrix it reaches from
almost 0 to 3 times the value."""


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
