"""Rows of accesses that repeat one that came shortly before, left out where they are many."""

import numpy as np
import pyarrow as pa

from ..interface.hot_loop import compile_if_worth
from ..interface.model import Ints
from . import recent_rows

COLUMNS = ("pc", "space", "base", "pattern")


class RecentRows:
    """What was seen lately of the rows of a launch."""

    def __init__(self) -> None:
        self._seen = np.full((2, 1 << recent_rows.SLOT_BITS), -1)

    def choose(self, batch: pa.RecordBatch) -> Ints:
        """Return the rows, rising, of a batch with COLUMNS: the first of all that are alike, and of
        the others those that are not like one shortly before; all of a small launch."""
        rows = np.arange(batch.num_rows)
        if loops := compile_if_worth(recent_rows, batch.num_rows):
            columns = (batch[name].to_numpy() for name in COLUMNS)
            rows = rows[: loops.choose_new(*columns, *self._seen, rows)]
        return rows
