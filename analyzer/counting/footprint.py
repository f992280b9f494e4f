"""Footprint: the distinct bytes of each array that a launch touches, the least it must fetch.

Only global and constant memory count. Shared and local memory are private to a block or a thread,
and texture samples have no addresses. No hardware is modelled. Accesses are assumed to be aligned,
as CUDA requires.
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
from ...models.replay.rows.patterns import COLUMNS, RecentRows
from ...models.replay.rows.sites import Sites, read_sites
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Space
from ...traces.unique import sorted_unique

COLUMN = "touched_bytes"
SPACES = (Space.GLOBAL, Space.CONST)
WORD = 4
PAGE = 1 << 20
"""Grains per page. Only touched pages are allocated, whatever array sizes a trace claims."""
SLICE = 1 << 14
"""Rows per chunk that is expanded into lanes."""


class Marks:
    """A set of grains: touched words or bytes of one address space."""

    def __init__(self) -> None:
        self._pages: dict[int, Bools] = {}

    def add(self, grains: Ints) -> None:
        """Add grains (n,) to the set."""
        page = grains // PAGE
        for number in sorted_unique(page).tolist():
            marks = self._pages.setdefault(number, np.zeros(PAGE, np.bool_))
            marks[grains[page == number] - number * PAGE] = True

    def count(self, first: int, end: int) -> int:
        """Return the number of grains of the set in [first, end)."""
        return sum(
            int(
                np.count_nonzero(marks[max(0, first - number * PAGE) : max(0, end - number * PAGE)])
            )
            for number, marks in self._pages.items()
        )


@dataclass
class Footprint:
    """The footprint of a launch, computed on first use and pickled with its result."""

    trace: LaunchTrace

    def __call__(self) -> pl.DataFrame:
        """Return `count_touched` of the launch."""
        return self._counted

    @cached_property
    def _counted(self) -> pl.DataFrame:
        return count_touched(self.trace)


def count_touched(trace: LaunchTrace) -> pl.DataFrame:
    """Return the distinct bytes of each array that the launch touches: `array`, COLUMN.

    Arrays without a touched byte have no row. Results are cached.
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
    """Yield (space, bases, patterns, bytes per lane) in chunks of rows; few rows repeat."""
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
    """Add COLUMN to the counts of a launch: one more row per array."""
    zeros = pl.col(pl.Int64).fill_null(0) * 0
    first = counts.filter(pl.col("array") != "").unique("array", keep="first", maintain_order=True)
    rows = first.with_columns(zeros).join(sizes, on="array")
    return pl.concat([counts.with_columns(pl.lit(0, pl.Int64).alias(COLUMN)), rows])
