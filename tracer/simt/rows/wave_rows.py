"""Row buffers of one wave: written to the sink in batches of bounded size."""

import numpy as np
from numpy.typing import NDArray

from ..kernel.launch import Sink
from ..memory.memory import GLOBAL_BASE
from ..ops.lanes import LANES, Bits
from .access_rows import AccessRows, RowBuffer
from .history import HistoryRows, PathTable
from .pattern import PatternTable


class WaveRows:
    """Collects the rows of a wave's warps, which are `warp` (W,) of the blocks `block` (W,)."""

    def __init__(
        self,
        sink: Sink,
        patterns: PatternTable,
        block: NDArray[np.uint64],
        warp: NDArray[np.uint16],
        accesses: AccessRows,
        paths: PathTable,
    ) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._lanes_on: dict[int, NDArray[np.uint64]] = {}
        self._patterns = patterns
        patterns.waves += 1
        self.accesses = accesses
        self.history = HistoryRows(sink, block, warp, paths)

    def begin_again(self, sink: Sink, block: NDArray[np.uint64]) -> None:
        """Collect the rows of other blocks."""
        self._sink, self._block = sink, block
        self._lanes_on.clear()
        self._patterns.waves += 1
        self.accesses.begin_again(sink, block)
        self.history.begin_again(sink, block)

    def set_blocks(self, block: NDArray[np.uint64]) -> None:
        """Collect the rows of the next wave of a chain, but for its accesses."""
        self._block = block
        self.history.set_blocks(block)

    def count_lanes_on(self, pc: int, lanes: NDArray[np.uint64]) -> None:
        """Add to an instruction's count of lanes that are on, per block of the wave."""
        self._lanes_on[pc] = self._lanes_on.get(pc, np.uint64(0)) + lanes

    def add_texels(
        self, warps: NDArray[np.intp], step: NDArray[np.uint32], pc: int, texture: int,
        active: Bits, corner: NDArray[np.int32],
    ) -> None:  # fmt: skip
        """Write texture samples of warps (n,): active masks (n,), corners (n, 32, 4)."""
        self._sink.put(
            "texels", block=self._block[warps], warp=self._warp[warps], step=step, pc=pc,
            texture=texture, active=active, corner=corner,
        )  # fmt: skip

    def finish(self) -> None:
        """Flush all buffers at the end of the wave."""
        self._write_outside(self.accesses.buffer)
        self._patterns.waves -= 1
        for pc in sorted(self._lanes_on):
            lanes = self._lanes_on[pc]
            blocks = np.flatnonzero(lanes)
            if blocks.size:
                pcs = np.full(len(blocks), pc, dtype=np.uint32)
                block = self._block[blocks * (len(self._block) // len(lanes))]
                self._sink.put("lanes_on", block=block, pc=pcs, lanes=lanes[blocks])

    def _write_outside(self, m: RowBuffer) -> None:
        """Write the counts of lanes outside of every allocation, if the launch reports them."""
        if not m.reports:
            return
        (pcs,) = np.nonzero(m.outside_lanes)
        if pcs.size:
            warps = m.outside_warp[pcs]
            self._sink.put(
                "outside",
                pc=pcs.astype(np.uint32),
                lanes=m.outside_lanes[pcs],
                block=self._block[warps],
                thread=self._warp[warps].astype(np.int64) * LANES + m.outside_lane[pcs],
                address=m.outside_address[pcs] - GLOBAL_BASE,
            )
