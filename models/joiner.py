"""Joiner: reads of neighbouring SMs that reach L2 as one.

What the hardware does. Between the SMs and L2 of recent chips stands a unit that Nsight Compute
calls the L2 request coalescer: where several SMs read the same at about the same time, it asks L2
once and answers all. On the chip that was measured, 132 blocks that read one array together made
35 reads of each sector, and 8 blocks 2; so it joins up to four. Blocks whose reads only overlap,
as at the edges of a stencil, were not joined at all.

What is modelled. A read is what an instruction of a warp misses in one line of L1. One that is
equal to a read among the last `window` of the same SMs, those of the stage's scope, is `joined`,
counted in transactions, and does not go on. Everything else does.

What is not: time. SMs that drift apart ask for themselves; here they take turns.

Source: Nsight Compute 2024 documentation, memory chart (LRC); docs/validation.md.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import CutraceError
from .replay import recent
from .replay.compiled import as_array, as_list, compile_if_worth, extend
from .replay.seam import Batch, Ints, Step

SECTOR = 32
WORTH = 1 << 16
"""Reads from which on the compiled loop is worth its start of about a second."""

Reads: TypeAlias = tuple[Ints, Ints, Ints]
"""Unit, line and mask of sectors of n reads, each (n,)."""


@dataclass
class Joiner:
    """One unit. `line` is the size of L1's lines, a power of two; `window` counts reads."""

    line: int
    window: int

    counters: ClassVar[tuple[str, ...]] = ("joined",)
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    _turns: Any = field(default_factory=list, init=False, repr=False)
    _heads: Any = field(default_factory=list, init=False, repr=False)
    _ring: Any = field(default_factory=lambda: ([], [], []), init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse lines and windows that there cannot be."""
        if self.line < SECTOR or self.line & (self.line - 1) or self.line > 32 * SECTOR:
            raise CutraceError(
                f"joiner: line = {self.line}; expected a power of two from {SECTOR} to 1024"
            )
        if self.window < 1:
            raise CutraceError(f"joiner: window = {self.window}; expected 1 at least")

    def step(self, batch: Batch) -> Step:
        """Join reads with those before them."""
        is_load = np.array([kind.access == "load" for kind in batch.kinds], np.bool_)[batch.kind]
        loads = np.flatnonzero(is_load)
        joined = np.zeros(len(batch), np.int64)
        if len(loads):
            address, row = batch.addresses[loads, 0], batch.row[loads]
            line, offset = address >> self.line.bit_length() - 1, address & (self.line - 1)
            differs = (np.diff(row, prepend=-1) != 0) | (np.diff(line, prepend=-1) != 0)
            first = np.flatnonzero(differs)
            sectors = np.add.reduceat(1 << (offset >> SECTOR.bit_length() - 1), first)
            unit = np.zeros(len(first), np.int64)
            if batch.unit is not None:
                unit = batch.unit[loads[first]]
            again = self._find((unit, line[first], sectors))
            joined[loads] = again[np.cumsum(differs) - 1]
        out = batch.take(np.flatnonzero(joined == 0)) if batch.passes_on else None
        return Step({"joined": joined}, out)

    def _find(self, reads: Reads) -> Ints:
        """Return 1 for each read that its unit made among its last `window`, (n,)."""
        again = np.zeros(len(reads[0]), np.int64)
        self._make_room(1 + int(reads[0].max()))
        compiled = compile_if_worth(recent.__name__, len(again), WORTH)
        change = as_list if compiled is None else as_array
        turns, heads, *ring = map(change, (self._turns, self._heads, *self._ring))
        marks, loop = change(again), (compiled or recent).mark_recent
        loop(tuple(map(change, reads)), turns, tuple(ring), heads, self.window, marks)
        self._turns, self._heads, self._ring = turns, heads, tuple(ring)
        return as_array(marks)

    def _make_room(self, units: int) -> None:
        """Have room for what so many units read."""
        self._turns = extend(self._turns, units, 0)
        many = len(self._turns)
        self._heads = extend(self._heads, many * recent.BUCKETS, 0)
        self._ring = tuple(extend(column, many * self.window, 0) for column in self._ring)
