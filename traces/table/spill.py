"""Patterns by number, of which the last ones are in memory and the others in a temporary file."""

import weakref
from collections import deque
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..schema import LANES

HELD_BYTES = 1 << 25
"""Bytes of patterns that are kept in memory."""

WIDTH = LANES + 1
"""A pattern as 32-bit integers: the mask, then the offsets."""


class PatternSpill:
    """Takes patterns in order of number, and gives back any of them."""

    def __init__(self) -> None:
        self._count = 0
        self._held: deque[tuple[int, NDArray[np.int32]]] = deque()
        self._held_bytes = 0
        self._file: BinaryIO | None = None

    def __len__(self) -> int:
        """Return the number of patterns."""
        return self._count

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Take patterns (n,), (n, 32); return the number of the first."""
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
        """Move the oldest patterns in memory to the file: it holds them in order of number."""
        if self._file is None:
            self._file = TemporaryFile(prefix="cutrace-")  # noqa: SIM115 (closed by the next line)
            weakref.finalize(self, self._file.close)
        _, rows = self._held.popleft()
        self._held_bytes -= rows.nbytes
        self._file.seek(0, 2)
        self._file.write(rows.tobytes())

    def take(self, identifiers: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return active masks (n,) and offsets (n, 32) of the patterns with these numbers."""
        distinct, number = np.unique(identifiers, return_inverse=True)
        rows = np.empty((len(distinct), WIDTH), np.int32)
        begin = self._held[0][0] if self._held else 0
        for place in np.flatnonzero(distinct < begin).tolist():
            rows[place] = self._read(int(distinct[place]))
        for first, held in self._held:
            places = np.flatnonzero((distinct >= first) & (distinct < first + len(held)))
            rows[places] = held[distinct[places] - first]
        found = rows[number]
        return np.ascontiguousarray(found[:, 0]).view(np.uint32), found[:, 1:]

    def _read(self, number: int) -> NDArray[np.int32]:
        assert self._file is not None
        self._file.seek(number * 4 * WIDTH)
        return np.frombuffer(self._file.read(4 * WIDTH), np.int32)
