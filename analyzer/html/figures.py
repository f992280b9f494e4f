"""Numbers of the page: tiles, tables of counters, and comparisons."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import polars as pl

from ..comparison.comparison import Comparison as Compared
from ..comparison.comparison import LaunchComparison
from ..counting.bounds import time_text, traffic_text
from ..counting.evaluate import Value
from ..counting.vocabulary import OURS, Counter, era, heading, known_counter, vocabularies
from ..launch_profile import LaunchProfile
from ..report.document import Cell, Row, Table
from ..text.number import bracket, number, ratio_text
from ..time.estimate_text import about_text
from .value import Comparison, Tile

GLANCE = (
    *("estimated_time", "bound_time"),
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
"""Counters of the first table; those that no device has are left out."""


def cell(value: Value, bar: float = 0.0, counter: Counter | None = None) -> Cell:
    """Return a formatted cell, empty if there is no value."""
    if value is None:
        return Cell(None, "")
    return Cell(value, number(value, counter or known_counter("instructions")), bar=bar)


def moved_bytes(launch: LaunchProfile) -> int:
    """Return the bytes that a launch moves in global, local and texture memory."""
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
"""Advice rules per unit of the data flow: a unit is marked as bad only if one of them fired."""
ADVISED = {
    **{"global memory": "global", "transactions": "global", "bank conflicts": "shared"},
    **{"constant wavefronts": "const", "divergent branches": "branch"},
}
"""The unit of each tile."""


def bad_units(rules: Collection[str]) -> frozenset[str]:
    """Return the units for which one of these rules fired."""
    return frozenset(unit for unit, mine in UNITS.items() if not mine.isdisjoint(rules))


def tiles(launch: LaunchProfile, rules: Collection[str] = ()) -> Iterator[Tile]:
    """Yield the tiles of a launch on a device; uninformative ones are left out.

    `rules` are the rules that fired for it.
    """
    bad = bad_units(rules)
    for tile in _tiles(launch):
        yield replace(tile, is_bad=ADVISED.get(tile.title) in bad)


def _tiles(launch: LaunchProfile) -> Iterator[Tile]:
    """Yield the tiles before bad values are marked."""
    counters = launch.counters

    def counter_text(name: str) -> str:
        return number(counters[name], known_counter(name))

    def needed(ideal: str, has_excess: bool) -> str:
        return f"{counter_text(ideal)} needed" if has_excess else "as few as possible"

    if launch.estimate:
        stall = next(iter(launch.estimate.stalls), "")
        time, _, ends = about_text(launch.estimate.ns, launch.within).partition(" (")
        expected = f"{ends.rstrip(')')} expected"
        waits = f"{expected}; a warp waits for {stall}" if stall else expected
        yield Tile("about", time.removeprefix("about "), waits)
    if launch.bounds:
        yield Tile("at least", time_text(launch.bounds[0].ns), f"limited by {launch.limited_by}")
    if moved := counters["global_bytes_transferred"]:
        used = counters["sector_efficiency"] is not None
        how = f"moved, {counter_text('sector_efficiency')} used" if used else "moved by atomics"
        yield Tile("global memory", traffic_text(int(moved)), how)
        least = needed("global_ideal_transactions", bool(counters["global_excess_transactions"]))
        yield Tile("transactions", counter_text("global_transactions"), least)
    if read := counters["dram_bytes_read"]:
        hits = [
            f"{counter_text(f'{level}_hit_rate')} hit in {level.upper()}"
            for level in ("l1", "l2")
            if counters[f"{level}_hit_rate"] is not None
        ]
        yield Tile("read from memory", traffic_text(int(read)), ", ".join(hits))
    if counters["shared_wavefronts"]:
        whole = f"of {counter_text('shared_wavefronts')} wavefronts"
        yield Tile("bank conflicts", counter_text("shared_conflicts"), whole)
    if wavefronts := counters["constant_wavefronts"]:
        has_excess = wavefronts > (counters["constant_ideal_wavefronts"] or 0)
        least = needed("constant_ideal_wavefronts", has_excess)
        yield Tile("constant wavefronts", counter_text("constant_wavefronts"), least)
    if counters["texture_transactions"]:
        requests = f"for {counter_text('texture_requests')} requests"
        yield Tile("texture sectors", counter_text("texture_transactions"), requests)
    if counters["divergent_branches"]:
        whole = f"of {counter_text('branches')}"
        yield Tile("divergent branches", counter_text("divergent_branches"), whole)
    if counters["occupancy"] is not None:
        by = ", ".join(launch.occupancy.limited_by)
        yield Tile("occupancy", counter_text("occupancy"), f"limited by {by}")


def glance(on: Sequence[LaunchProfile]) -> Table:
    """Return the main counters, devices side by side with bars."""
    rows = [_row(known_counter(name), on) for name in GLANCE]
    shown = tuple(row for row in rows if any(c.value for c in row.cells))
    return Table(tuple(p.device for p in on), shown)


def full_tables(on: Sequence[LaunchProfile]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """Return all counters by vocabulary, and the names of those that are 0 on every device.

    A profiler's own vocabulary is included for the devices that it supported.
    """
    devices = tuple(p.device for p in on)
    native_vocabularies = [
        native_vocabulary for p in on if (native_vocabulary := era(p.capability))
    ]
    tables: list[Table] = []
    zeros: list[str] = []
    for vocabulary in vocabularies():
        if vocabulary.name != OURS and vocabulary not in native_vocabularies:
            continue
        rows = [_row(counter, on) for counter in vocabulary.counters]
        valid = [row for row in rows if any(c.value is not None for c in row.cells)]
        zeros += [row.name for row in valid if not any(c.value for c in row.cells)]
        nonzero = tuple(row for row in valid if any(c.value for c in row.cells))
        if nonzero:
            tables.append(Table(devices, nonzero, f"{vocabulary.name}: {vocabulary.doc}"))
    return tuple(tables), tuple(dict.fromkeys(zeros))


def compare_table(compared: Compared, table: LaunchComparison) -> Comparison | None:
    """Return the differing counters of one device and launch, a column per variant; None if none
    differ.
    """
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
    glance = sorted((r for r in rows if r.name in GLANCE), key=lambda row: GLANCE.index(row.name))
    first = Table(compared.variants, tuple(glance))
    more = Table(compared.variants, tuple(row for row in rows if row.name not in GLANCE))
    baseline = compared.variants[compared.baseline]
    verdict = table.verdict.tell(compared.variants, baseline) if table.verdict else ""
    return Comparison(table.device, launch, refusals, first, more, verdict)


def _compare(row: Row, baseline: int) -> Row:
    """Return a counter of all variants, with bars and its ratio to the baseline."""
    most = max((abs(c.value) for c in row.cells if c.value is not None), default=0) or 1
    cells = tuple(
        replace(
            cell,
            text=row.text(index),
            bar=abs(cell.value or 0) / most,
            note="" if index == baseline else ratio_text(cell.ratio),
        )
        for index, cell in enumerate(row.cells)
    )
    return replace(row, cells=cells)


def _row(counter: Counter, on: Sequence[LaunchProfile]) -> Row:
    name = heading(counter)
    values = [p.counters[name] for p in on]
    most = max((abs(v) for v in values if v is not None), default=0) or 1
    cells = tuple(
        Cell(value, bracket(value, p.intervals.get(name), counter), bar=abs(value or 0) / most)
        for value, p in zip(values, on, strict=True)
    )
    return Row(name, cells, counter)
