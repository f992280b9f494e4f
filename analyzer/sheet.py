"""Sheets: a profile laid out as tables of plain values, one sheet per launch.

Every report format prints sheets. The layout selects counters and rows by the view, sorts the rows
and applies its threshold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from typing import TypeAlias

import polars as pl

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .counting.evaluate import Value
from .counting.interval import Interval
from .counting.vocabulary import Counter, check_parts, era, find_counters, heading, vocabularies
from .launch_profile import KEYS, Costliest, LaunchProfile, costliest
from .report.document import Cell, Key, Row, Table, TableSet
from .report.view import COUNTERS, View
from .summary import Summary, summarize
from .text.launch_text import ROOM, launch_text, ranges_text

Values = Mapping[str, Value]
Intervals = Mapping[str, Interval | None]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One launch: a column per device.

    `heading` is the launch in CUDA syntax, `ranges` the NVTX ranges in which it was called.
    `profiles`, `costliest` and `summaries` have one entry per device; `left_out` names the rows
    that the view omits, or is empty; `notes` are further remarks.
    """

    number: int
    heading: str
    ranges: str
    profiles: tuple[LaunchProfile, ...]
    tables: TableSet
    costliest: tuple[Costliest | None, ...]
    summaries: tuple[Summary | None, ...]
    notes: tuple[str, ...]
    left_out: str

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the names of the devices."""
        return self.tables.columns

    @property
    def is_sample(self) -> bool:
        """Return whether values have intervals, for they are those of a sample of blocks."""
        return any(p.launch.kept.sample.blocks for p in self.profiles if not p.refusal)

    @property
    def follows_ptx(self) -> bool:
        """Return whether any counter shown depends on the assembler's choices."""
        rows = (row for table in self.tables.tables for row in table.rows)
        return any(row.counter and row.counter.follows_ptx for row in rows)


def sheets(launches: Iterable[LaunchProfile], view: View) -> tuple[Sheet, ...]:
    """Lay out launches, each on the same devices, by a view."""
    every: dict[int, list[LaunchProfile]] = {}
    for launch in launches:
        every.setdefault(launch.number, []).append(launch)
    layouts: dict[int, Sheet] = {}
    names = {on[0].launch.name for on in every.values()}
    for number, on in every.items():
        if same := layouts.get(on[0].origin.number):
            again, ranges = _heading(on, view, names), ranges_text(on[0].launch)
            layouts[number] = replace(same, number=number, heading=again, ranges=ranges)
        else:
            layouts[number] = replace(_sheet(on, view), heading=_heading(on, view, names))
    return tuple(layouts.values())


def _heading(on: Sequence[LaunchProfile], view: View, names: Iterable[str]) -> str:
    """Return a launch in a line, whole with `--all` and in other formats than the table."""
    return launch_text(on[0].launch, ROOM if view.brief else 0, names)


def select_counters(
    launches: Iterable[LaunchProfile], view: View
) -> tuple[tuple[Counter, ...], ...]:
    """Return the counters to show, a tuple per vocabulary, one definition per name.

    These are the requested counters. The default is cutrace's plain names for several devices,
    preceded by the era's own vocabulary for a single device. If several vocabularies have a name, a
    definition that no device supports is dropped in favour of one that a device supports.
    """
    capabilities = [*{launch.device: launch.capability for launch in launches}.values()]
    names = view.counters
    counters = find_counters([*names, view.sort] if names and view.sort else names)
    plain = vocabularies()[0].counters
    own = era(capabilities[0]) if len(capabilities) == 1 else None
    if not counters:
        its = own.of(capabilities[0]) if own else ()
        counters = (*(c for c in its if not c.by_name_only), *plain)
    groups: dict[str, dict[str, Counter]] = {}
    here = {c.name for c in counters if any(c.exists_on(capability) for capability in capabilities)}
    for counter in counters:
        exists = any(counter.exists_on(capability) for capability in capabilities)
        if exists or counter.name not in here or counter.qualified in names:
            group = groups.setdefault(counter.vocabulary, {})
            if exists or counter.name not in group:
                group[counter.name] = counter
    return tuple(tuple(group.values()) for group in groups.values())


