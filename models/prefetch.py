"""Prefetch: stream buffers behind a cache, which fetch the next blocks ahead of their use.

What the hardware does. No NVIDIA device is known to have this unit; it is here for studies. Behind
a cache there are `buffers` of blocks. A cache miss that no buffer holds starts a stream in the
least recently used buffer: the next `depth` blocks are fetched. A block in a buffer is not fetched
again, and the stream continues from there.

What is modelled: `reads` counts the incoming loads, `read_hits` the loads found in a buffer, and
`prefetches` the blocks fetched ahead, which are passed on as loads. `block` is the size of a block,
a power of two: a sector, or a line. A miss fetches only its sector. A stream stays within `page`
bytes. With 0 buffers all requests are passed on.

What is not: time. Blocks fetched ahead arrive at once. A store changes nothing.

Source: Jouppi, "Improving Direct-Mapped Cache Performance by the Addition of a Small
Fully-Associative Cache and Prefetch Buffers", ISCA 1990, section 4; as there in 4.2, any of the
blocks of a buffer may be the next one.
"""

from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..jit.loop import extend, loops_of
from .replay.interface.model import Batch, Ints, Step, one_lane
from .replay.stateful import stream_buffers
from .replay.stateful.lrc_window import Passed, Requests
from .replay.stateful.stream_buffers import Buffers, Counts, Kinds, Shape


@dataclass
class Prefetch:
    """The buffers of each unit. `block` and `page` are bytes, powers of 2, `depth` is in blocks."""

    buffers: int
    depth: int = 4
    block: int = 128
    page: int = 4096

    counters: ClassVar[tuple[str, ...]] = ("reads", "read_hits", "prefetches")
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    _buffers: Any = field(default_factory=lambda: (_nothing(),) * 3, init=False, repr=False)
    _clock: Ints = field(default_factory=lambda: _nothing(), init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse impossible blocks and pages."""
        for name in ("block", "page"):
            if (value := getattr(self, name)) < 1 or value & (value - 1):
                raise CutraceError(f"prefetch: {name} = {value}; expected a power of two")
        if self.page < self.block or min(self.buffers, self.depth) < 0:
            raise CutraceError(
                f"prefetch: {self.buffers} buffers of {self.depth} blocks of {self.block} bytes in"
                f" pages of {self.page}; expected 0 or more, and a block in a page at least"
            )

    def step(self, batch: Batch) -> Step:
        """Serve the requests in order."""
        rows = np.arange(len(batch))
        unit = np.zeros(len(batch), np.int64) if batch.unit is None else batch.unit
        group = rows if batch.group is None else batch.group
        units = 1 + int(unit.max(initial=0))
        self._clock = extend(self._clock, units, 0)
        self._buffers = tuple(extend(b, len(self._clock) * self.buffers, 0) for b in self._buffers)
        columns = batch.addresses[:, 0], batch.kind, batch.row, unit, group
        kinds = np.array([(k.width, int(k.access == "load")) for k in batch.kinds] or [(1, 0)])
        block, page = (n.bit_length() - 1 for n in (self.block, self.page // self.block))
        counts = np.zeros((len(batch) if batch.group is None else batch.groups, 3), np.int64)
        passed = Passed(*np.empty((3, len(batch) * (1 + self.depth)), np.int64))
        many = loops_of(stream_buffers, len(batch)).serve(
            Requests(*map(np.ascontiguousarray, columns)),
            Kinds(*kinds.T.copy()),
            Buffers(self._clock, *self._buffers),
            Shape(block, self.buffers, self.depth, page),
            Counts(*counts.T),
            passed,
        )
        return Step(dict(zip(self.counters, counts.T, strict=True)), self._out(batch, passed, many))

    def _out(self, batch: Batch, passed: Passed, many: int) -> Batch | None:
        if not batch.passes_on:
            return None
        address, kind, row = (column[:many] for column in passed)
        ahead = (
            replace(k, access="load", width=self.block, image=None, filled=0) for k in batch.kinds
        )
        return one_lane((*batch.kinds, *ahead), kind, address, row)


def _nothing() -> Ints:
    return np.zeros(0, np.int64)
