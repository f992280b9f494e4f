"""Replay a trace and count: `analyze` returns the `Profile` that every report renders.

`count` does the same for options that are already parsed. Launches that repeat an earlier one are
not replayed again.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import polars as pl

from ..base import progress
from ..base.dataclass import dataclass
from ..base.frames import require_frames
from ..base.html_table import more, render_table
from ..base.options import taking
from ..models.replay.interface.options import ReplayOptions
from ..models.replay.suppose import suppose
from ..traces.reader import LaunchTrace, Trace, read_trace
from ..traces.schema import Launch, Manifest
from .build_profile import profile_launches
from .launch_profile import LaunchProfile
from .report.view import View
from .sheet import sheets
from .text.launch_text import NO_LAUNCHES

FRAME = {
    "launch": pl.Int64,
    "kernel": pl.String,
    "device": pl.String,
    "counter": pl.String,
    "value": pl.Float64,
}
"""Columns of `Profile.frame`."""


@dataclass(frozen=True, repr=False)
class Profile:
    """Every launch of a trace on every requested device, launch by launch."""

    launches: tuple[LaunchProfile, ...]
    manifest: Manifest
    view: View = field(default_factory=View)

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices in the order requested."""
        return tuple(dict.fromkeys(p.device for p in self.launches))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the launch numbers, in order."""
        return tuple(dict.fromkeys(p.number for p in self.launches))

    def of(self, number: int) -> tuple[LaunchProfile, ...]:
        """Return one launch on all devices."""
        return tuple(self._by_number.get(number, ()))

    @cached_property
    def _by_number(self) -> Mapping[int, Sequence[LaunchProfile]]:
        profiles_by_number: dict[int, list[LaunchProfile]] = {}
        for launch in self.launches:
            profiles_by_number.setdefault(launch.number, []).append(launch)
        return profiles_by_number

    def __repr__(self) -> str:
        """Return the number of launches and the devices."""
        launches = f"{len(self.numbers)} launch{'es' * (len(self.numbers) != 1)}"
        return f"<profile of {launches} on {', '.join(self.devices) or 'no device'}>"

    def frame(self) -> pl.DataFrame:
        """Return a row per launch, device and counter, in the form that `compare` uses for
        variants.

        Columns are `launch` (its number), `kernel`, `device`, `counter` (the names of
        `LaunchProfile.counters`) and `value` (float64, null if the device has no such counter).
        """
        rows = [
            (p.number, p.launch.name, p.device, counter, value)
            for p in self.launches
            for counter, value in p.counters.items()
        ]
        return pl.DataFrame(rows, FRAME, orient="row", strict=False)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""

        return show_launches(self.launches, self.view)


@taking(ReplayOptions)
def analyze(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace on one or several devices and count.

    `trace` is a path, or the result of `read_trace`. `device` is a name of `cutrace devices`, the
    path of a device file, or several of them; the default is `$CUTRACE_DEVICE`, or else h100. With
    `scope="all"` the first profiler's counters cover the whole grid instead of one SM or cluster;
    `profiled_blocks` is the number of blocks that the profiled cluster received. `dlcm` is `ca` or
    `cg`; `registers` overrides the assembler's registers per thread. `schedule`, `round-robin` or
    `greedy-oldest`, is the order in which warps reach the caches (`models/replay/schedule`). `set`
    overrides values of a device file: `{"coalescer.load": "sector"}`. `as_if` counts launches that
    a device would refuse. Without `caches` hits and misses are None, and a replay takes a part of
    the time. `pad` and `align` assume another layout of arrays: `{"tile": 1}` makes rows one
    element longer, `{"in": 128}` aligns a base to 128 bytes (`models.replay.suppose` documents
    both). `jobs` processes serve launches or devices in parallel; by default all cores do if the
    replay would take seconds. `executor` replaces these processes: an object with `submit`, as in
    `concurrent.futures` or Dask's client; its workers read the trace in place, or fetch it from its
    address. `tell` is called now and then with the progress, from 0 to 1.

    Raises `CutraceError` for a trace that cannot be read and for unknown devices and values.
    """
    return count(trace, options)


def count(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace with parsed options and count."""
    opened = trace if isinstance(trace, Trace) else read_trace(trace)
    trace = suppose(opened, options.pad, options.align)
    require_frames()
    told = nullcontext() if options.tell is progress.ignore else progress.listening(options.tell)
    first = first_alike(trace.launches)  # repeated launches are not replayed
    with told:
        counted = profile_launches(options, trace, list(dict.fromkeys(first)))
    profiles = (
        profile if first[index] == index else profile.repeated(launch.number, launch.launch)
        for index, launch in enumerate(trace.launches)
        for profile in counted[first[index]]
    )
    return Profile(tuple(profiles), trace.manifest)


def first_alike(launches: Sequence[LaunchTrace]) -> list[int]:
    """Return, for each launch, the index of the first identical one: often its own."""
    groups: dict[Path, list[int]] = {}
    firsts = []
    for index, launch in enumerate(launches):
        before = groups.setdefault(launch.place, [])
        matches = (n for n in before if _repeats(launch, launches[n].launch))
        firsts.append(next(matches, index))
        if firsts[-1] == index:
            before.append(index)
    return firsts


def _repeats(launch: LaunchTrace, first: Launch) -> bool:
    """Return whether a launch that shares its tables with another differs only in arguments and
    caller.
    """
    twin = replace(
        launch.launch,
        arguments=first.arguments,
        called_at=first.called_at,
        ranges=first.ranges,
    )
    return twin == first


MOST = 8
"""Maximum number of launches shown; the number of the others is printed."""


def show_launches(launches: Sequence[LaunchProfile], view: View) -> str:
    """Return a table per launch: counters in rows, devices in columns, zeros left out."""
    numbers = [*dict.fromkeys(launch.number for launch in launches)]
    first = {*numbers[:MOST]}
    parts = []
    for sheet in sheets((launch for launch in launches if launch.number in first), view):
        rows = [
            (row.name, *map(row.text, range(len(row.cells))))
            for table in sheet.tables.tables
            for row in table.rows
            if not row.is_folded and any(cell.value for cell in row.cells)
        ]
        rows = [*sheet.tables.launch_row(), *rows]
        parts.append(render_table(sheet.heading, ("counter", *sheet.devices), rows, len(rows)))
    rest = more(len(numbers) - len(first), "launches")
    return "".join((*parts, rest)) or f"<p>{NO_LAUNCHES}</p>"
