"""Random access to rows of a dictionary table in bounded memory, by identifier.

`StoredPatterns` reads patterns of a trace through an LRU cache of record batches; `PatternSpill`
collects new patterns and moves the oldest to a temporary file.
"""

import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import NDArray

from ..base.dataclass import dataclass
from .schema import LANES
from .table_reader import TableReader

Ints = npt.NDArray[np.int64]

CACHED_BYTES = 1 << 24
"""Maximum bytes of cached record batches; one is cached whatever its size."""


class Part(NamedTuple):
    """Rows `place` (k,) of a record batch, the results for the positions `which` (k,) of a
    request."""

    batch: pa.RecordBatch
    place: Ints
    which: Ints


class Dictionary:
    """A table indexed by identifier: row i has identifier i; the most recently used record batches
    are cached.
    """

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._firsts = np.array([piece.first for piece in reader.pieces], np.int64)
        self._kept: OrderedDict[int, pa.RecordBatch] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._reader.rows

    def parts(self, identifiers: Ints) -> Iterator[Part]:
        """Yield the rows with identifiers (n,), which must exist, grouped by record batch."""
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
        """Return a record batch, from the cache if it is there."""
        if number not in self._kept:
            self._kept[number] = self._reader.read(self._reader.pieces[number])
            while len(self._kept) > 1 and self._bytes() > CACHED_BYTES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return self._kept[number]

    def _bytes(self) -> int:
        return sum(int(batch.nbytes) for batch in self._kept.values())


Unpacked: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]
"""Active masks (n,) and offsets (n, 32)."""


class Patterns(Protocol):
    """The patterns of a launch, by identifier."""

    def __len__(self) -> int:
        """Return the number of patterns."""

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return active masks (n,) and offsets (n, 32), bytes, of identifiers (n,), which must
        exist.
        """


@dataclass(frozen=True, slots=True, eq=False)
class HeldPatterns:
    """Patterns that are all in memory: active masks (n,) and offsets (n, 32)."""

    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.active)

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return the patterns of identifiers (n,)."""
        return self.active[identifiers], self.offsets.take(identifiers, axis=0)


class StoredPatterns(Dictionary):
    """Patterns on disk with a cache in memory."""

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return the patterns of identifiers (n,)."""
        active = np.empty(len(identifiers), np.uint32)
        offsets = np.empty((len(identifiers), LANES), np.int32)
        for batch, place, which in self.parts(identifiers):
            rows = _as_slice(place)
            masks = batch["active"].to_numpy()[rows]
            lanes = batch["offsets"].values.to_numpy().reshape(-1, LANES)[rows]
            if len(which) == len(identifiers):
                return masks, lanes
            into = _as_slice(which)
            active[into], offsets[into] = masks, lanes
        return active, offsets


def _as_slice(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
    """Return consecutive places as a slice, which avoids a copy."""
    follow = bool((places[1:] - places[:-1] == 1).all())
    return slice(int(places[0]), int(places[-1]) + 1) if follow else places


HELD_BYTES = 1 << 25
"""Maximum bytes of patterns held in memory."""

WIDTH = LANES + 1
"""A pattern as 32-bit integers: the mask, then the offsets."""


class PatternSpill:
    """Stores patterns in order of identifier, and returns any of them."""

    def __init__(self) -> None:
        self._count = 0
        self._held: deque[tuple[int, NDArray[np.int32]]] = deque()
        self._held_bytes = 0
        self._file: BinaryIO | None = None

    def __len__(self) -> int:
        """Return the number of patterns."""
        return self._count

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Append patterns (n,), (n, 32); return the identifier of the first."""
        rows = np.empty((len(active), WIDTH), np.int32)
        rows[:, 0] = active.view(np.int32)
        rows[:, 1:] = offsets
        first, self._count = self._count, self._count + len(rows)
        self._held.append((first, rows))
        self._held_bytes += rows.nbytes
        while self._held_bytes > HELD_BYTES and len(self._held) > 1:
            self._spill()
        return first

    def _spill(self) -> None:
        """Move the oldest patterns from memory to the file, which holds them in order of
        identifier.
        """
        if self._file is None:
            self._file = TemporaryFile(prefix="cutrace-")  # noqa: SIM115 (closed by the next line)
            weakref.finalize(self, self._file.close)
        _, rows = self._held.popleft()
        self._held_bytes -= rows.nbytes
        # Only the oldest batch leaves memory, so the file holds identifiers 0 to n - 1 without gaps
        # and an identifier is a file offset.
        self._file.seek(0, 2)
        self._file.write(rows.tobytes())

    def take(self, identifiers: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return active masks (n,) and offsets (n, 32) of the patterns with these identifiers."""
        distinct, number = np.unique(identifiers, return_inverse=True)
        rows = np.empty((len(distinct), WIDTH), np.int32)
        begin = self._held[0][0] if self._held else 0
        for place in np.flatnonzero(distinct < begin).tolist():
            rows[place] = self._read(int(distinct[place]))
        for first, chunk in self._held:
            places = np.flatnonzero((distinct >= first) & (distinct < first + len(chunk)))
            rows[places] = chunk[distinct[places] - first]
        patterns = rows[number]
        return np.ascontiguousarray(patterns[:, 0]).view(np.uint32), patterns[:, 1:]

    def _read(self, number: int) -> NDArray[np.int32]:
        assert self._file is not None
        self._file.seek(number * 4 * WIDTH)
        return np.frombuffer(self._file.read(4 * WIDTH), np.int32)
