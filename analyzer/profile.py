"""A trace replayed and counted: the value that every report renders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import polars as pl

from ..base.dataclass import dataclass
from ..base.html_table import more, render_table
from ..base.options import taking
from ..models.replay.interface.options import ReplayOptions
from ..models.replay.whatif.suppose import suppose
from ..traces.reader import LaunchTrace, Trace, read_trace
from ..traces.schema import Launch, Manifest
from .build_profile import ProfileRequest, profile_launches, read_request
from .launch_profile import LaunchProfile
from .sheet import sheets
from .text.number import number
from .view import View
from .wording import is_folded

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
    """Every launch of a trace on every device asked for, launch by launch."""

    launches: tuple[LaunchProfile, ...]
    manifest: Manifest
    view: View = field(default_factory=View)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order asked for."""
        return tuple(dict.fromkeys(p.device for p in self.launches))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The launches' numbers, in order."""
        return tuple(dict.fromkeys(p.number for p in self.launches))

    def of(self, number: int) -> tuple[LaunchProfile, ...]:
        """One launch on all devices."""
        return tuple(self._by_number.get(number, ()))

    @cached_property
    def _by_number(self) -> Mapping[int, Sequence[LaunchProfile]]:
        profiles_by_number: dict[int, list[LaunchProfile]] = {}
        for launch in self.launches:
            profiles_by_number.setdefault(launch.number, []).append(launch)
        return profiles_by_number

    def __repr__(self) -> str:
        """How many launches on which devices: all else is asked for."""
        launches = f"{len(self.numbers)} launch{'es' * (len(self.numbers) != 1)}"
        return f"<profile of {launches} on {', '.join(self.devices) or 'no device'}>"

    def frame(self) -> pl.DataFrame:
        """A row for each launch, device and counter, as `compare` has them for variants.

        Columns are `launch` (its number), `kernel`, `device`, `counter` (the headings of
        `LaunchProfile.counters`) and `value` (float64, null where the device has no such counter).
        """
        rows = [
            (p.number, p.launch.name, p.device, counter, value)
            for p in self.launches
            for counter, value in p.counters.items()
        ]
        return pl.DataFrame(rows, FRAME, orient="row", strict=False)

    def _repr_html_(self) -> str:
        """What a notebook shows."""

        return show_launches(self.launches, self.view)


@taking(ReplayOptions)
def analyze(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace on one device or several and count.

    `trace` is a path, or what `read_trace` gave. `device` is a name of `cutrace devices`, the path
    of a device file, or several of them; none means `$CUTRACE_DEVICE`, else h100. `scope="all"`
    makes the first profiler's counters count the whole grid instead of one SM or cluster;
    `profiled_blocks` is the number of blocks that the profiled cluster received. `dlcm` is `ca` or
    `cg`, `registers` a thread's instead of the assembler's. `schedule`, `round-robin` or
    `greedy-oldest`, is the order of warps that caches see (`models/replay/schedule`). `set`
    gives values in place of a device file's, `{"coalescer.load": "sector"}`. `as_if` counts what a
    device would refuse. Without `caches` hits and misses are None, and a replay takes a part of the
    time. `pad` and `align` suppose other arrays: `{"tile": 1}` rows one element
    longer, `{"in": 128}` a base at a multiple of 128 bytes (`models.replay.suppose` has the rest).
    Launches or devices are served by `jobs` processes at once; without it launches that would take
    seconds are, on all cores. `executor` serves them instead: what has `submit`, as those of
    `concurrent.futures` or Dask's client have; its workers read the trace where it is, or have it
    from its address. `tell` is called now and then with how much is done, from 0 to 1.

    Raises `CutraceError` for a trace that cannot be read and for unknown devices and values.
    """
    return count(trace, options)


def count(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace as the options say and count."""
    opened = trace if isinstance(trace, Trace) else read_trace(trace)
    return count_supposed(suppose(opened, options.pad, options.align), options)


def count_supposed(trace: Trace, options: ReplayOptions) -> Profile:
    """Replay a trace that is as `pad` and `align` suppose it already."""
    return Profile(tuple(_each_launch(read_request(options), trace)), trace.manifest)


def _each_launch(question: ProfileRequest, trace: Trace) -> Iterator[LaunchProfile]:
    """Replay every launch on every device; what repeats an earlier one is not replayed again."""
    first = first_alike(trace.launches)
    profiles = profile_launches(question, trace, list(dict.fromkeys(first)))
    for index, launch in enumerate(trace.launches):
        for profile in profiles[first[index]]:
            repeats = first[index] != index
            yield profile.repeated(launch.number, launch.launch) if repeats else profile


def first_alike(launches: Sequence[LaunchTrace]) -> list[int]:
    """For each launch the place in the list of the first that did the same: often its own."""
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
    """Whether a launch with the tables of another differs in its arguments and its caller only."""
    twin = replace(
        launch.launch,
        arguments=first.arguments,
        called_at=first.called_at,
        ranges=first.ranges,
    )
    return twin == first


MOST = 8
"""Launches that are shown; how many more there are is said."""


def show_launches(launches: Sequence[LaunchProfile], view: View) -> str:
    """A table a launch: counters in rows, devices in columns, zeros left out."""
    numbers = [*dict.fromkeys(launch.number for launch in launches)]
    first = {*numbers[:MOST]}
    parts = []
    for sheet in sheets((launch for launch in launches if launch.number in first), view):
        rows = [
            (row.counter.name, *(number(value, row.counter) for value in row.values))
            for block in sheet.blocks
            for section in block.sections
            for row in section.rows
            if not is_folded(row, section, view) and any(row.values)
        ]
        if any(sheet.refusals):
            rows.insert(0, ("launch", *(refusal or "runs" for refusal in sheet.refusals)))
        parts.append(render_table(sheet.heading, ("counter", *sheet.devices), rows, len(rows)))
    return "".join((*parts, more(len(numbers) - len(first), "launches")))
