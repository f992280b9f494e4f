"""Sheets: a profile laid out as tables of plain values, one sheet per launch.

Every report format prints sheets. The layout selects counters and rows by the view, sorts the rows
and applies its threshold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .counting.bounds import Bound
from .counting.evaluate import Value
from .counting.interval import Interval
from .counting.vocabulary import Counter, check_parts, era, find_counters, heading, vocabularies
from .launch_profile import KEYS, Costliest, LaunchProfile, costliest
from .summary import Summary, summarize
from .summary_text import time_line
from .text.launch_text import launch_text, ranges_text
from .time.estimate import Estimate
from .time.estimate_text import WaitingLine
from .view import COUNTERS, View

Key = dict[str, str | int]
Values = Mapping[str, Value]
Intervals = Mapping[str, Interval | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A counter's values, one per device; None if the device does not have the counter.

    Values of a sample have an interval each; for a complete trace there are none.
    """

    counter: Counter
    values: tuple[Value, ...]
    intervals: tuple[Interval | None, ...] = ()

    def interval(self, device: int) -> Interval | None:
        """Return the confidence interval of the value on a device, for a sample of blocks."""
        return self.intervals[device] if self.intervals else None

    @property
    def is_zero(self) -> bool:
        """Return whether every device has the counter and all values are 0."""
        return all(value == 0 for value in self.values)

    @property
    def is_empty(self) -> bool:
        """Return whether no device has the counter."""
        return all(value is None for value in self.values)


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one vocabulary."""

    vocabulary: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The counters of one source line, array or instruction, or of the whole launch.

    `key` maps the columns that identify the group to their values; it is empty for the launch.
    """

    key: Key
    sections: tuple[Section, ...]

    @property
    def every(self) -> Iterator[Row]:
        """Return the rows of all sections."""
        for section in self.sections:
            yield from section.rows


@dataclass(frozen=True, slots=True)
class Sheet:
    """One launch: a column per device.

    `heading` is the launch in CUDA syntax; `refusals` holds an empty text for each device that can
    run it; `costliest` has one entry per device; `left_out` names the rows that the view omits, or
    is empty; `notes` are further remarks; `bounds`, `bounds_between`, `estimates`,
    `estimates_between`, the lines `waiting`, the sentences `times` and the `summaries` are per
    device; `ranges` are the NVTX ranges in which it was called.
    """

    number: int
    heading: str
    devices: tuple[str, ...]
    refusals: tuple[str, ...]
    blocks: tuple[Block, ...]
    costliest: tuple[Costliest | None, ...]
    notes: tuple[str, ...]
    bounds: tuple[tuple[Bound, ...], ...] = ()
    bounds_between: tuple[tuple[tuple[Bound, Bound], ...], ...] = ()
    estimates: tuple[Estimate | None, ...] = ()
    estimates_between: tuple[tuple[Estimate, Estimate] | None, ...] = ()
    waiting: tuple[tuple[WaitingLine, ...], ...] = ()
    times: tuple[str, ...] = ()
    summaries: tuple[Summary | None, ...] = ()
    left_out: str = ""
    ranges: str = ""

    @property
    def follows_ptx(self) -> bool:
        """Return whether any counter shown depends on the assembler's choices."""
        return any(row.counter.follows_ptx for block in self.blocks for row in block.every)


def sheets(launches: Iterable[LaunchProfile], view: View) -> tuple[Sheet, ...]:
    """Lay out launches, each on the same devices, by a view."""
    every: dict[int, list[LaunchProfile]] = {}
    for launch in launches:
        every.setdefault(launch.number, []).append(launch)
    layouts: dict[int, Sheet] = {}
    for number, on in every.items():
        if same := layouts.get(on[0].origin.number):
            again, ranges = launch_text(on[0].launch), ranges_text(on[0].launch)
            layouts[number] = replace(same, number=number, heading=again, ranges=ranges)
        else:
            layouts[number] = _sheet(on, view)
    return tuple(layouts.values())


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
    blocks, left_out = sift(tuple(_blocks(on, view)), view)
    return Sheet(
        number=on[0].number,
        heading=launch_text(on[0].launch),
        devices=tuple(p.device for p in on),
        refusals=tuple(p.refusal for p in on),
        blocks=blocks,
        costliest=tuple(costliest(p.lines, p.limited_by) for p in on),
        notes=_notes(on, blocks),
        bounds=tuple(p.bounds for p in on),
        bounds_between=tuple(p.bounds_between for p in on),
        estimates=tuple(p.estimate for p in on),
        estimates_between=tuple(p.estimate_between for p in on),
        waiting=tuple(p.waiting_lines for p in on),
        times=tuple(time_line(p) if p.bounds or p.estimate_between else "" for p in on),
        summaries=tuple(summarize(p) for p in on),
        left_out=left_out,
        ranges=ranges_text(on[0].launch),
    )


