"""LRC, the L2 request coalescer: it joins reads of neighbouring SMs to one read of L2.

What the hardware does. Recent chips have a unit between the SMs and L2 that Nsight Compute calls
the L2 request coalescer. Where several SMs read the same data at about the same time, it reads L2
once and answers all. On the measured chip, 132 blocks that read one array together made 35 reads of
each sector, and 8 blocks 2; so it joins up to four. Reads of blocks that only overlap, as at the
edges of a stencil, were not joined at all.

What is modelled. A read is the misses of a warp instruction in one line of L1. A read that equals
one of the last `window` reads of the same SMs, those of the stage's scope, is `joined`: it is
counted in transactions, and does not reach L2. All other requests are passed on.

What is not: time. SMs that drift apart read separately; here they take turns.

Source: Nsight Compute 2024 documentation, memory chart (LRC); docs/validation.md.
"""

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..jit.loop import as_array, as_list, compile_if_worth, extend
from .replay.interface.model import Batch, Step, one_lane
from .replay.stateful import lrc_window

SECTOR = 32


@dataclass
class Lrc:
    """One unit. `line` is the size of L1's lines, a power of two; `window` counts reads."""

    line: int
    window: int

    counters: ClassVar[tuple[str, ...]] = ("joined",)
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    _clock: Any = field(default_factory=list, init=False, repr=False)
    _heads: Any = field(default_factory=list, init=False, repr=False)
    _ring: Any = field(default_factory=lambda: ([], [], []), init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse impossible lines and windows."""
        if self.line < SECTOR or self.line & (self.line - 1) or self.line > 32 * SECTOR:
            raise CutraceError(
                f"lrc: line = {self.line}; expected a power of two from {SECTOR} to 1024"
            )
        if self.window < 1:
            raise CutraceError(f"lrc: window = {self.window}; expected 1 at least")

    def step(self, batch: Batch) -> Step:
        """Join reads with earlier ones."""
        compiled = compile_if_worth(lrc_window, len(batch))
        change = as_list if compiled is None else as_array
        nothing, each = np.zeros(len(batch), np.int64), np.arange(len(batch))
        unit = nothing if batch.unit is None else batch.unit
        group = each if batch.group is None else batch.group
        counts = np.zeros(len(batch) if batch.group is None else batch.groups, np.int64)
        self._make_room(1 + int(unit.max(initial=0)))
        state = change(self._clock), tuple(map(change, self._ring)), change(self._heads)
        self._clock, self._ring, self._heads = state
        columns = batch.addresses[:, 0], batch.kind, batch.row
        requests = tuple(change(np.ascontiguousarray(c)) for c in (*columns, unit, group))
        is_load = change(np.array([kind.access == "load" for kind in batch.kinds], np.int64))
        passed, joined = tuple(change(np.empty_like(nothing)) for _ in columns), change(counts)
        size = self.window, self.line.bit_length() - 1
        many = (compiled or lrc_window).join(requests, is_load, state, *size, joined, passed)
        counts = as_array(joined)
        if not batch.passes_on:
            return Step({"joined": counts})
        address, kind, row = (as_array(column[:many]) for column in passed)
        return Step({"joined": counts}, one_lane(batch.kinds, kind, address, row))

    def _make_room(self, units: int) -> None:
        """Allocate the windows of several units."""
        self._clock = extend(self._clock, units, 0)
        many = len(self._clock)
        self._heads = extend(self._heads, many * lrc_window.BUCKETS, 0)
        self._ring = tuple(extend(column, many * self.window, 0) for column in self._ring)
