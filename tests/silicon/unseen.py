"""Programs that cutrace had never run, judged by a chip: how each ended, and what was counted."""

from collections.abc import Mapping, Sequence
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

PRINTS = "the kernel calls `printf`, which is the driver's code on the chip"


@dataclass(frozen=True)
class Draw:
    """Programs that were drawn at a time: how their files begin, and the set's name on the page."""

    name: str
    heading: str
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
    Draw("unseen", "first draw"),
    Draw("again", "second draw"),
    Draw("third", "third draw"),
    Draw("fourth", "fourth draw", "h200"),
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