def _blocks(on: Sequence[LaunchProfile], view: View) -> Iterator[Block]:
    """Yield the launch's totals, or a block per line, array or instruction.

    Unless requested by name, a counter that no device has is left out; so is, in the smaller
    blocks, one that counted nothing.
    """
    groups = select_counters(on, view)
    if view.by == "launch":
        yield Block({}, _sections(groups, [p.counters for p in on], [p.intervals for p in on]))
        return
    keys = KEYS[view.by]
    tables = [_by_key(p.table(view.by), keys) for p in on]
    spans = [_intervals_by_key(p, view.by, keys) for p in on]
    for key in sorted({key for table in tables for key in table}):
        sections = _sections(
            groups, [t.get(key, {}) for t in tables], [s.get(key, {}) for s in spans]
        )
        if not view.counters:
            sections = tuple(
                Section(s.vocabulary, tuple(r for r in s.rows if _says_something(r, on)))
                for s in sections
            )
        if any(section.rows for section in sections):
            yield Block(dict(zip(keys, key, strict=True)), sections)


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
    if any(row.values):
        return True
    return any(
        value is None and bool(p.raw.left_out.anywhere()) and row.counter.exists_on(p.capability)
        for value, p in zip(row.values, on, strict=True)
    )


def _sections(
    groups: tuple[tuple[Counter, ...], ...],
    values: Sequence[Values],
    intervals: Sequence[Intervals],
) -> tuple[Section, ...]:
    """Return a section per vocabulary, from the values and intervals of each device by name."""
    sampled = any(intervals)
    return tuple(
        Section(
            group[0].vocabulary,
            tuple(
                Row(
                    c,
                    tuple(v.get(heading(c)) for v in values),
                    tuple(i.get(heading(c)) for i in intervals) if sampled else (),
                )
                for c in group
            ),
        )
        for group in groups
    )


def _notes(on: Sequence[LaunchProfile], blocks: Sequence[Block]) -> tuple[str, ...]:
    """Yield each note once, for all devices that it applies to."""
    rows = [row for block in blocks for row in block.every]
    devices: dict[str, list[str]] = {}
    for index, profile in enumerate(on):
        notes = [*profile.substitutions, *profile.remarks]
        sampled = (r for r in rows if r.counter.scope != "all" and r.values[index] is not None)
        if not profile.raw.whole and (first := next(sampled, None)):
            notes.insert(0, _sample(first.counter.vocabulary, profile))
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


def sift(blocks: Sequence[Block], view: View) -> tuple[tuple[Block, ...], str]:
    """Return the rows to show by the view, and a sentence about omitted ones, or empty text.

    A row is kept if its share of the sort counter, or else of any counter shown, reaches the view's
    threshold on any device.
    """
    ordered = sorted(blocks, key=partial(_rank, view=view)) if view.sort else list(blocks)
    if not view.threshold:
        return tuple(ordered), ""
    totals = _totals(blocks, view)
    least = view.threshold / 100
    selection = tuple(block for block in ordered if _share(block, totals) >= least)
    missing = len(ordered) - len(selection)
    if not missing:
        return selection, ""
    what = view.sort or "every counter"
    rows = f"{missing} {view.by}{'s' * (missing > 1)}"
    return selection, f"left out: {rows} with less than {view.threshold:g} % of {what}"


def _rank(block: Block, view: View) -> float:
    """Return the sort key: the highest value on any device first, rows without one last."""
    values = [value for row in _sorting(block, view) for value in row.values if value is not None]
    return -max(values, default=-1)


def _sorting(block: Block, view: View) -> list[Row]:
    """Return the rows of the sort counter."""
    return [row for row in block.every if view.sort in (row.counter.name, row.counter.qualified)]


def _totals(blocks: Sequence[Block], view: View) -> dict[tuple[str, int], Value]:
    """Return the sum over all rows of each deciding counter, by its name and the device."""
    totals: dict[tuple[str, int], Value] = {}
    shown = view.counters or COUNTERS[view.by]
    for block in blocks:
        for row in _sorting(block, view) if view.sort else block.every:
            if not _adds_up(row.counter) or not (view.sort or row.counter.name in shown):
                continue
            for device, value in enumerate(row.values):
                key = row.counter.qualified, device
                totals[key] = (totals.get(key) or 0) + (value or 0)
    return totals


def _share(block: Block, totals: dict[tuple[str, int], Value]) -> float:
    """Return a row's largest share of any total."""
    shares = (
        value / total
        for row in block.every
        for device, value in enumerate(row.values)
        if value and (total := totals.get((row.counter.qualified, device)))
    )
    return max(shares, default=0.0)


def _adds_up(counter: Counter) -> bool:
    return counter.unit not in SHARED_OUT
