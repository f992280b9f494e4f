"""Programs that cutrace had never run, judged by a chip: how each ended, and what was counted."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from silicon.launches import SASS, accesses
from silicon.programs import (
    FOLDER,
    Beside,
    Counted,
    Run,
    agreements,
    machine,
    pairs_of,
    plain_name,
)

import cutrace
from cutrace.analyzer.profilers.exported_names import demangled
from cutrace.traces.reader import Trace

COMPARED = FOLDER / "unseen_compared.parquet"
OUTCOMES = FOLDER / "unseen_programs.parquet"
LAUNCHES = FOLDER / "unseen_launches.parquet"

TOLD = """
{programs} programs of {collections} were drawn by a hash of their names from collections that
cutrace had not been tried on (`scripts/capture/unseen_programs.toml` has each size that was made
smaller), built once by nvcc 13.0.88 (`-O3 -lineinfo`, machine code of sm_90 and PTX in one file,
NVIDIA's static runtime; three of them by `cutrace nvcc`, for want of a library), run on an H100
as they are and under Nsight Compute, and recorded from the same files by cutrace at commit
fd1a5e5, before anything was mended for them. Five more that were drawn no compiler takes. This is
the first figure:
"""
PRINTED = """
Not the same in print were times in tables, the last digits of floats (the chip's `ex2.approx`,
`lg2.approx` and the order of its atomic additions are its own), numbers drawn by the time of day,
the device's properties and the numbers of its SMs.
"""

PAGE = """
### Programs that were never run before

{told}

| what | programs | of | % |
|---|---:|---:|---:|
| recorded to the end, exit status as on the chip | {whole} | {ran} | {whole_percent} |
| of these printed the same, without lines that tell times | {same} | {ended} | {same_percent} |

{others}

Raw, of {pairs} counts of {launches} launches of {counted} programs **{near} lie within 1 %,
{near_percent} %**; {equal} are equal. Comparable are {comparable}, of these **{close} lie within
1 %, {close_percent} %**. Left out:

| what | counts | of all, % | within 1 % all the same |
|---|---:|---:|---:|
"""


@dataclass(frozen=True)
class Ended:
    """How a program ended: on the chip, and recorded."""

    collection: str
    program: str
    on_chip: int
    recorded: int
    launches: int
    prints_same: bool
    why: str

    @property
    def is_whole(self) -> bool:
        """Whether it ran to its end as it does on the chip."""
        return self.on_chip == self.recorded and not self.why


def compare_captured(run: Run, captured: Sequence[Mapping[str, Any]], trace: Trace) -> list[Beside]:
    """Compare each launch that was captured with its like: of its name and shape, in order."""
    like: dict[int, Mapping[str, Any]] = {}
    for launch in captured:
        wanted = (plain_name(launch["Kernel Name"]), *_shape(launch))
        for number, ours in enumerate(trace.launches):
            mine = ours.launch
            if number not in like and wanted == (
                plain_name(demangled(mine)), tuple(mine.grid), tuple(mine.block)
            ):  # fmt: skip
                like[number] = launch
                break
    numbers = sorted(like)
    part = replace(trace, launches=tuple(trace.launches[n] for n in numbers))
    profiles = list(cutrace.analyze(part, "h100").launches) if numbers else []
    found: list[Beside] = []
    for number, profile in zip(numbers, profiles, strict=True):
        launch = like[number]
        code = {op: n for op, n in launch.get("sass", {}).items() if SASS.match(op)}
        agreed = agreements(accesses(profile, trace.launches[number]), machine(code))
        counters = {m: v for m, v in launch["counters"].items() if "__" in m or "memory_" in m}
        counted = Counted(launch["Kernel Name"], number, *_shape(launch), counters, True)
        found += pairs_of(run, counted, number, profile, agreed)
    return found


def _shape(launch: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    counters = launch["counters"]
    grid, block = (
        tuple(int(counters[f"launch__{what}_dim_{axis}"]) for axis in "xyz")
        for what in ("grid", "block")
    )
    return grid, block


def outcomes() -> list[Ended]:
    """How the programs ended, as it was kept."""
    return [Ended(**row) for row in pl.read_parquet(OUTCOMES).iter_rows(named=True)]


def head(counts: Sequence[Beside], shares: Any, percent: Any) -> str:
    """The section without its tables of what is left out."""
    ended = outcomes()
    whole = [each for each in ended if each.is_whole]
    told = whole
    same = sum(each.prints_same for each in told)
    pairs, near, equal = shares(counts)
    comparable, close, _ = shares(b for b in counts if not b.why_not)
    return PAGE.format(
        told=_filled(TOLD.format(
            programs=len(ended), collections=", ".join(sorted({e.collection for e in ended})),
        )),
        ran=len(ended), whole=len(whole), whole_percent=percent(len(whole), len(ended)),
        same=same, ended=len(told), same_percent=percent(same, len(told)),
        others=_filled(" ".join((*_others(ended), PRINTED))),
        launches=len({(b.run, b.launch) for b in counts}), counted=len({b.run for b in counts}),
        pairs=pairs, near=near, equal=equal, comparable=comparable, close=close,
        near_percent=percent(near, pairs), close_percent=percent(close, comparable),
    ).rstrip("\n")  # fmt: skip


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 104, break_on_hyphens=False)


def _others(ended: Sequence[Ended]) -> Iterator[str]:
    yield "Not recorded to the end:"
    odd = [f"{each.program} ({each.why})" for each in ended if not each.is_whole]
    yield "; ".join(odd) + "."
