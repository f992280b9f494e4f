"""What a profile shows by default: a summary of each launch, or a row per kernel if there are many.

The summary says what limits a launch and which lines cost most. It is shown if the user asks for
neither counters nor groupings, and computes no counters beyond those of the profile.

A program launches a few kernels hundreds of times. Counters are summed over the launches of each
kernel; details are shown for single launches, chosen by number.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..traces.schema import Launch
from .counting.bounds import time_text
from .counting.evaluate import Value
from .counting.vocabulary import Counter, heading
from .launch_profile import MOVED, LaunchProfile
from .profile import Profile
from .report.document import Table, row
from .report.view import View
from .sheet import select_counters
from .summary_text import summary_lines
from .text.kernel_name import name_apart
from .text.launch_text import ROOM, launch_text, ranges_text
from .text.number import number
from .time.estimate_text import about_text

MANY = 12
"""Maximum number of launches shown one by one."""

SHOWN = 4
"""Maximum number of kernels of which a launch is shown by line, array or instruction."""

COLUMNS = (
    *("global_bytes_transferred", "global_excess_transactions"),
    *("dram_bytes_read", "dram_bytes_written"),
    *("shared_conflicts", "texture_transactions", "divergent_branches", "instructions"),
)
"""Default counters of the table; those that are 0 in every row are left out."""

Cost: TypeAlias = tuple[float, float, int, int]
"""Estimate and bound in nanoseconds, 0 if unknown; bytes moved; warp instructions: compared in
this order."""

AVERAGED = frozenset({"ratio", "%", "FLOP/byte", "FLOP/word"})
"""Units of counters that are not summed over launches."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """The launches of a kernel, or of a range, on a device, in order; `costliest` is the one of the
    highest cost.

    `cost` is the sum over the launches. `is_estimated` if each has an estimate.
    """

    name: str
    launches: tuple[LaunchProfile, ...]
    costliest: LaunchProfile
    cost: "Cost"
    is_estimated: bool = False

    @property
    def different(self) -> int:
        """Return the number of launches that do not repeat an earlier one."""
        return len({launch.origin.number for launch in self.launches})

    def cell(self, counter: Counter) -> str:
        """Return a counter summed over all launches, or its range if it has no sum."""
        readings = [launch.counters[heading(counter)] for launch in self.launches]
        values = [value for value in readings if value is not None]
        if not values:
            return ""
        if counter.unit not in AVERAGED and not counter.whole_launch:
            return number(sum(values), counter)
        low, high = (number(value, counter) for value in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"


def is_long(profile: Profile) -> bool:
    """Return whether a profile has too many launches to show each: they are grouped by kernel."""
    return len(profile.numbers) > MANY


def kernel_rows(profile: Profile, device: str) -> list[KernelRow]:
    """Return a row per kernel, or per range, on a device, the costliest in total first."""
    groups: dict[str, list[LaunchProfile]] = {}
    for launch in profile.launches:
        if launch.device == device:
            of_range = profile.view.of_ranges
            name = _range_name(launch.launch) if of_range else launch.launch.name
            groups.setdefault(name, []).append(launch)
    return sorted((_row(name, each) for name, each in groups.items()), key=_first)


_HLO = re.compile(r"#(?:name=([^#]*?),)?hlo_op=([^,#]+)")
NO_RANGE = "in no range"


def _range_name(launch: Launch) -> str:
    """Return a launch's ranges; XLA's by operation and what it is of: `add.1 (jit(step)/add)`."""
    text = ranges_text(launch)
    if matches := _HLO.findall(text):
        source, operation = matches[-1]
        return f"{operation} ({source})" if source else operation
    return text or NO_RANGE


def _row(name: str, launches: Sequence[LaunchProfile]) -> KernelRow:
    costs: dict[int, Cost] = {}
    for launch in launches:
        if launch.origin.number not in costs:
            costs[launch.origin.number] = _cost(launch)
    each = [costs[launch.origin.number] for launch in launches]
    worst = max(range(len(each)), key=lambda place: (each[place], -place))
    took, times, moved, executed = zip(*each, strict=True)
    total = sum(took), sum(times), sum(moved), sum(executed)
    return KernelRow(name, tuple(launches), launches[worst], total, all(took))


def _cost(launch: LaunchProfile) -> Cost:
    def count(name: str) -> int:
        value: Value = launch.counters[name]
        return int(value or 0)

    least = launch.bounds[0].ns if launch.bounds else 0.0
    took = launch.estimate.ns if launch.estimate else 0.0
    return took, least, sum(map(count, MOVED)), count("instructions")


def _first(row: KernelRow) -> tuple[float, float, int, int, str]:
    took, least, moved, executed = row.cost
    return -took, -least, -moved, -executed, row.name


def overview_tables(profile: Profile) -> Iterator[Table]:
    """Yield a table per device: a heading, a row per kernel, and the columns that are not all 0."""
    selection = profile.view.counters
    view = replace(profile.view, counters=selection or COLUMNS)
    counters = [c for group in select_counters(profile.launches, view) for c in group]
    for device in profile.devices:
        rows = kernel_rows(profile, device)
        cells = [[one.cell(counter) for one in rows] for counter in counters]
        indices = [n for n, column in enumerate(cells) if selection or set(column) - {"", "0"}]
        estimated, timed = any(one.is_estimated for one in rows), any(one.cost[1] for one in rows)
        limits = ("time",) * estimated + ("no faster than", "limit") * timed
        names = (counters[n].name for n in indices)
        columns = ("launches", "different", *limits, *names, "costliest")
        table = []
        for place, one in enumerate(rows):
            took = about_text(one.cost[0], one.costliest.within) if one.is_estimated else ""
            shown = (took,) * estimated
            shown += (time_text(one.cost[1]), one.costliest.limited_by) * timed
            counted = (cells[n][place] for n in indices)
            which = f"launch {one.costliest.number}"
            launches = len(one.launches), one.different
            others = (other.name for other in rows)
            name = one.name if profile.view.of_ranges else name_apart(one.name, others)
            table.append(row(name, *launches, *shown, *counted, which))
        yield Table(columns, tuple(table), corner=device)


def costliest_only(profile: Profile) -> Profile:
    """Return the costliest launch of each of the costliest kernels, for reports with a page per
    launch.
    """
    rows = kernel_rows(profile, profile.devices[0])[:SHOWN]
    numbers = [row.costliest.number for row in rows]
    return replace(profile, launches=tuple(p for n in numbers for p in profile.of(n)))


def costliest_number(profile: Profile) -> int:
    """Return the number of the costliest launch of the costliest kernel."""
    return kernel_rows(profile, profile.devices[0])[0].costliest.number


def summary(profile: Profile) -> str:
    """Return the number of launches and kernels, and the costliest launch.

    `300 launches of 2 kernels, the costliest first: launch 4 is saxpy<<<4, 128>>>(n=512, x)`.
    """
    kernels = {launch.launch.name for launch in profile.launches}
    one = profile.of(costliest_number(profile))[0]
    count = len(profile.numbers)
    what = f"{len(kernels)} kernel{'s' if len(kernels) != 1 else ''}"
    return (
        f"{count} launch{'es' if count != 1 else ''} of {what}, the costliest first; launch "
        f"{one.number} is {launch_text(one.launch, ROOM)}"
    )


def is_brief(view: View) -> bool:
    """Return whether the view shows the summary: no counters, groupings or other output
    requested."""
    return view.brief and view.by == "launch" and not (view.counters or view.of_ranges)


def launch_lines(
    on: Sequence[LaunchProfile], width: int | None = None, others: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the summary lines of one launch on all devices, each with its style; `others` are names
    of kernels from which its own is told.
    """
    yield launch_text(on[0].launch, width or ROOM, others), "bold"
    if ranges := ranges_text(on[0].launch):
        yield f"In range {ranges}.", ""
    yield from summary_lines(on, width)


def distinct_launches(profile: Profile) -> Iterator[tuple[Sequence[LaunchProfile], int]]:
    """Yield each distinct launch once, with the number of launches that look and behave the
    same."""
    groups: dict[tuple[int, str], list[int]] = {}
    for launch in profile.numbers:
        first = profile.of(launch)[0]
        groups.setdefault((first.origin.number, launch_text(first.launch)), []).append(launch)
    for numbers in groups.values():
        yield profile.of(numbers[0]), len(numbers)
