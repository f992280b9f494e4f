"""Numbers of the page: tiles, tables of counters, and comparisons."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import polars as pl

from ..comparison.comparison import Comparison as Compared
from ..comparison.comparison import Row as ComparedRow
from ..comparison.comparison import Table as ComparedTable
from ..comparison.comparison import ratio_text
from ..counting.bounds import time_text
from ..counting.evaluate import Value
from ..counting.vocabulary import OURS, Counter, era, heading, known_counter, vocabularies
from ..launch_profile import LaunchProfile
from ..text.layout import bracket, number
from ..text.svg import count_bytes
from ..time.estimate_text import ERROR
from .value import Cell, Comparison, Row, Table, Tile

GLANCE = (
    "bound_time",
    *(
        "global_transactions",
        "global_ideal_transactions",
        "global_bytes_transferred",
        "sector_efficiency",
    ),
    *("l1_hit_rate", "l2_hit_rate", "dram_bytes_read", "dram_bytes_written"),
    *("shared_wavefronts", "shared_conflicts", "constant_wavefronts", "texture_transactions"),
    *("branches", "divergent_branches", "instructions", "occupancy"),
)
"""The counters of the first table, those left out that no device counted."""


def cell(value: Value, bar: float = 0.0, counter: Counter | None = None) -> Cell:
    """A value as it is written, nothing if there is none."""
    if value is None:
        return Cell(None, "")
    return Cell(value, number(value, counter or known_counter("instructions")), bar)


def moved_bytes(launch: LaunchProfile) -> int:
    """Bytes that a launch moves in global and local memory and textures."""
    counts = launch.raw.counts
    names = [c for c in counts.columns if c.endswith("_bytes_moved")]
    sums = counts.select(pl.col(names).sum())
    return sum(int(v or 0) for v in sums.row(0)) if sums.height and names else 0


UNITS = {
    "global": frozenset({"uncoalesced", "misaligned", "texture"}),
    "shared": frozenset({"bank_conflicts"}),
    "const": frozenset({"divergent_constant"}),
    "branch": frozenset({"divergence"}),
}
"""The rules that find something in each unit: where none does, nothing is shown as bad."""
ADVISED = {
    **{"global memory": "global", "transactions": "global", "bank conflicts": "shared"},
    **{"constant wavefronts": "const", "divergent branches": "branch"},
}
"""The unit that each tile is about."""


def bad_units(rules: Collection[str]) -> frozenset[str]:
    """The units of which one of these rules has found something."""
    return frozenset(unit for unit, mine in UNITS.items() if not mine.isdisjoint(rules))


def tiles(launch: LaunchProfile, rules: Collection[str] = ()) -> Iterator[Tile]:
    """The figures of a launch on a device, those that say something.

    `rules` are those that found something in it.
    """
    bad = bad_units(rules)
    for tile in _tiles(launch):
        yield replace(tile, is_bad=ADVISED.get(tile.title) in bad)


def _tiles(launch: LaunchProfile) -> Iterator[Tile]:
    """The same, before bad values are marked."""
    found = launch.counters

    def told(name: str) -> str:
        return number(found[name], known_counter(name))

    if launch.bounds:
        yield Tile(
            "at least", time_text(launch.bounds[0].ns), f"limited by {launch.limited_by}", False
        )
    if launch.estimate:
        waits = next(iter(launch.estimate.waits), "")
        yield Tile(
            "about",
            time_text(launch.estimate.ns),
            f"{ERROR}; a warp waits for {waits}" if waits else ERROR,
            False,
        )
    if found["global_bytes_transferred"]:
        used = found["sector_efficiency"]
        yield Tile(
            "global memory",
            count_bytes(int(found["global_bytes_transferred"] or 0)),
            f"moved, {told('sector_efficiency')} used" if used is not None else "moved by atomics",
            False,
        )
        excess = found["global_excess_transactions"] or 0
        yield Tile(
            "transactions",
            told("global_transactions"),
            f"{told('global_ideal_transactions')} needed" if excess else "as few as possible",
            False,
        )
    if found["dram_bytes_read"]:
        hits = [
            f"{told(f'{level}_hit_rate')} hit in {level.upper()}"
            for level in ("l1", "l2")
            if found[f"{level}_hit_rate"] is not None
        ]
        read = count_bytes(int(found["dram_bytes_read"] or 0))
        yield Tile("read from memory", read, ", ".join(hits), False)
    if found["shared_wavefronts"]:
        yield Tile(
            "bank conflicts",
            told("shared_conflicts"),
            f"of {told('shared_wavefronts')} wavefronts",
            False,
        )
    if found["constant_wavefronts"]:
        more = (found["constant_wavefronts"] or 0) > (found["constant_ideal_wavefronts"] or 0)
        least = told("constant_ideal_wavefronts")
        yield Tile(
            "constant wavefronts",
            told("constant_wavefronts"),
            f"{least} needed" if more else "as few as possible",
            False,
        )
    if found["texture_transactions"]:
        yield Tile(
            "texture sectors",
            told("texture_transactions"),
            f"for {told('texture_requests')} requests",
            False,
        )
    if found["divergent_branches"]:
        yield Tile(
            "divergent branches", told("divergent_branches"), f"of {told('branches')}", False
        )
    if found["occupancy"] is not None:
        by = ", ".join(launch.occupancy.limited_by)
        yield Tile("occupancy", told("occupancy"), f"limited by {by}", False)


def glance(on: Sequence[LaunchProfile]) -> Table:
    """The counters that matter, devices side by side with bars."""
    rows = [_row(known_counter(name), on) for name in GLANCE]
    shown = tuple(row for row in rows if any(c.value for c in row.cells))
    return Table("", tuple(p.device for p in on), shown)


def full_tables(on: Sequence[LaunchProfile]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """All counters by vocabulary, and the names of those that are 0 on every device.

    A profiler's own vocabulary is there for the devices of its time.
    """
    devices = tuple(p.device for p in on)
    spoken = [found for p in on if (found := era(p.capability))]
    tables: list[Table] = []
    zeros: list[str] = []
    for vocabulary in vocabularies():
        if vocabulary.name != OURS and vocabulary not in spoken:
            continue
        rows = [_row(counter, on) for counter in vocabulary.counters]
        known = [row for row in rows if any(c.value is not None for c in row.cells)]
        zeros += [row.name for row in known if not any(c.value for c in row.cells)]
        kept = tuple(row for row in known if any(c.value for c in row.cells))
        if kept:
            tables.append(Table(f"{vocabulary.name}: {vocabulary.doc}", devices, kept))
    return tuple(tables), tuple(dict.fromkeys(zeros))


def compare_table(compared: Compared, table: ComparedTable) -> Comparison | None:
    """One device and launch: counters that differ, a column a variant; None if none does."""
    refusals = tuple(
        f"{variant}: {refusal}"
        for variant, refusal in zip(compared.variants, table.refusals, strict=True)
        if refusal
    )
    rows = [
        _compare(row, compared.baseline)
        for row in table.rows
        if len({c.value for c in row.cells}) > 1
    ]
    if not rows and not refusals:
        return None
    launch = "all launches" if table.launch is None else f"launch {table.launch}"
    first = Table("", compared.variants, tuple(row for row in rows if row.name in GLANCE))
    more = Table("", compared.variants, tuple(row for row in rows if row.name not in GLANCE))
    return Comparison(table.device, launch, refusals, first, more)


def _compare(row: ComparedRow, baseline: int) -> Row:
    """A counter of all variants, with its ratio to the baseline's."""
    most = max((abs(c.value) for c in row.cells if c.value is not None), default=0) or 1
    cells = tuple(
        Cell(
            found.value,
            number(found.value, row.counter),
            abs(found.value or 0) / most,
            found.is_best,
            "" if index == baseline else ratio_text(found.ratio),
        )
        for index, found in enumerate(row.cells)
    )
    return Row(row.counter.name, row.counter.doc, cells)


def _row(counter: Counter, on: Sequence[LaunchProfile]) -> Row:
    name = heading(counter)
    values = [p.counters[name] for p in on]
    most = max((abs(v) for v in values if v is not None), default=0) or 1
    cells = tuple(
        Cell(value, bracket(value, p.intervals.get(name), counter), abs(value or 0) / most)
        for value, p in zip(values, on, strict=True)
    )
    return Row(name, counter.doc, cells)
