"""Rows of a dictionary table by identifier, some at a time: memory does not grow with the table."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .table_reader import TableReader

Ints = npt.NDArray[np.int64]

CACHED_BYTES = 1 << 24
"""Bytes of unpacked record batches that are kept; one is kept whatever its size."""


class Part(NamedTuple):
    """Rows `place` (k,) of a record batch, which are those asked for at `which` (k,)."""

    batch: pa.RecordBatch
    place: Ints
    which: Ints


class Dictionary:
    """A table whose row i has the identifier i; the record batches used last are kept."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._firsts = np.array([piece.first for piece in reader.pieces], np.int64)
        self._kept: OrderedDict[int, pa.RecordBatch] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._reader.rows

    def parts(self, identifiers: Ints) -> Iterator[Part]:
        """Yield the rows with identifiers (n,), which exist, those of a record batch together."""
        if not len(identifiers):
            return
        ends = np.array([identifiers.min(), identifiers.max()])
        lowest, highest = (np.searchsorted(self._firsts, ends, "right") - 1).tolist()
        if lowest == highest:
            place = identifiers - self._firsts[lowest]
            yield Part(self._unpack(lowest), place, np.arange(len(place)))
            return
        piece = np.searchsorted(self._firsts, identifiers, "right") - 1
        for number in np.flatnonzero(np.bincount(piece)).tolist():
            which = np.flatnonzero(piece == number)
            place = identifiers[which] - self._firsts[number]
            yield Part(self._unpack(number), place, which)

    def _unpack(self, number: int) -> pa.RecordBatch:
        """Return a record batch, from those kept if it is among them."""
        if number not in self._kept:
            self._kept[number] = self._reader.read(self._reader.pieces[number])
            while len(self._kept) > 1 and self._bytes() > CACHED_BYTES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return self._kept[number]

    def _bytes(self) -> int:
        return sum(int(batch.nbytes) for batch in self._kept.values())