def _sheet(on: Sequence[LaunchProfile], view: View) -> Sheet:
    """Lay out one launch on all devices."""
    tables, left_out = sift(tuple(_tables(on, view)), view)
    devices, refusals = tuple(p.device for p in on), tuple(p.refusal for p in on)
    return Sheet(
        number=on[0].number,
        heading=launch_text(on[0].launch),
        ranges=ranges_text(on[0].launch),
        profiles=(*on,),
        tables=TableSet(devices, tables, refusals, view.by),
        costliest=tuple(costliest(p.lines, p.limited_by) for p in on),
        summaries=tuple(summarize(p) for p in on),
        notes=_notes(on, tables),
        left_out=left_out,
    )


def _tables(on: Sequence[LaunchProfile], view: View) -> Iterator[Table]:
    """Yield the tables of the launch's totals, or of each line, array or instruction.

    Unless requested by name, a counter that no device has is left out; so is, in the smaller
    tables, one that counted nothing.
    """
    groups = select_counters(on, view)
    if view.by == "launch":
        totals, intervals = [p.counters for p in on], [p.intervals for p in on]
        for group in groups:
            yield _table(group, on, totals, intervals, {}, view)
        return
    keys = KEYS[view.by]
    tables = [_by_key(p.table(view.by), keys) for p in on]
    spans = [_intervals_by_key(p, view.by, keys) for p in on]
    for key in sorted({key for table in tables for key in table}):
        values, intervals = [t.get(key, {}) for t in tables], [s.get(key, {}) for s in spans]
        named = dict(zip(keys, key, strict=True))
        some = [_table(group, on, values, intervals, named, view) for group in groups]
        if not view.counters:
            some = [
                replace(t, rows=tuple(r for r in t.rows if _says_something(r, on))) for t in some
            ]
        if any(table.rows for table in some):
            yield from some


def _by_key(table: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[str | int, ...], Values]:
    """Return the rows of a grouped table by key."""
    return {tuple(row[key] for key in keys): row for row in table.iter_rows(named=True)}


def _intervals_by_key(
    profile: LaunchProfile, grouping: str, keys: Sequence[str]
) -> dict[tuple[str | int, ...], Intervals]:
    """Return the intervals of a grouped table by key; empty if the launch was not sampled."""
    ends = profile.interval_tables(grouping)
    if ends is None:
        return {}
    low, high = (_by_key(table, keys) for table in ends)
    return {key: {h: _interval(low[key][h], high[key][h]) for h in low[key]} for key in low}


def _interval(low: Value, high: Value) -> Interval | None:
    return None if low is None or high is None else Interval(low, high)


def _says_something(row: Row, on: Sequence[LaunchProfile]) -> bool:
    """Return whether a counter is nonzero on any device, or unknown because the trace lacks its
    data.
    """
    if any(cell.value for cell in row.cells):
        return True
    return any(
        cell.value is None
        and bool(p.raw.left_out.anywhere())
        and row.counter is not None
        and row.counter.exists_on(p.capability)
        for cell, p in zip(row.cells, on, strict=True)
    )


IN_FULL = frozenset({"cuda-profiler"})
"""Vocabularies whose zeros are shown."""


def _table(
    group: tuple[Counter, ...],
    on: Sequence[LaunchProfile],
    values: Sequence[Values],
    intervals: Sequence[Intervals],
    key: Key,
    view: View,
) -> Table:
    """Return the table of a vocabulary, from the values and intervals of each device by name.

    Unless requested by name, counters that no device has are folded, and zeros of vocabularies
    other than the first profiler's.
    """
    vocabulary = group[0].vocabulary
    rows = []
    for counter in group:
        name = heading(counter)
        each = [value.get(name) for value in values]
        cells = tuple(
            _cell(value, interval.get(name))
            for value, interval in zip(each, intervals, strict=True)
        )
        is_zero = vocabulary not in IN_FULL and all(value == 0 for value in each)
        is_folded = not view.counters and (is_zero or all(value is None for value in each))
        rows.append(Row(counter.name, cells, counter, is_folded))
    return Table(tuple(p.device for p in on), tuple(rows), vocabulary, key=key)


@lru_cache(maxsize=1 << 12, typed=True)
def _cell(value: Value, interval: Interval | None) -> Cell:
    """Return a cell; most are alike, for most counters of a line are 0."""
    return Cell(value, interval=interval)


