"""The dictionary of address patterns: an active mask and 32 offsets, found again by content."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array import LANES, Array, Bits
from .launch import Sink

EPOCH = 1 << 16
"""Patterns remembered at most; then the dictionary starts anew."""

_WEIGHTS = np.random.default_rng(20).integers(1, 1 << 62, size=LANES + 1, dtype=np.int64) | 1


class PatternTable:
    """Gives identifiers to patterns; those that are new wait in it until `flush`."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._new: list[NDArray[np.int32]] = []
        self._count = 0
        self._flushed = 0

    def intern(self, active: Bits, offsets: Array) -> NDArray[np.uint32]:
        """Return the identifiers (n,) of patterns given as masks (n,) and offsets (n, 32).

        An empty mask is no pattern: it gets identifier 0, since nothing accesses memory there.
        """
        if not (on := active != 0).all():
            found = np.zeros(len(active), dtype=np.uint32)
            if on.any():
                found[on] = self.intern(active[on], offsets[on])
            return found
        rows = np.empty((len(active), LANES + 1), dtype=np.int32)
        rows[:, 0] = active.view(np.int32)
        rows[:, 1:] = offsets
        if len(rows) == 1 or bool((rows == rows[0]).all()):
            return np.full(len(rows), self._one(rows[0]), dtype=np.uint32)
        keys = rows.astype(np.int64) @ _WEIGHTS
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        if 2 * len(first) > len(rows) or not bool((rows[first][group] == rows).all()):
            return self._append(rows)
        found = np.array([self._one(rows[i]) for i in first], dtype=np.uint32)
        return found[group]

    def _one(self, row: NDArray[np.int32]) -> int:
        key = row.tobytes()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= EPOCH:
                self._known.clear()
            known = self._known[key] = int(self._append(row[None])[0])
        return known

    def _append(self, rows: NDArray[np.int32]) -> NDArray[np.uint32]:
        first = self._count
        self._new.append(rows)
        self._count += len(rows)
        return np.arange(first, self._count, dtype=np.uint32)

    def flush(self, sink: Sink) -> None:
        """Hand the new patterns to the sink, in the order of their identifiers."""
        if not self._new:
            return
        rows: NDArray[Any] = np.concatenate(self._new)
        first = sink.patterns(
            np.ascontiguousarray(rows[:, 0]).view(np.uint32), np.ascontiguousarray(rows[:, 1:])
        )
        if first != self._flushed:
            raise AssertionError(f"pattern {self._flushed} was given the identifier {first}")
        self._flushed = self._count
        self._new.clear()
