"""Patterns and paths that have a number but are not in the trace: nothing kept needs them yet."""

from collections import deque
from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...traces.schema import LANES
from ..engine.launch import Sink

HELD_BYTES = 1 << 25
"""Bytes of patterns that are kept in memory; older ones go to a temporary file."""

WIDTH = LANES + 1
"""A pattern as 32-bit integers: the mask, then the offsets."""

Ids = NDArray[np.uint32]
_NOWHERE = np.uint32(0xFFFFFFFF)


class _Numbers:
    """Where in the trace each number that was given out lies, or _NOWHERE."""

    def __init__(self) -> None:
        self.given = 0
        self._places: Ids = np.full(1 << 12, _NOWHERE, np.uint32)

    def give(self, count: int) -> int:
        """Give out so many numbers; return the first."""
        first, self.given = self.given, self.given + count
        if self.given > len(self._places):
            grown = np.full(max(self.given, 2 * len(self._places)), _NOWHERE, np.uint32)
            grown[: len(self._places)] = self._places
            self._places = grown
        return first

    def missing(self, numbers: Ids) -> Ids:
        """Return those that lie nowhere yet, each once, rising."""
        return np.unique(numbers[self._places[numbers] == _NOWHERE])

    def set(self, numbers: Ids, first: int) -> None:
        """Note that these lie one after another from `first` on."""
        self._places[numbers] = np.arange(first, first + len(numbers), dtype=np.uint32)

    def places(self, numbers: Ids) -> Ids:
        """Return where they lie."""
        return self._places[numbers]


class SparePatterns:
    """Numbers patterns, and writes those that are asked for."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._held: deque[tuple[int, NDArray[np.int32]]] = deque()
        self._held_bytes = 0
        self._file: BinaryIO | None = None

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Number patterns (n,), (n, 32); return the number of the first."""
        rows = np.empty((len(active), WIDTH), np.int32)
        rows[:, 0] = active.view(np.int32)
        rows[:, 1:] = offsets
        first = self._numbers.give(len(rows))
        self._held.append((first, rows))
        self._held_bytes += rows.nbytes
        while self._held_bytes > HELD_BYTES and len(self._held) > 1:
            self._spill()
        return first

    def _spill(self) -> None:
        """Move the oldest patterns in memory to the file: it holds them in order of number."""
        if self._file is None:
            self._file = TemporaryFile(prefix="cutrace-")  # noqa: SIM115 (closed when dropped)
        _, rows = self._held.popleft()
        self._held_bytes -= rows.nbytes
        self._file.seek(0, 2)
        self._file.write(rows.tobytes())

    def write(self, numbers: Ids) -> Ids:
        """Write what of these is not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            rows = self._find(missing)
            active = np.ascontiguousarray(rows[:, 0]).view(np.uint32)
            first = self._sink.patterns(active, np.ascontiguousarray(rows[:, 1:]))
            self._numbers.set(missing, first)
        return self._numbers.places(numbers)

    def _find(self, numbers: Ids) -> NDArray[np.int32]:
        """Return patterns (n, 1 + 32) by their rising numbers."""
        begin = self._held[0][0]
        spilled = int(np.searchsorted(numbers, begin))
        parts = [self._read(number) for number in numbers[:spilled].tolist()]
        for first, rows in self._held:
            chosen = numbers[(numbers >= first) & (numbers < first + len(rows))]
            parts.append(rows[chosen - first])
        return np.concatenate(parts)

    def _read(self, number: int) -> NDArray[np.int32]:
        assert self._file is not None
        self._file.seek(number * 4 * WIDTH)
        return np.frombuffer(self._file.read(4 * WIDTH), np.int32).reshape(1, WIDTH)


class SparePaths:
    """Numbers paths, and writes those that are asked for.

    A path can be asked for until others are added; what was written by then stays known.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._first = 0
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._columns: tuple[NDArray[Any], ...] = ()

    def add(self, lengths: NDArray[Any], columns: Sequence[NDArray[Any]]) -> int:
        """Number paths given as lengths (n,) and flat columns; return the number of the first."""
        self._first = self._numbers.give(len(lengths))
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self._columns = tuple(columns)
        return self._first

    def write(self, numbers: Ids) -> Ids:
        """Write what of these is not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            if missing[0] < self._first:
                raise AssertionError(f"path {missing[0]} is asked for after others have come")
            self._numbers.set(missing, self._write(missing - np.uint32(self._first)))
        return self._numbers.places(numbers)

    def _write(self, which: Ids) -> int:
        lengths = np.diff(self._starts)[which]
        ends = np.cumsum(lengths)
        shift = np.repeat(self._starts[which] - (ends - lengths), lengths)
        flat = shift + np.arange(int(ends[-1]))
        columns = [column[flat] for column in self._columns]
        return self._sink.paths(lengths.astype(np.uint32), *columns)