def _notes(on: Sequence[LaunchProfile], tables: Sequence[Table]) -> tuple[str, ...]:
    """Yield each note once, for all devices that it applies to."""
    rows = [row for table in tables for row in table.rows]
    devices: dict[str, list[str]] = {}
    for index, profile in enumerate(on):
        notes = [*profile.substitutions, *profile.remarks]
        sampled = (
            row.counter.vocabulary
            for row in rows
            if row.counter and row.counter.scope != "all" and row.cells[index].value is not None
        )
        if not profile.raw.whole and (first := next(sampled, "")):
            notes.insert(0, _sample(first, profile))
        for text in notes:
            devices.setdefault(text, []).append(profile.device)
    return tuple(f"{', '.join(names)}: {text}" for text, names in devices.items())


def _sample(vocabulary: str, profile: LaunchProfile) -> str:
    """Return the blocks that a profiler of one SM or cluster counted, as text."""
    return (
        f"{vocabulary} saw {profile.blocks['cluster']} of {profile.launch.blocks} blocks, those of"
        f" one cluster, or the {profile.blocks['sm']} of one SM in it; --scope all counts the grid"
    )


SHARED_OUT = frozenset({"ratio", "FLOP/byte", "FLOP/word", "times"})
"""Units whose rows have no share of a total."""


def check_sifting(by: str, sort: str | None, threshold: float | None) -> None:
    """Raise `CutraceError` for an invalid sort counter or threshold."""
    options = [n for n, v in (("--sort", sort), ("--threshold", threshold)) if v is not None]
    if options and by == "launch":
        raise CutraceError(f"{options[0]} is for smaller rows: add --by line, array or instruction")
    sorting = find_counters([sort] if sort is not None else [])
    check_parts(sorting, by)
    if threshold is None:
        return
    if not 0 <= threshold <= 100:
        raise CutraceError(f"--threshold {threshold:g}: expected per cent, 0 to 100")
    if sorting and not any(map(_adds_up, sorting)):
        raise CutraceError(f"--threshold {threshold:g}: {sort} is no sum that rows have a part of")


Group: TypeAlias = list[Table]
"""The tables of a key."""


def sift(tables: Sequence[Table], view: View) -> tuple[tuple[Table, ...], str]:
    """Return the tables to show by the view, and a sentence about omitted ones, or empty text.

    Those of a key are kept if its share of the sort counter, or else of any counter shown, reaches
    the view's threshold on any device.
    """
    groups = [[*group] for _, group in groupby(tables, key=lambda table: table.key)]
    ordered = sorted(groups, key=partial(_rank, view=view)) if view.sort else groups
    totals = _totals(groups, view) if view.threshold else {}
    least = view.threshold / 100
    selection = [g for g in ordered if not view.threshold or _share(g, totals) >= least]
    shown = tuple(table for group in selection for table in group)
    missing = len(ordered) - len(selection)
    if not missing:
        return shown, ""
    what = view.sort or "every counter"
    rows = f"{missing} {view.by}{'s' * (missing > 1)}"
    return shown, f"left out: {rows} with less than {view.threshold:g} % of {what}"


def _rank(group: Group, view: View) -> float:
    """Return the sort key: the highest value on any device first, rows without one last."""
    cells = (cell for row in _sorting(group, view) for cell in row.cells)
    return -max((cell.value for cell in cells if cell.value is not None), default=-1)


def _rows(group: Group) -> Iterator[tuple[Row, Counter]]:
    yield from ((row, row.counter) for table in group for row in table.rows if row.counter)


def _sorting(group: Group, view: View) -> list[Row]:
    """Return the rows of the sort counter."""
    return [row for row, counter in _rows(group) if view.sort in (row.name, counter.qualified)]


def _totals(groups: Sequence[Group], view: View) -> dict[tuple[str, int], Value]:
    """Return the sum over all rows of each deciding counter, by its name and the device."""
    totals: dict[tuple[str, int], Value] = {}
    shown = (view.sort,) if view.sort else view.counters or COUNTERS[view.by]
    for group in groups:
        for row, counter in _rows(group):
            if not _adds_up(counter) or not {row.name, counter.qualified} & {*shown}:
                continue
            for device, cell in enumerate(row.cells):
                key = counter.qualified, device
                totals[key] = (totals.get(key) or 0) + (cell.value or 0)
    return totals


def _share(group: Group, totals: dict[tuple[str, int], Value]) -> float:
    """Return a row's largest share of any total."""
    shares = (
        cell.value / total
        for row, counter in _rows(group)
        for device, cell in enumerate(row.cells)
        if cell.value and (total := totals.get((counter.qualified, device)))
    )
    return max(shares, default=0.0)


def _adds_up(counter: Counter) -> bool:
    return counter.unit not in SHARED_OUT
