"""Deferred dictionary entries: patterns and paths written only when a kept row refers to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....traces.table.spill import PatternSpill
from ....traces.table.unique import sorted_unique
from ...engine.launch import Sink

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
        return sorted_unique(numbers[self._places[numbers] == _NOWHERE])

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
        self._spill = PatternSpill()

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Number patterns (n,), (n, 32); return the number of the first."""
        self._numbers.give(len(active))
        return self._spill.add(active, offsets)

    def write(self, numbers: Ids) -> Ids:
        """Write what of these is not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            active, offsets = self._spill.take(missing.astype(np.int64))
            offsets = np.ascontiguousarray(offsets)
            first = self._sink.put("patterns", active=active, offsets=offsets)
            self._numbers.set(missing, first)
        return self._numbers.places(numbers)


class SparePaths:
    """Numbers paths, and writes those that are asked for.

    A path can be asked for until others are added; what was written by then stays known.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._first = 0
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._columns: dict[str, NDArray[Any]] = {}

    def add(self, lengths: NDArray[Any], **columns: NDArray[Any]) -> int:
        """Number paths given as lengths (n,) and flat columns; return the number of the first."""
        self._first = self._numbers.give(len(lengths))
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self._columns = columns
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
        columns = {name: column[flat] for name, column in self._columns.items()}
        return self._sink.put("paths", lengths=lengths.astype(np.uint32), **columns)
