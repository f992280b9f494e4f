"""Counting lanes with a true predicate, of instructions that have no rows of accesses."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from ....traces.table.column import integers
from ..schedule.place import Placement
from ..tally.accesses import Track
from .sites import broken

SCHEMA = {"pc": pl.UInt32, "scope": pl.String, "lanes": pl.Int64}


class LanesOnCounter:
    """Adds up lanes for all devices, batch by batch."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self._placements = [track.placement for track in tracks]
        self._sums = [pl.DataFrame(schema=SCHEMA) for _ in tracks]
        self._rows = [np.empty((2, 0), np.int64)]

    def take(self, batch: pa.RecordBatch) -> None:
        """Count rows of LANES_ON."""
        self._rows.append(np.stack(integers(batch, "block", "pc")))
        for number, placement in enumerate(self._placements):
            parts = [self._sums[number], _table(batch, placement)]
            self._sums[number] = _sum(pl.concat(parts))

    def close(self) -> list[pl.DataFrame]:
        """Return for each device a table of `pc`, `scope` and `lanes`.

        CutraceError if a block has two sums for an instruction.
        """
        rows = np.concatenate(self._rows, axis=1)
        rows = rows[:, np.lexsort(rows)]
        twice = np.flatnonzero((rows[:, 1:] == rows[:, :-1]).all(axis=0))
        if len(twice):
            block, pc = rows[:, twice[0]]
            raise broken(f"lanes_on has two rows of block {block} and instruction {pc}")
        return self._sums


def _table(batch: pa.RecordBatch, placement: Placement) -> pl.DataFrame:
    block, lanes = integers(batch, "block", "lanes")
    weight = placement.weight(block)
    columns = {
        "pc": batch["pc"].to_numpy(),
        "scope": np.array(placement.names)[placement.scope(block)].tolist(),
        "lanes": lanes if weight is None else lanes * weight,
    }
    return _sum(pl.DataFrame(columns, SCHEMA))


def _sum(lanes: pl.DataFrame) -> pl.DataFrame:
    """Add up the lanes of each pc and scope."""
    return lanes.group_by("pc", "scope").agg(pl.col("lanes").sum())
