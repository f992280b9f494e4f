"""LRC, the L2 request coalescer: it joins reads of neighbouring SMs to one read of L2.

What the hardware does. Recent chips have a unit between the SMs and L2 that Nsight Compute calls
the L2 request coalescer. Where several SMs read the same data at about the same time, it reads L2
once and answers all. On the measured chip, 132 blocks that read one array together made 35 reads of
each sector, and 8 blocks 2; so it joins up to four. Reads of blocks that only overlap, as at the
edges of a stencil, were not joined at all.

What is modelled: the misses of a warp instruction in one line of L1 are a read. A read that equals
one of the last `window` reads of the SMs that share this unit (`scope`) is `joined`: it counts as a
transaction, but does not reach L2. All other requests are passed on.

An H100 joins the reads of up to four SMs of a GPC while the first is on its way: 500 cycles if it
comes from memory, 60 if L2 has it (tests/validate/caches/h100_reads.csv). Bulk copies are
modelled so (`scope` gpc), loads with four SMs of consecutive blocks.

What is not: time. On a chip SMs that drift apart read separately; in the model SMs take turns.
Three products of DeepGEMM are 7 to 25 % too low for it; one of them varies by 7 % on the chip.

Source: Nsight Compute 2024 documentation, memory chart (LRC); docs/validation.md.
"""

from dataclasses import field
from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..jit.loop import extend, loops_of
from .replay.interface.model import MULTICAST, Batch, Ints, Kind, Step, one_lane
from .replay.stateful import lrc_window
from .replay.stateful.lrc_window import Passed, Requests, Window

SECTOR = 32


def _nothing() -> Ints:
    return np.zeros(0, np.int64)


@dataclass
class Lrc:
    """One unit. `line` is the size of L1's lines, a power of two; `window` counts reads. At most
    `joins` of them share one of L2; 0: any number.
    """

    line: int
    window: int
    joins: int = 0

    counters: ClassVar[tuple[str, ...]] = ("joined",)
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    _clock: Ints = field(default_factory=_nothing, init=False, repr=False)
    _latest: Ints = field(default_factory=_nothing, init=False, repr=False)
    _ring: tuple[Ints, ...] = field(
        default_factory=lambda: (_nothing(),) * 4, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Refuse impossible lines and windows."""
        if self.line < SECTOR or self.line & (self.line - 1) or self.line > 32 * SECTOR:
            raise CutraceError(
                f"lrc: line = {self.line}; expected a power of two from {SECTOR} to 1024"
            )
        if self.window < 1:
            raise CutraceError(f"lrc: window = {self.window}; expected 1 at least")
        if self.joins < 0:
            raise CutraceError(f"lrc: joins = {self.joins}; expected 0 or more")

    def step(self, batch: Batch) -> Step:
        """Join reads with earlier ones."""
        nothing, each = np.zeros(len(batch), np.int64), np.arange(len(batch))
        unit = nothing if batch.unit is None else batch.unit
        group = each if batch.group is None else batch.group
        counts = np.zeros(len(batch) if batch.group is None else batch.groups, np.int64)
        columns = batch.addresses[:, 0], batch.kind, batch.row, unit, group
        requests = Requests(*map(np.ascontiguousarray, columns))
        is_load = np.array([_is_joined(kind) for kind in batch.kinds], np.int64)
        passed = Passed(*np.empty((3, len(batch)), np.int64))
        window, line_bits = self._window(1 + int(unit.max(initial=0))), self.line.bit_length() - 1
        loops = loops_of(lrc_window, len(batch))
        many = loops.join(requests, is_load, window, line_bits, self.joins, counts, passed)
        if not batch.passes_on:
            return Step({"joined": counts})
        address, kind, row = (column[:many] for column in passed)
        return Step({"joined": counts}, one_lane(batch.kinds, kind, address, row))

    def _window(self, units: int) -> Window:
        """Return the windows of several units."""
        self._clock = extend(self._clock, units, 0)
        many = len(self._clock)
        self._latest = extend(self._latest, many * lrc_window.BUCKETS, 0)
        self._ring = tuple(extend(column, many * self.window, 0) for column in self._ring)
        return Window(self.window, self._clock, self._latest, *self._ring)


def _is_joined(kind: Kind) -> bool:
    """Return whether a read may be joined: those of a multicast never are (measured on an H200)."""
    return kind.access == "load" and kind.cache != MULTICAST
