"""Rows of one wave on their way to the trace: collected as they happen, written at its end."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...traces.schema import Space
from .array import Array, Bits, Mask
from .history import HistoryRows
from .launch import Sink

if TYPE_CHECKING:
    from .group import Group


@dataclass(frozen=True, slots=True)
class _Access:
    warps: NDArray[np.intp] | None  # of the wave; None: all, in order
    step: NDArray[np.uint32] | int
    base: Array
    pattern: Array
    count: int
    pc: int
    space: int
    part: int


@dataclass(slots=True)
class WaveRows:
    """Collects the rows of a wave whose warps lie in `block` and `warp` (W,)."""

    block: NDArray[np.uint64]
    warp: NDArray[np.uint16]
    history: HistoryRows = field(default_factory=HistoryRows)
    _accesses: list[_Access] = field(default_factory=list)
    _lanes_on: dict[int, NDArray[np.uint64]] = field(default_factory=dict)
    _texels: list[tuple[Any, ...]] = field(default_factory=list)

    def add_access(
        self, group: "Group", position: int, pc: int, space: Space, part: int,
        base: Array, pattern: Array, keep: Mask | None,
    ) -> None:  # fmt: skip
        """Add a row for every warp of the group that `keep` (rows, warps a row) leaves."""
        shape = (group.rows, group.warps_a_row)
        step: NDArray[np.uint32] | int
        step = position + (group.step if group.common_step is None else group.common_step)
        warps = group.warps if group.compacted else None
        count = len(group.place)
        if keep is not None:
            chosen = np.broadcast_to(keep, shape).reshape(-1)
            base = np.broadcast_to(base, shape).reshape(-1)[chosen]
            pattern = np.broadcast_to(pattern, shape).reshape(-1)[chosen]
            warps = group.place[chosen]
            count = len(warps)
            step = step if isinstance(step, int) else step[chosen]
        self._accesses.append(_Access(warps, step, base, pattern, count, pc, int(space), part))

    def add_lanes_on(self, pc: int, group: "Group", lanes: Mask) -> None:
        """Add the number of lanes that are on, summed by block, to the instruction's count."""
        sums = self._lanes_on.setdefault(pc, np.zeros(group.blocks_in_wave, dtype=np.uint64))
        on = np.broadcast_to(lanes, (group.rows, group.columns)).sum(axis=1, dtype=np.uint64)
        np.add.at(sums, group.row_block, on)

    def add_texels(
        self, warps: NDArray[np.intp], step: NDArray[np.uint32], pc: int, texture: int,
        active: Bits, corner: NDArray[np.int32],
    ) -> None:  # fmt: skip
        """Add texture samples of warps (n,): active masks (n,), corners (n, 32, 4)."""
        self._texels.append(
            (self.block[warps], self.warp[warps], step, pc, texture, active, corner)
        )

    def flush(self, sink: Sink, first_block: int) -> None:
        """Write everything; the patterns that the rows name must be written already."""
        if self._accesses:
            self._flush_accesses(sink)
        self.history.flush(sink, self.block, self.warp)
        for pc in sorted(self._lanes_on):
            lanes = self._lanes_on[pc]
            blocks = np.flatnonzero(lanes).astype(np.uint64)
            if blocks.size:
                pcs = np.full(len(blocks), pc, dtype=np.uint32)
                sink.lanes_on(blocks + np.uint64(first_block), pcs, lanes[blocks])
        for rows in self._texels:
            sink.texels(*rows)
        self._texels.clear()
        self._accesses.clear()
        self._lanes_on.clear()

    @property
    def pending(self) -> int:
        """Access rows that wait to be written."""
        return sum(a.count for a in self._accesses)

    def _flush_accesses(self, sink: Sink) -> None:
        items = self._accesses
        counts = np.array([a.count for a in items])
        total = int(counts.sum())
        base: NDArray[Any] = np.empty(total, dtype=np.int64)
        pattern: NDArray[Any] = np.empty(total, dtype=np.uint32)
        step: NDArray[Any] = np.empty(total, dtype=np.uint32)
        index: NDArray[Any] = np.empty(total, dtype=np.intp)
        everyone = np.arange(len(self.block))
        start = 0
        for item in items:
            end = start + item.count
            _spread(base[start:end], item.base)
            _spread(pattern[start:end], item.pattern)
            step[start:end] = item.step
            index[start:end] = everyone if item.warps is None else item.warps
            start = end
        constants = (
            np.repeat(np.array([a.part for a in items], dtype=np.uint8), counts),
            np.repeat(np.array([a.pc for a in items], dtype=np.uint32), counts),
            np.repeat(np.array([a.space for a in items], dtype=np.uint8), counts),
        )
        sink.accesses(
            self.block[index], self.warp[index], step, *constants, base.view(np.uint64), pattern
        )


def _spread(into: NDArray[Any], values: Array) -> None:
    """Fill `into` (n,) with values (n,), (1, 1), (rows, 1), (1, warps) or (rows, warps)."""
    if values.size == into.size:
        into[:] = values.reshape(-1)
    elif values.size == 1:
        into[:] = values.reshape(-1)[0]
    elif values.shape[1] == 1:
        into.reshape(values.shape[0], -1)[:] = values
    else:
        into.reshape(-1, values.shape[1])[:] = values
