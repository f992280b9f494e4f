"""The stack of registers that recursive calls save, for each lane of a wave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.structure import I32, I64, U8
from ..ops.lanes import LANES, Array

FIRST_LEVELS = 8
"""Levels of recursion reserved at first."""


class FrameStack:
    """The depth of each lane, (warps * 32,), and the saved registers of all warps, level by level.

    A level has `level_bytes` per warp; `levels` have room so far, of at most `most`. Interpreter
    and machine code share the saved registers.
    """

    def __init__(self, level_bytes: int, most: int, warps: int) -> None:
        self.level_bytes, self.most = level_bytes, most
        self.depth: NDArray[np.int32] = np.zeros(warps * LANES, dtype=np.int32)
        self.levels = 0
        self.saved: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._warps = warps
        self.grow(FIRST_LEVELS)

    def grow(self, levels: int) -> None:
        """Make room for this many levels, or for the most that there are."""
        self.levels = min(levels, self.most)
        saved = np.empty(self.levels * self._warps * self.level_bytes + 1, np.uint8)
        saved[: len(self.saved)] = self.saved
        self.saved = saved

    def lanes_of(self, offset: int, dtype: np.dtype[Any]) -> Array:
        """Return the saved values of the register at `offset` of a level, (levels, warps, 32)."""
        steps = (self._warps * self.level_bytes, self.level_bytes, dtype.itemsize)
        shape = (self.levels, self._warps, LANES)
        return np.ndarray(shape, dtype, self.saved, offset, steps)


def save_lanes(
    table: I64, count: int, frame: U8, saved: U8, stride: int, levels: int, depth: I32, mask: int
) -> int:
    """Save registers of the lanes `mask` of a warp, each lane's at its level; return 1, and save
    nothing, if one has no level left.

    `table` has for each of `count` registers its bytes, its place in the frame and in a level. A
    level of all warps has `stride` bytes; `saved` is the warp's part of the first one.
    """
    for lane in range(32):
        if mask >> lane & 1 and depth[lane] >= levels:
            return 1
    for lane in range(32):
        if mask >> lane & 1:
            move_lane(table, count, frame, saved[depth[lane] * stride :], lane, 1)
            depth[lane] += 1
    return 0


def restore_lanes(
    table: I64, count: int, frame: U8, saved: U8, stride: int, depth: I32, mask: int
) -> None:
    """Restore what `save_lanes` saved."""
    for lane in range(32):
        if mask >> lane & 1:
            depth[lane] -= 1
            move_lane(table, count, frame, saved[depth[lane] * stride :], lane, 0)


def move_lane(table: I64, count: int, frame: U8, level: U8, lane: int, saves: int) -> None:
    """Copy the registers of a lane from the frame to a level, or back."""
    for k in range(count):
        size = table[3 * k]
        here, there = table[3 * k + 1] + lane * size, table[3 * k + 2] + lane * size
        for byte in range(size):
            if saves:
                level[there + byte] = frame[here + byte]
            else:
                frame[here + byte] = level[there + byte]
