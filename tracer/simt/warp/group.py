"""The warps that run one basic block together, in one of three forms.

Whole: all warps of the wave, all lanes active; registers are written in place. Blended: all or most
warps, some lanes; the block's results are merged into the registers under the lanes. Compacted:
few warps; the registers that they read are gathered, (warps, 32), and scattered back later.
"""

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack
from .program import Wave


class WarpGroup:
    """Warps (indices in the wave, ascending) at one basic block, and the layout of their values.

    `frame` holds a value per register slot, broadcastable to (rows, columns); `lanes` the active
    lanes in that shape, None for all; `active` the same as a mask for each of `warps`. `step` is
    the running instruction number of each warp of the shape.
    """

    def __init__(self, wave: Wave, warps: NDArray[np.intp], active: Bits) -> None:
        self.wave = wave
        self.warps = warps
        self.active = active
        # Below half of the warps a gather and scatter costs less than computing on all of them.
        self.compacted = 2 * len(warps) < wave.warps
        self.whole = len(warps) == wave.warps
        if self.compacted:
            self.rows, self.columns = len(warps), LANES
            self.row_block = wave.block_of_warp[warps]
        else:
            self.rows, self.columns = wave.blocks, wave.columns
            self.row_block = wave.all_blocks
        self.lanes = self._lanes()
        self.step: NDArray[np.uint32] = wave.step[self.place]
        first = self.step[0]
        self.common_step = int(first) if bool((self.step == first).all()) else None
        self.frame: list[Array] = []
        self.committed: list[Array] = []

    def _lanes(self) -> Mask | None:
        if self.compacted:
            full = bool((self.active == ALL_LANES).all())
            return None if full else self.wave.lanes_of(self.active, LANES)
        if self.whole and bool((self.active == ALL_LANES).all()):
            return None
        active = np.zeros(self.wave.warps, dtype=np.uint32)
        active[self.warps] = self.active
        return self.wave.lanes_of(active, self.columns)

    @property
    def warps_a_row(self) -> int:
        """Warps side by side in a row."""
        return self.columns // LANES

    @property
    def blocks_in_wave(self) -> int:
        """Thread blocks of the wave."""
        return self.wave.blocks

    @property
    def place(self) -> NDArray[np.intp]:
        """The index in the wave of each warp of the shape (rows * warps per row)."""
        return self.warps if self.compacted else self.wave.all_warps

    def pack(self, lanes: Mask) -> Bits:
        """Pack booleans of the group's shape to a mask for each of `warps`, active lanes only."""
        if lanes.size == 1:
            return self.active if lanes[0, 0] else np.zeros_like(self.active)
        if lanes.shape[1] == 1:
            bits = np.where(lanes, np.uint32(ALL_LANES), np.uint32(0))
            bits = np.broadcast_to(bits, (self.rows, self.warps_a_row)).reshape(-1)
        elif lanes.shape[0] == 1:
            bits = np.tile(pack(lanes.reshape(-1, LANES)), self.rows)
        else:
            bits = pack(lanes.reshape(-1, LANES))
        if not self.compacted and not self.whole:
            bits = bits[self.warps]
        return bits & self.active

    def guarded(self, guard: Mask | None) -> Mask | None:
        """Return the active lanes with a true `guard`; None means all."""
        if guard is None or (guard.size == 1 and guard[0, 0]):
            return self.lanes
        return guard if self.lanes is None else self.lanes & guard
