"""Footprint: the distinct bytes of each array that a launch touches, the least it must fetch.

Global and constant memory only. What shared and local memory hold belongs to a block or a thread,
and texture samples are looked up rather than addressed. Nothing here is hardware. Accesses are
taken to be aligned, as CUDA demands.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Bools, Ints
from ...models.replay.replay_cache import cached_frame
from ...models.replay.rows.lanes import unpack_masks
from ...models.replay.rows.repeats import COLUMNS, RecentRows
from ...models.replay.rows.sites import Sites, read_sites
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Space
from ...traces.unique import sorted_unique

COLUMN = "touched_bytes"
SPACES = (Space.GLOBAL, Space.CONST)
WORD = 4
PAGE = 1 << 20
"""Grains that are kept together: only what is touched takes memory, whatever a trace claims."""
SLICE = 1 << 14
"""Rows that are spread into lanes at a time."""


class Marks:
    """A set of grains: words or bytes of one address space."""

    def __init__(self) -> None:
        self._pages: dict[int, Bools] = {}

    def add(self, grains: Ints) -> None:
        """Put grains (n,) into the set."""
        page = grains // PAGE
        for number in sorted_unique(page).tolist():
            marks = self._pages.setdefault(number, np.zeros(PAGE, np.bool_))
            marks[grains[page == number] - number * PAGE] = True

    def count(self, first: int, end: int) -> int:
        """Return how many of the grains from `first` to before `end` are in the set."""
        return sum(
            int(
                np.count_nonzero(marks[max(0, first - number * PAGE) : max(0, end - number * PAGE)])
            )
            for number, marks in self._pages.items()
        )


@dataclass
class Footprint:
    """The footprint of a launch, counted on first use and kept in pickles."""

    trace: LaunchTrace

    def __call__(self) -> pl.DataFrame:
        """The answer of `count_touched`."""
        return self._counted

    @cached_property
    def _counted(self) -> pl.DataFrame:
        return count_touched(self.trace)


def count_touched(trace: LaunchTrace) -> pl.DataFrame:
    """The distinct bytes of each array that the launch touches: `array`, COLUMN.

    Arrays of which nothing is touched have no row. What was counted before is not counted again.
    """
    return cached_frame(trace, Path(__file__), _count)


def _count(trace: LaunchTrace) -> pl.DataFrame:
    sites = read_sites(trace.instructions(), "ca")
    grain = WORD if all(kind.width % WORD == 0 for kind in sites.kinds) else 1
    marks = {space: Marks() for space in SPACES}
    patterns = trace.pattern_store()
    for space, places, pattern, width in _distinct_rows(trace, sites):
        active, offsets = patterns.take(pattern)
        starts = (places[:, None] + offsets)[unpack_masks(active)] // grain
        marks[space].add((starts[:, None] + np.arange(max(1, width // grain))).ravel())
    sizes = {
        array.name: grain
        * marks[array.space].count(array.offset // grain, -(-(array.offset + array.bytes) // grain))
        for array in trace.launch.arrays
        if array.space in SPACES
    }
    rows = [(name, count) for name, count in sizes.items() if count]
    return pl.DataFrame(rows, {"array": pl.String, COLUMN: pl.Int64}, orient="row")


def _distinct_rows(trace: LaunchTrace, sites: Sites) -> Iterator[tuple[Space, Ints, Ints, int]]:
    """Yield (space, bases, patterns, bytes a lane) of rows, a few at a time, each kind of row once
    or seldom more."""
    recent = RecentRows()
    for batch in trace.access_batches(COLUMNS):
        rows = recent.choose(batch)
        for start in range(0, len(rows), SLICE):
            part = batch.take(rows[start : start + SLICE])
            pc, where, base, pattern = integers(part, *COLUMNS)
            width = sites.width[sites.locate(pc, where)]
            for space in SPACES:
                for bytes_ in sorted_unique(width[where == space]).tolist():
                    mine = (where == space) & (width == bytes_)
                    yield space, base[mine], pattern[mine], bytes_


def with_touched(counts: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """The counts of a launch with COLUMN beside the models' own: a row more for each array."""
    numbers = [pl.lit(0, pl.Int64).alias(n) for n, t in counts.schema.items() if t == pl.Int64]
    first = counts.filter(pl.col("array") != "").unique("array", keep="first", maintain_order=True)
    rows = first.with_columns(numbers).join(sizes, on="array")
    return pl.concat([counts.with_columns(pl.lit(0, pl.Int64).alias(COLUMN)), rows])
