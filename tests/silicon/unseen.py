"""Programs that cutrace had never run, judged by a chip: how each ended, and what was counted."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from silicon.launches import OPS, SASS, accesses
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
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profilers.measured import demangled
from cutrace.traces.reader import LaunchTrace, Trace

FIRST_TOLD = """
{programs} programs of {collections} were drawn by a hash of their names from collections that
cutrace had not been tried on (`scripts/capture/unseen_programs.toml` has each size that was made
smaller), built once by nvcc 13.0.88 (`-O3 -lineinfo`, machine code of sm_90 and PTX in one file,
NVIDIA's static runtime; three of them by `cutrace nvcc`, for want of a library), run on an H100
as they are and under Nsight Compute, and recorded from the same files by cutrace at commit
fd1a5e5, before anything was mended for them. Five more that were drawn no compiler takes. This is
the first figure:
"""
FIRST_PRINTED = """
Not the same in print were times in tables, the last digits of floats (the chip's `ex2.approx`,
`lg2.approx` and the order of its atomic additions are its own), numbers drawn by the time of day,
the device's properties and the numbers of its SMs. Four of the six have run since, to the end and
with their own checks passed: mipmapped textures, blocked ELL, `cufftXt` and refinement are there.
The two that were cut off by time are as large as that: 72,000 launches at 6 ms of processor time
each, and 15,000 of 24 grids of 65,536 threads, of which one takes 9 ms.
"""

PRINTS = "the kernel calls `printf`, which is the driver's code on the chip"

AGAIN_TOLD = """
{programs} programs of {collections}: the first 40 of all of theirs together, by the hash of their
names, but for three that no compiler of CUDA 13 takes (`using namespace thrust`,
`cudaDeviceSynchronize` in a kernel) and three that call nothing of CUDA. They were built and run in
the same way (on an H100, the same driver and tools; four of them by `cutrace nvcc` here and by the
chip's nvcc there, for want of a library or a header), and recorded by cutrace at commit 4e13c1b,
before anything was mended for them. How they ended is the first figure. What was counted is
compared after two things that they showed were mended: names of kernels with lambdas of functions,
and how many barriers a block takes; before, 1508 of 1607 counts were within 1 %, five kernels that
print among them.
"""
AGAIN_PRINTED = """
Not the same in print were the order in which blocks print, numbers drawn by the time of day, and
the last digits of floats.
"""

THIRD_TOLD = """
{programs} programs of {collections}: 111 were drawn by the hash of their names and given sizes that
take 10 us and more on a chip; five do not compile under CUDA 13 and four include cuBLAS through a
header of their own. They were built and run in the same way (an H100, the same driver and tools),
and recorded and compared once, by cutrace at commit d369fa0, before anything was mended for them.
Three did not end in their time on the chip, two of them for a stall of its machine, and are not
judged; one ended by a signal on both. All launches that the profiler took were recorded. This is
the first figure:
"""
THIRD_PRINTED = """
Not the same in print were speedups and bandwidths in tables, the last digits of sums of floats, the
device's properties, and what races print.
"""

FOURTH_TOLD = """
{programs} programs of {collections}: 88 were drawn by the hash of their names on 24 November 2026,
sizes written before the first run; five do not compile under CUDA 13. They were built and run in
the same way on an NVIDIA H200 (driver 580.159.04, Nsight Compute 2025.3.1.0), and recorded and
compared once, by cutrace at commit 7e74560, before anything was mended for them. One did not end
in its time, there as here, and is not judged. All launches that the profiler took were recorded;
one was not found by its name, a template of a function's address, which is read since. This is the
first figure:
"""
FOURTH_PRINTED = """
Not the same in print were what is seeded by the clock, what races print, times in tables, and last
digits of floats, of approximate functions among them. Of the three comparable counts that differ
two are of a share of shared memory that the program prefers (`cudaFuncSetAttribute`), which is not
looked at, and one is a sector of a kernel that races.
"""

PAGE = """
### {heading}

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
class Draw:
    """Programs that were drawn at a time: how their files begin, and what the page says of them."""

    name: str
    heading: str
    told: str
    printed: str
    chip: str = "h100"

    @property
    def compared(self) -> Path:
        """Both sides of each pair of counts."""
        return FOLDER / f"{self.name}_compared.parquet"

    @property
    def outcomes(self) -> Path:
        """How each program ended."""
        return FOLDER / f"{self.name}_programs.parquet"

    @property
    def launches(self) -> Path:
        """What the chip counted."""
        return FOLDER / f"{self.name}_launches.parquet"

    @property
    def code(self) -> Path:
        """How often each opcode that touches memory ran there."""
        return FOLDER / f"{self.name}_code.parquet"

    @property
    def times(self) -> Path:
        """How long each launch took, and the estimates."""
        return FOLDER.parent / "time" / f"{self.chip}_{self.name}_draw.csv"

    def ended(self) -> list["Ended"]:
        """How the programs ended, as it was kept."""
        return [Ended(**row) for row in pl.read_parquet(self.outcomes).iter_rows(named=True)]


DRAWS = (
    Draw("unseen", "Programs that were never run before", FIRST_TOLD, FIRST_PRINTED),
    Draw("again", "A second draw", AGAIN_TOLD, AGAIN_PRINTED),
    Draw("third", "A third draw", THIRD_TOLD, THIRD_PRINTED),
    Draw("fourth", "A fourth draw", FOURTH_TOLD, FOURTH_PRINTED, "h200"),
)


CUT_OFF = -1
"""The exit status on the chip of a program that took more than its time there."""


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
    captured: int = 0
    matched: int = 0
    """Launches that the profiler took, and those of them that the recording has, too."""

    @property
    def is_judged(self) -> bool:
        """Whether the chip ran it to an end in its time."""
        return self.on_chip != CUT_OFF

    @property
    def is_whole(self) -> bool:
        """Whether it ran to its end as it does on the chip."""
        status = self.on_chip if self.on_chip >= 0 else 128 - self.on_chip  # a signal's, in a shell
        return status == self.recorded and not self.why


@dataclass(frozen=True)
class Matched:
    """A launch that was captured, and its like in a trace."""

    captured: Mapping[str, Any]
    number: int
    trace: LaunchTrace
    profile: LaunchProfile


def matches(
    captured: Sequence[Mapping[str, Any]], trace: Trace, chip: str = "h100"
) -> list[Matched]:
    """Find each launch's like, of its name and shape, in order; analyze those together."""
    like: dict[int, Mapping[str, Any]] = {}
    for launch in captured:
        if not launch["counters"]:
            continue  # the profiler failed
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
    profiles = list(cutrace.analyze(part, chip).launches) if numbers else []
    return [
        Matched(like[number], number, trace.launches[number], profile)
        for number, profile in zip(numbers, profiles, strict=True)
    ]


def compare_matched(run: Run, matched: Sequence[Matched]) -> list[Beside]:
    """The pairs of counts of launches."""
    found: list[Beside] = []
    for each in matched:
        launch = each.captured
        code = {op: n for op, n in launch.get("sass", {}).items() if SASS.match(op)}
        agreed = agreements(accesses(each.profile, each.trace), machine(code))
        called = each.trace.instructions()["text"].to_pylist()
        if any("vprintf" in text for text in called):
            agreed = dict.fromkeys({*agreed, *OPS.values()}, PRINTS)
        counters = {m: v for m, v in launch["counters"].items() if "__" in m or "memory_" in m}
        counted = Counted(launch["Kernel Name"], each.number, *_shape(launch), counters, True)
        found += pairs_of(run, counted, each.number, each.profile, agreed)
    return found


def _shape(launch: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    counters = launch["counters"]
    grid, block = (
        tuple(int(counters[f"launch__{what}_dim_{axis}"]) for axis in "xyz")
        for what in ("grid", "block")
    )
    return grid, block


def head(draw: Draw, counts: Sequence[Beside], shares: Any, percent: Any) -> str:
    """The section without its tables of what is left out."""
    every = draw.ended()
    ended = [each for each in every if each.is_judged]
    whole = [each for each in ended if each.is_whole]
    same = sum(each.prints_same for each in whole)
    pairs, near, equal = shares(counts)
    comparable, close, _ = shares(b for b in counts if not b.why_not)
    return PAGE.format(
        heading=draw.heading,
        told=_filled(draw.told.format(
            programs=len(every), collections=", ".join(sorted({e.collection for e in ended})),
        )),
        ran=len(ended), whole=len(whole), whole_percent=percent(len(whole), len(ended)),
        same=same, ended=len(whole), same_percent=percent(same, len(whole)),
        others=_filled(" ".join((*_others(ended), draw.printed))),
        launches=len({(b.run, b.launch) for b in counts}), counted=len({b.run for b in counts}),
        pairs=pairs, near=near, equal=equal, comparable=comparable, close=close,
        near_percent=percent(near, pairs), close_percent=percent(close, comparable),
    ).rstrip("\n")  # fmt: skip


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 104, break_on_hyphens=False)


def _others(ended: Sequence[Ended]) -> Iterator[str]:
    odd = [f"{each.program} ({each.why})" for each in ended if not each.is_whole]
    if odd:
        yield f"Not recorded to the end: {'; '.join(odd)}."
