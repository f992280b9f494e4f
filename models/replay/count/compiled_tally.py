"""The tally of `tally.py`, by compiled loops: for launches with many rows."""

from collections.abc import Sequence
from dataclasses import field
from types import ModuleType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.table.column import signed
from ..rows.arrays import Zones
from ..rows.patterns import Shapes
from ..rows.reach import Reaches
from ..rows.sites import Sites
from ..schedule.place import Placement
from ..seam import Ints
from . import counting
from .tally import SLICE, Distinct, count_scopes


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
    _runs: Ints = field(init=False)
    _reaches: Reaches = field(init=False)

    def __post_init__(self) -> None:
        """Make the tables."""
        self._reaches = Reaches(self.shapes)
        self._slots = np.empty(2 * SLICE, np.int32)
        self._found = np.empty((counting.FIELDS, SLICE), np.int64)
        self._runs = np.empty((3, SLICE), np.int64)

    def count(self, loops: ModuleType, batch: pa.RecordBatch) -> Distinct:
        """Find the distinct rows of a batch.

        Raises `CutraceError` where a row lies in a space that its instruction cannot reach.
        """
        pc, space, base, block = (signed(batch, name) for name in ("pc", "space", "base", "block"))
        named = self._reaches.name(loops, signed(batch, "pattern"))
        many, count = loops.number_rows(
            (pc, space, base, block),
            named,
            (self.sites.kind, self.sites.width),
            self._reaches.ends,
            np.append(self.zones.cuts, counting.FAR),
            self.period,
            (self._slots, self._found, self._runs),
        )
        if many < 0:
            self.sites.refuse(pc[-1 - many], space[-1 - many])
        site, shape, phase, zone, mixed = self._found[:, :many].copy()
        runs = self._runs[:, :count]
        times = [_count(loops, runs, many, placement) for placement in self.placements]
        which = self._reaches.patterns[shape]
        return Distinct(site, which, phase, zone, mixed.astype(np.bool_), np.stack(times))


def _count(loops: ModuleType, runs: Ints, many: int, placement: Placement) -> Ints:
    """Return (many, scopes): how often each number occurs in each scope."""
    number, block, length = runs
    first, last = int(block.min()), int(block.max())
    if placement.sampling is not None or last - first > length.sum():
        every = np.repeat(number, length), many, np.repeat(block, length)
        return count_scopes(*every, placement)
    times = np.zeros((many, len(placement.names)), np.int64)
    loops.count_scopes(runs, first, placement.scope(np.arange(first, last + 1)), times)
    return times
