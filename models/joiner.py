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
from typing import ClassVar

import numpy as np

from ..errors import CutraceError
from .replay.episodes import list_ranges, pack_columns
from .replay.seam import Batch, Ints, Step

SECTOR = 32


@dataclass
class Joiner:
    """One unit. `line` is the size of L1's lines, a power of two; `window` counts reads."""

    line: int
    window: int

    counters: ClassVar[tuple[str, ...]] = ("joined",)
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    _turns: Ints = field(default_factory=lambda: np.zeros(0, np.int64), init=False, repr=False)
    _recent: Ints = field(
        default_factory=lambda: np.zeros((4, 0), np.int64), init=False, repr=False
    )

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
            again = self._find(np.stack([unit, line[first], sectors]))
            joined[loads] = again[np.cumsum(differs) - 1]
        out = batch.take(np.flatnonzero(joined == 0)) if batch.passes_on else None
        return Step({"joined": joined}, out)

    def _find(self, reads: Ints) -> Ints:
        """Return 1 for each read, (3, n), that its unit made among its last `window`, (n,)."""
        turn = self._take_turns(reads[0])
        seen = np.concatenate([self._recent, np.stack([turn, *reads])], axis=1)
        order = np.argsort(pack_columns([*seen[1:]]), kind="stable")  # turns of a unit do not fall
        equal = np.all(seen[1:, order[1:]] == seen[1:, order[:-1]], axis=0)
        again = np.zeros(len(order), np.int64)
        again[order[1:]] = equal & (np.diff(seen[0, order]) <= self.window)
        self._recent = seen[:, seen[0] >= self._turns[seen[1]] - self.window]
        return again[len(again) - len(turn) :]

    def _take_turns(self, unit: Ints) -> Ints:
        """Number the reads of each unit, going on from those before, (n,)."""
        units = max(len(self._turns), 1 + int(unit.max()))
        self._turns = np.pad(self._turns, (0, units - len(self._turns)))
        order = np.argsort(unit, kind="stable")
        many = np.bincount(unit, minlength=units)
        turn = np.empty_like(unit)
        turn[order] = list_ranges(self._turns, many)
        self._turns = self._turns + many
        return turn
