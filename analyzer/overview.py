"""Many launches on one page: a row a kernel, the costliest first.

A program launches a few kernels hundreds of times. What it asks of the memory in all is a sum over
the launches; what a launch does in particular is shown of one launch, by its number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..base.dataclass import dataclass
from .counting.bounds import time_text
from .counting.evaluate import Value
from .counting.hottest_line import MOVED
from .counting.vocabulary import Counter, heading
from .launch_profile import LaunchProfile
from .profile import Profile
from .sheet import select_counters
from .text.launch_text import NAME_WIDTH as ROOM
from .text.launch_text import launch_text, short_name
from .text.number import number

MANY = 12
"""Launches of which each is shown by itself at most."""

SHOWN = 4
"""Kernels of which a launch is shown by line, array or instruction."""

COLUMNS = (
    *("global_bytes_transferred", "global_excess_transactions"),
    *("dram_bytes_read", "dram_bytes_written"),
    *("shared_conflicts", "texture_transactions", "divergent_branches", "instructions"),
)
"""The counters of the table for which none were asked; those that are 0 throughout are left out."""

Cost: TypeAlias = tuple[float, int, int]
"""Least nanoseconds, where known; bytes moved; instructions of warps: the larger costs more."""

AVERAGED = frozenset({"ratio", "%", "FLOP/byte", "FLOP/word"})
"""Units of counters that are not added up over launches."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel's launches on a device, in order; `costliest` is the one of the highest cost.

    `cost` is that of all together: least nanoseconds, bytes moved, instructions of warps.
    """

    name: str
    launches: tuple[LaunchProfile, ...]
    costliest: LaunchProfile
    cost: "Cost"

    @property
    def different(self) -> int:
        """How many of them did not do the same as an earlier one."""
        return len({launch.origin.number for launch in self.launches})

    def cell(self, counter: Counter) -> str:
        """A counter of all launches together, or from the least to the most where it has no sum."""
        readings = [launch.counters[heading(counter)] for launch in self.launches]
        values = [value for value in readings if value is not None]
        if not values:
            return ""
        if counter.unit not in AVERAGED and not counter.whole_launch:
            return number(sum(values), counter)
        low, high = (number(value, counter) for value in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"


def is_long(profile: Profile) -> bool:
    """Whether there are too many launches to be shown one by one: they are shown by kernel."""
    return len(profile.numbers) > MANY


def kernel_rows(profile: Profile, device: str) -> list[KernelRow]:
    """A row a kernel on a device, the costliest in all first."""
    groups: dict[str, list[LaunchProfile]] = {}
    for launch in profile.launches:
        if launch.device == device:
            groups.setdefault(launch.launch.name, []).append(launch)
    return sorted((_row(name, each) for name, each in groups.items()), key=_first)


def _row(name: str, launches: Sequence[LaunchProfile]) -> KernelRow:
    costs: dict[int, Cost] = {}
    for launch in launches:
        if launch.origin.number not in costs:
            costs[launch.origin.number] = _cost(launch)
    each = [costs[launch.origin.number] for launch in launches]
    worst = max(range(len(each)), key=lambda place: (each[place], -place))
    times, moved, executed = zip(*each, strict=True)
    total = sum(times), sum(moved), sum(executed)
    return KernelRow(name, tuple(launches), launches[worst], total)


def _cost(launch: LaunchProfile) -> Cost:
    """The launch's own cost."""

    def count(name: str) -> int:
        value: Value = launch.counters[name]
        return int(value or 0)

    least = launch.bounds[0].ns if launch.bounds else 0.0
    return least, sum(map(count, MOVED)), count("instructions")


def _first(row: KernelRow) -> tuple[float, int, int, str]:
    least, moved, executed = row.cost
    return -least, -moved, -executed, row.name


def overview_tables(profile: Profile) -> Iterator[list[tuple[str, ...]]]:
    """A table a device: a heading, a row a kernel, the columns that say something."""
    selection = profile.view.counters
    view = replace(profile.view, counters=selection or COLUMNS)
    counters = [c for group in select_counters(profile.launches, view) for c in group]
    for device in profile.devices:
        rows = kernel_rows(profile, device)
        cells = [[row.cell(counter) for row in rows] for counter in counters]
        indices = [n for n, column in enumerate(cells) if selection or set(column) - {"", "0"}]
        timed = any(row.cost[0] for row in rows)
        limits = ("least time", "limit") if timed else ()
        names = (counters[n].name for n in indices)
        table = [(device, "launches", "different", *limits, *names, "costliest")]
        for place, row in enumerate(rows):
            shown = (time_text(row.cost[0]), row.costliest.limited_by) if timed else ()
            counted = (cells[n][place] for n in indices)
            which = f"launch {row.costliest.number}"
            launches = str(len(row.launches)), str(row.different)
            table.append((short_name(row.name), *launches, *shown, *counted, which))
        yield table


def costliest_only(profile: Profile) -> Profile:
    """The costliest launch of each of the costliest kernels, for what has a page a launch."""
    rows = kernel_rows(profile, profile.devices[0])[:SHOWN]
    numbers = [row.costliest.number for row in rows]
    return replace(profile, launches=tuple(p for n in numbers for p in profile.of(n)))


def costliest_number(profile: Profile) -> int:
    """The number of the costliest launch of the costliest kernel."""
    return kernel_rows(profile, profile.devices[0])[0].costliest.number


def summary(profile: Profile) -> str:
    """`300 launches of 2 kernels, the costliest first: launch 4 is saxpy<<<4, 128>>>(n=512, x)`."""
    kernels = {launch.launch.name for launch in profile.launches}
    one = profile.of(costliest_number(profile))[0]
    what = f"{len(kernels)} kernel{'s' if len(kernels) != 1 else ''}"
    return (
        f"{len(profile.numbers)} launches of {what}, the costliest first; launch {one.number} is"
        f" {launch_text(one.launch, ROOM)}"
    )
