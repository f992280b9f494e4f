"""The tally of `tally.py`, by compiled loops: for launches with many rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import counting
from .arrays import Zones
from .patterns import Shapes
from .place import Placement
from .seam import Ints
from .sites import Sites
from .tally import SLICE, Distinct, count_scopes, read_column

_NOTHING = np.zeros(0, np.int64)


@dataclass(slots=True)
class CompiledTally:
    """Finds the distinct rows of batches of ACCESSES, SLICE rows at most.

    The tables that it works on, and where patterns reach, are kept from one batch to the next.
    """

    sites: Sites
    shapes: Shapes
    zones: Zones
    period: int
    placements: Sequence[Placement]
    _slots: NDArray[np.int32] = field(init=False)
    _found: Ints = field(init=False)
    _number: Ints = field(init=False)
    _patterns: Ints = field(default_factory=_NOTHING.copy, init=False)
    _reach: tuple[Ints, Ints] = field(default=(_NOTHING, _NOTHING), init=False)

    def __post_init__(self) -> None:
        """Make the tables."""
        self._slots = np.empty(2 * SLICE, np.int32)
        self._found = np.empty((counting.FIELDS, SLICE), np.int64)
        self._number = np.empty(SLICE, np.int64)

    def count(self, loops: ModuleType, batch: pa.RecordBatch) -> Distinct:
        """Find the distinct rows of a batch.

        Raises `CutraceError` where a row lies in a space that its instruction cannot reach.
        """
        pc, space, base, block = (_raw(batch, name) for name in ("pc", "space", "base", "block"))
        patterns, shape = self.shapes.number(read_column(batch, "pattern"))
        number = self._number[: len(pc)]
        many = loops.number_rows(
            (pc, space, base, shape),
            (self.sites.kind, self.sites.width),
            self._ends(loops, patterns),
            np.append(self.zones.cuts, counting.FAR),
            self.period,
            self._slots,
            self._found,
            number,
        )
        if many < 0:
            self.sites.refuse(pc[-1 - many], space[-1 - many])
        site, shape, phase, zone, mixed = self._found[:, :many].copy()
        times = [_count(loops, number, many, block, placement) for placement in self.placements]
        which = patterns[shape]
        return Distinct(site, which, phase, zone, mixed.astype(np.bool_), np.stack(times))

    def _ends(self, loops: ModuleType, patterns: Ints) -> tuple[Ints, Ints]:
        """Return the smallest and the greatest offset of each pattern."""
        if not np.array_equal(patterns, self._patterns):
            self._patterns, self._reach = patterns, self.shapes.reach(patterns, loops)
        return self._reach


def _count(loops: ModuleType, number: Ints, many: int, block: Ints, placement: Placement) -> Ints:
    """Return (many, scopes): how often each number occurs in each scope."""
    first, last = int(block.min()), int(block.max())
    if placement.sampling is not None or last - first > len(block):
        return count_scopes(number, many, block, placement)
    times = np.zeros((many, len(placement.names)), np.int64)
    loops.count_scopes(number, block, first, placement.scope(np.arange(first, last + 1)), times)
    return times


def _raw(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column as it is, 64-bit ones as signed."""
    values: NDArray[Any] = batch[name].to_numpy()
    return values.view(np.int64) if values.itemsize == 8 else values
