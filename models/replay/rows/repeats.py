"""Repeats: skip rows of accesses that repeat a recent one, in launches with many rows."""

import numpy as np
import pyarrow as pa

from ..interface.hot_loop import compile_if_worth
from ..interface.model import Ints
from . import recent_rows

COLUMNS = ("pc", "space", "base", "pattern")


class RecentRows:
    """The recent rows of a launch."""

    def __init__(self) -> None:
        self._seen = np.full((2, 1 << recent_rows.SLOT_BITS), -1)

    def choose(self, batch: pa.RecordBatch) -> Ints:
        """Return the rows of a batch with COLUMNS, rising, that do not repeat a recent one; the
        first of equal rows is among them. A small launch keeps all.
        """
        rows = np.arange(batch.num_rows)
        if loops := compile_if_worth(recent_rows, batch.num_rows):
            columns = (batch[name].to_numpy() for name in COLUMNS)
            rows = rows[: loops.choose_new(*columns, *self._seen, rows)]
        return rows
