"""Row buffers of one wave: written to the sink in batches of bounded size."""

import numpy as np
from numpy.typing import NDArray

from ..kernel.launch import Sink
from ..ops.lanes import LANES, Array, Bits, Mask
from ..rows.access_rows import AccessRows, Warps
from ..rows.history import HistoryRows
from ..rows.pattern import PatternTable
from .memory import GLOBAL_BASE


class WaveRows:
    """Collects the rows of a wave's warps, which are `warp` (W,) of the blocks `block` (W,)."""

    def __init__(
        self,
        sink: Sink,
        patterns: PatternTable,
        block: NDArray[np.uint64],
        warp: NDArray[np.uint16],
        accesses: AccessRows,
    ) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._lanes_on: dict[int, NDArray[np.uint64]] = {}
        self._patterns = patterns
        patterns.waves += 1
        self.accesses = accesses
        self.history = HistoryRows(sink, block, warp)
        self.outside = OutsideRows(sink, block, warp)

    def add_lanes_on(self, pc: int, group: Warps, lanes: Mask) -> None:
        """Add the number of `lanes` that are on, per block, to the instruction's count."""
        sums = self._lanes_on.setdefault(pc, np.zeros(group.blocks_in_wave, dtype=np.uint64))
        on = np.broadcast_to(lanes, (group.rows, group.columns)).sum(axis=1, dtype=np.uint64)
        np.add.at(sums, group.row_block, on)

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
        self.outside.flush()
        self._patterns.waves -= 1
        for pc in sorted(self._lanes_on):
            lanes = self._lanes_on[pc]
            blocks = np.flatnonzero(lanes)
            if blocks.size:
                pcs = np.full(len(blocks), pc, dtype=np.uint32)
                block = self._block[blocks * (len(self._block) // len(lanes))]
                self._sink.put("lanes_on", block=block, pc=pcs, lanes=lanes[blocks])


class OutsideRows:
    """Counts out-of-bounds lanes per instruction, and keeps the first lane of the first warp.

    The wave's warps are `warp` (W,) of the blocks `block` (W,). Engines may run warps in different
    orders, but each warp's instructions in the same order: so the lowest warp is kept, not the
    earliest.
    """

    def __init__(self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16]) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._found: dict[int, tuple[int, int, int, int]] = {}

    def add(self, pc: int, group: Warps, lanes: Mask, addresses: Array) -> None:
        """Count out-of-bounds `lanes` (rows, columns) of a group, with their `addresses`."""
        places = np.flatnonzero(lanes)
        if len(places):
            warps = group.place[places // LANES]
            first = int(places[warps.argmin()])
            address = int(addresses.reshape(-1)[first])
            self.note(pc, len(places), int(warps.min()), first % LANES, address)

    def note(self, pc: int, lanes: int, warp: int, lane: int, address: int) -> None:
        """Count `lanes` lanes, beginning with `lane` of warp `warp` of the wave."""
        before, *first = self._found.get(pc, (0, warp, lane, address))
        # Keep the first access of the lowest warp; of the same warp the earlier one stays.
        if warp < first[0]:
            first = [warp, lane, address]
        self._found[pc] = (before + lanes, first[0], first[1], first[2])

    def flush(self) -> None:
        """Write all counts."""
        if not self._found:
            return
        pcs = sorted(self._found)
        lanes, warps, lane, address = np.array([self._found[pc] for pc in pcs], np.int64).T
        self._sink.put(
            "outside",
            pc=np.array(pcs, np.uint32),
            lanes=lanes,
            block=self._block[warps],
            thread=self._warp[warps].astype(np.int64) * LANES + lane,
            address=address - GLOBAL_BASE,
        )
