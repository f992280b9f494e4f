"""The dictionary of address patterns of a launch: an active mask and 32 offsets, by content.

While rows wait their patterns have numbers of the hash table. Identifiers of the trace are given
when rows are written, in the order in which the rows name them first: so the dictionary follows
from the rows alone, however the engine came to look its patterns up.
"""

import numpy as np
from numpy.typing import NDArray

from ..lanes import Array, Bits
from ..launch import Sink
from .pattern_table import NONE, PatternStore, name_rows

EPOCH = 1 << 16
"""Patterns remembered at most when a batch of rows has been written; then none is."""


class PatternTable:
    """Gives numbers to patterns, and identifiers to those that rows name.

    `epoch` grows when all are forgotten, and what had a number has to be looked up again. `waves`
    is how many waves have rows that wait. Launches use one in turn.
    """

    def __init__(self) -> None:
        self.store = PatternStore()
        self.epoch = -1
        self._identifiers: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self.begin_launch()

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.store.nbytes + self._identifiers.nbytes

    def begin_launch(self) -> None:
        """Forget the launch before: identifiers start from 0 again."""
        self.waves = 0
        self._written = 0
        self._forget()

    def intern(self, active: Bits, offsets: Array) -> NDArray[np.uint32]:
        """Return the numbers (n,) of patterns given as masks (n,) and offsets (n, 32).

        An empty mask is no pattern: it gets number 0, since nothing accesses memory there.
        """
        if not (on := active != 0).all():
            found = np.zeros(len(active), dtype=np.uint32)
            if on.any():
                found[on] = self.intern(active[on], offsets[on])
            return found
        narrow = offsets.astype(np.int32, copy=False)
        if len(active) > 1 and bool((active == active[0]).all() and (narrow == narrow[0]).all()):
            one = self.store.find(active[:1], narrow[:1])
            return np.full(len(active), one[0], dtype=np.uint32)
        return self.store.find(active, narrow).astype(np.uint32)

    def write(self, numbers: NDArray[np.uint32], sink: Sink) -> NDArray[np.uint32]:
        """Return the identifiers of the patterns of rows, after handing new ones to the sink."""
        self._grow()
        names, fresh = name_rows(numbers, self._identifiers, self._written)
        if len(fresh):
            self._hand_over(fresh, sink)
        if self._written - self._epoch_start >= EPOCH:
            self._forget()
        return names

    def _hand_over(self, fresh: NDArray[np.int64], sink: Sink) -> None:
        active, offsets = self.store.take(fresh)
        first = sink.put("patterns", active=active, offsets=offsets)
        if first != self._written:
            raise AssertionError(f"pattern {self._written} was given the identifier {first}")
        self._written += len(fresh)

    def _grow(self) -> None:
        """Make room for the identifiers of the patterns that have numbers by now."""
        if self.store.count > len(self._identifiers):
            more = np.full(2 * self.store.count - len(self._identifiers), NONE, dtype=np.uint32)
            self._identifiers = np.concatenate((self._identifiers, more))

    def _forget(self) -> None:
        """Begin a new epoch; numbers are used again unless rows of another wave wait."""
        alone = self.waves <= 1
        if alone:
            self._identifiers[: self.store.count] = NONE
        self.store.forget(drop=alone)
        self.epoch += 1
        self._epoch_start = self._written
