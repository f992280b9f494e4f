"""Row buffers of waves that run in parallel: written in the waves' order.

A wave's patterns have numbers of its own. When its rows are handed on they are named in the
launch's dictionary, batch by batch as they were made: the same rows in the same batches get the
same identifiers as those of a wave that writes as it runs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..launch import Sink
from ..rows.pattern import PatternTable
from ..rows.pattern_table import NONE, PatternStore, name_rows
from .read_write_sets import Marks

Column = NDArray[Any]


class OwnPatterns(PatternTable):
    """The patterns of the waves of one thread, which rows name by their numbers."""

    def write(self, numbers: NDArray[np.uint32], sink: Sink) -> NDArray[np.uint32]:
        """Return the numbers, which nobody changes from now on."""
        return numbers.copy()


class HeldRows:
    """A sink that keeps the rows of a wave, marks the memory that they reach, and tells `grow` of
    the bytes that it takes. The wave's patterns lie in `store` until it has ended."""

    def __init__(self, store: PatternStore, marks: Marks, grow: Callable[[int], None]) -> None:
        self._store = store
        self._marks = marks
        self._grow = grow
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._patterns: tuple[Column, Column] | None = None
        self._paths = 0
        marks.begin_wave()

    def _hold(self, name: str, *columns: Any) -> None:
        self._calls.append((name, columns))
        self._grow(sum(column.nbytes for column in columns))

    def patterns(self, active: Column, offsets: Column) -> int:
        """Patterns come with the wave's end."""
        raise NotImplementedError

    def accesses(
        self, block: Column, warp: Column, step: Column, part: Column, pc: Column, space: Column,
        base: Column, pattern: Column,
    ) -> None:  # fmt: skip
        """Hold accesses, and mark what they reach."""
        self._marks.mark(pc, base, pattern, self._store.table)
        self._hold("accesses", block, warp, step, part, pc, space, base, pattern)

    def paths(self, lengths: Column, *columns: Column) -> int:
        """Hold paths, and number them within the wave."""
        self._hold("paths", lengths, *columns)
        first, self._paths = self._paths, self._paths + len(lengths)
        return first

    def control(self, block: Column, warp: Column, step: Column, path: Column) -> None:
        """Hold what warps ran."""
        self._hold("control", block, warp, step, path)

    def texels(self, *columns: Any) -> None:
        """Compiled code samples no texture."""
        raise NotImplementedError

    def lanes_on(self, block: Column, pc: Column, lanes: Column) -> None:
        """Hold sums of lanes."""
        self._hold("lanes_on", block, pc, lanes)

    def outside(self, *columns: Column) -> None:
        """Hold what lanes did outside of allocations."""
        self._hold("outside", *columns)

    def end(self) -> None:
        """Take the patterns out of the store, which another wave will use."""
        self._patterns = self._store.take(np.arange(self._store.count))
        self._grow(sum(column.nbytes for column in self._patterns))

    def hand_over(self, patterns: PatternTable, sink: Sink) -> None:
        """Give everything to `sink`, with the identifiers of the launch."""
        assert self._patterns is not None
        names = _Names(patterns, *self._patterns)
        shift = own = 0
        for name, columns in self._calls:
            if name == "accesses":
                sink.accesses(*_with_last(columns, names.write(columns[-1], sink)))
            elif name == "paths":
                shift = sink.paths(*columns) - own
                own += len(columns[0])
            elif name == "control":
                sink.control(*_with_last(columns, (columns[-1] + shift).astype(np.uint32)))
            elif name == "outside":
                sink.outside(*columns)
            else:
                sink.lanes_on(*columns)


def _with_last(columns: tuple[Any, ...], last: Column) -> tuple[Any, ...]:
    """Return columns with another one at the end."""
    return (*columns[:-1], last)


class Nowhere:
    """A sink for rows that are written already."""

    def patterns(self, active: Column, offsets: Column) -> int:
        """Drop patterns."""
        return 0

    def accesses(self, *columns: Any) -> None:
        """Drop accesses."""

    def paths(self, *columns: Any) -> int:
        """Drop paths."""
        return 0

    def control(self, *columns: Any) -> None:
        """Drop what warps ran."""

    def texels(self, *columns: Any) -> None:
        """Drop texture samples."""

    def lanes_on(self, *columns: Any) -> None:
        """Drop sums."""

    def outside(self, *columns: Any) -> None:
        """Drop what was told already."""


class _Names:
    """The patterns of a wave, masks (n,) and offsets (n, 32), as the launch knows them."""

    def __init__(self, patterns: PatternTable, active: Column, offsets: Column) -> None:
        self._patterns = patterns
        self._active = active
        self._offsets = offsets
        self._epoch = patterns.epoch
        self._names: NDArray[np.uint32] = np.full(len(active), NONE, dtype=np.uint32)

    def write(self, own: NDArray[np.uint32], sink: Sink) -> NDArray[np.uint32]:
        """Return the identifiers of rows' patterns, after handing new ones to the sink."""
        patterns = self._patterns
        if self._epoch != patterns.epoch:
            self._epoch = patterns.epoch
            self._names[:] = NONE
        names, fresh = name_rows(own, self._names, 0)
        if not len(fresh):
            return names
        numbers = patterns.store.find(self._active[fresh], self._offsets[fresh])
        self._names[fresh] = patterns.write(numbers.astype(np.uint32), sink)
        return self._names[own]
