"""The address patterns of a launch, and rows rebuilt from them."""

from dataclasses import field
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ..interface.model import Batch, Ints, Kind, Touched
from . import recent_rows, touching
from .lanes import count_true, order_lanes, unpack_masks
from .sites import DENSE

if TYPE_CHECKING:
    from ....traces.pattern_store import Patterns as Store

ROWS_PER_READ = 1 << 12
"""Patterns that are read at a time: half a megabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """All patterns at once: `active` (n,) uint32 masks, `offsets` (n, 32) int32, bytes.

    `lowest` and `highest` (n,) are the smallest and greatest offset of each.
    """

    active: NDArray[np.uint32]
    offsets: NDArray[np.int32]
    lowest: Ints
    highest: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The patterns of a launch, read on demand."""

    store: "Store"

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.store)

    def rebuild(self, kinds: tuple[Kind, ...], kind: Ints, base: Ints, pattern: Ints) -> Batch:
        """Return the batch of the rows with these kinds, bases and patterns, all (n,)."""
        active, offsets = self.store.take(pattern)
        on, addresses = unpack_masks(active), base[:, None] + offsets
        ordered = order_lanes(addresses, on)
        return Batch(kinds, kind, addresses, on, np.arange(len(kind)), ordered=ordered)

    def measure(self, kinds: tuple[Kind, ...], kind: Ints, base: Ints, pattern: Ints) -> Batch:
        """Return the batch of `rebuild`, with the rows' footprint instead of their sorted
        addresses.
        """
        active, offsets = self.store.take(pattern)
        on, addresses = unpack_masks(active), base[:, None] + offsets
        ordered = np.where(on, offsets, np.int32(touching.LAST))
        ordered.sort(axis=1)
        lanes, distinct = count_true(on), np.empty(len(kind), np.int64)
        lines = np.zeros((len(kind), 4), np.int64)
        width = np.array([each.width for each in kinds])[kind]
        loops = loops_of(touching, len(kind))
        loops.count_touched(base, ordered, lanes, width, distinct, lines)
        footprint = Touched(lanes, distinct, lines)
        return Batch(kinds, kind, addresses, on, np.arange(len(kind)), touched=footprint)


def read_patterns(active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> Patterns:
    """Take the patterns of a trace (offset 0 in inactive lanes)."""
    empty = np.zeros(0, np.int64)
    if not len(active):
        return Patterns(active, offsets, empty, empty)
    return Patterns(
        active, offsets, offsets.min(axis=1).astype(np.int64), offsets.max(axis=1).astype(np.int64)
    )


_NOTHING = np.zeros(0, np.int64)
_NO_SHAPES = (0, np.zeros(0, np.int32))


class Named(NamedTuple):
    """Patterns of rows, (n,), the first pattern, and the shape of each pattern from it on: its
    index in `ends`.
    """

    pattern: NDArray[np.uint32]
    first: int
    shape: NDArray[np.int32]


@dataclass(slots=True)
class Reaches:
    """The recent patterns of rows, `patterns` (shapes,), and their lowest and highest offsets, both
    (shapes,): `ends`. `are_places` is whether the last rows were named by index in these instead
    of by pattern.
    """

    shapes: Shapes
    patterns: Ints = field(default_factory=_NOTHING.copy, init=False)
    ends: tuple[Ints, Ints] = field(default=(_NOTHING, _NOTHING), init=False)
    are_places: bool = field(default=False, init=False)
    _shape_numbers: tuple[int, NDArray[np.int32]] = field(default=_NO_SHAPES, init=False)
    _has_gaps: bool = field(default=True, init=False)

    def name(self, loops: ModuleType, pattern: NDArray[np.uint32]) -> Named:
        """Record the patterns of rows, with their offset ranges; return the patterns with their
        shapes. `loops` are those of `counting.py`.
        """
        self.are_places = False
        first, last = int(pattern.min()), int(pattern.max())
        if self._has_shapes(loops, pattern, first, last):
            return Named(pattern, *self._shape_numbers)
        span = last - first + 1
        if span > max(DENSE, 4 * len(pattern)):
            distinct, number = np.unique(pattern, return_inverse=True)
            self._shape_numbers, self.patterns = _NO_SHAPES, distinct.astype(np.int64)
            shape = np.arange(len(distinct), dtype=np.int32)
            named = Named(number.astype(np.uint32), 0, shape)
            self.are_places = True
        else:
            presence, shape = np.zeros(span, np.bool_), np.full(span, -1, np.int32)
            loops.mark_patterns(pattern, first, presence)
            places = np.flatnonzero(presence)
            shape[places] = np.arange(len(places))
            self._shape_numbers, self.patterns = (first, shape), places + first
            self._has_gaps = len(places) < span
            named = Named(pattern, first, shape)
        low, high = np.empty((2, len(self.patterns)), np.int64)
        for start in range(0, len(low), ROWS_PER_READ):
            part = slice(start, start + ROWS_PER_READ)
            loops.find_ends(self.shapes.store.take(self.patterns[part])[1], low[part], high[part])
        self.ends = low, high
        return named

    def _has_shapes(
        self, loops: ModuleType, pattern: NDArray[np.uint32], first: int, last: int
    ) -> bool:
        """Return whether all patterns of rows are known; they are between `first` and `last`."""
        begin, shape = self._shape_numbers
        if first < begin or last >= begin + len(shape):
            return False
        return not self._has_gaps or bool(loops.all_known(pattern, begin, shape))


COLUMNS = ("pc", "space", "base", "pattern")
"""The columns by which two accesses are equal."""


class RecentRows:
    """Filter of the rows that repeat a recent one."""

    def __init__(self) -> None:
        self._seen = np.full((2, 1 << recent_rows.SLOT_BITS), -1)

    def choose(self, batch: pa.RecordBatch) -> Ints:
        """Return the rows of a batch with COLUMNS, rising, that do not repeat a recent one; the
        first of equal rows is among them.
        """
        rows, loops = np.arange(batch.num_rows), loops_of(recent_rows, batch.num_rows)
        columns = (batch[name].to_numpy() for name in COLUMNS)
        return rows[: loops.choose_new(*columns, *self._seen, rows)]
