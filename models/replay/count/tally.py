"""Tally: the distinct rows of a launch, and how often each occurred, for all devices at once.

The answer of a model without state depends on what the instruction does, the pattern, and the base
modulo a period. There are a handful of these in a regular kernel, however many rows: so rows are
numbered densely and counted by bincount, and models are asked about each distinct row once.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.table.column import integers
from ..rows.arrays import SPACE_SHIFT, Zones
from ..rows.numbering import number_rows
from ..rows.patterns import Shapes
from ..rows.sites import Sites
from ..schedule.place import Placement
from ..seam import Bools, Ints

READ = ("block", "pc", "space", "base", "pattern")
"""The columns of ACCESSES that count where no order does."""
SLICE = 1 << 17
"""Rows that are numbered at a time: as many as a trace mostly has in a batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows of the trace as (n,) int64 columns: `site` is pc * SPACES + space."""

    block: Ints
    site: Ints
    base: Ints
    pattern: Ints
    zone: Ints
    mixed: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Distinct rows: site, pattern, `phase` (base modulo the period), zone, mixed, each (n,);
    `times` (devices, n, scopes) is how often each occurred in each scope.
    """

    site: Ints
    pattern: Ints
    phase: Ints
    zone: Ints
    mixed: Bools
    times: Ints

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.site)


def read_chunk(batch: pa.RecordBatch, sites: Sites, shapes: Shapes, zones: Zones) -> Chunk:
    """Return the rows of a batch of ACCESSES, attributed to zones.

    Raises `CutraceError` where a row lies in a space that its instruction cannot reach.
    """
    block, pc, space, base, pattern = integers(batch, *READ)
    site = sites.locate(pc, space)
    places = (space << SPACE_SHIFT) + base
    zone = zones.find(places)
    patterns, shape = shapes.number(pattern)
    low, high = shapes.reach(patterns)
    mixed = zones.leave(places, zone, low[shape], high[shape] + sites.width[site])
    return Chunk(block, site, base, pattern, zone, mixed)


def tally(chunk: Chunk, period: int, zones: int, placements: Sequence[Placement]) -> Distinct:
    """Find the distinct rows of a chunk; `compiled_tally.py` does it where there are many."""
    first = int(chunk.pattern.min())
    span = int(chunk.pattern.max()) - first + 1
    pairs, pair = number_rows(
        chunk.site * span + (chunk.pattern - first), (int(chunk.site.max()) + 1) * span
    )
    phase = chunk.base & (period - 1) if period.bit_count() == 1 else chunk.base % period
    keys = ((pair * period + phase) * zones + chunk.zone) * 2 + chunk.mixed
    distinct, number = number_rows(keys, len(pairs) * period * zones * 2)
    rest, mixed = np.divmod(distinct, 2)
    rest, zone = np.divmod(rest, zones)
    found, phase = np.divmod(rest, period)
    site, pattern = np.divmod(pairs[found], span)
    times = [count_scopes(number, len(distinct), chunk.block, p) for p in placements]
    return Distinct(site, pattern + first, phase, zone, mixed.astype(np.bool_), np.stack(times))


def count_scopes(number: Ints, size: int, block: Ints, placement: Placement) -> Ints:
    """Return (size, scopes): how often each number occurs in each scope.

    Weights are added up in float64: exact up to 2**53.
    """
    scopes = len(placement.names)
    place = number * scopes + scope_of(block, placement)
    found = np.bincount(place, placement.weight(block), size * scopes)
    return found.astype(np.int64, copy=False).reshape(size, scopes)


def scope_of(block: Ints, placement: Placement) -> NDArray[np.uint8]:
    """Return the scope of each row; each block is placed once where blocks lie close together."""
    first, last = int(block.min()), int(block.max())
    if placement.sampling is not None or last - first > 4 * len(block):
        return placement.scope(block)
    return placement.scope(np.arange(first, last + 1))[block - first]


def join(parts: Sequence[Distinct]) -> Distinct:
    """Return distinct rows of several chunks one after another."""
    names = ("site", "pattern", "phase", "zone", "mixed")
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    return Distinct(**columns, times=np.concatenate([p.times for p in parts], axis=1))
