"""The stack of registers that recursive calls save, for each lane of a wave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.structure import I32, I64, U8
from ....jit.value import assembly, trailing_zeros
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
    move_registers(table, count, frame, saved, stride, depth, mask, 1)
    for lane in range(32):
        depth[lane] += mask >> lane & 1
    return 0


def restore_lanes(
    table: I64, count: int, frame: U8, saved: U8, stride: int, depth: I32, mask: int
) -> None:
    """Restore what `save_lanes` saved."""
    for lane in range(32):
        depth[lane] -= mask >> lane & 1
    move_registers(table, count, frame, saved, stride, depth, mask, 0)


def move_registers(
    table: I64, count: int, frame: U8, saved: U8, stride: int, depth: I32, mask: int, saves: int
) -> None:
    """Copy the registers of lanes from the frame to their levels, or back."""
    rest = mask
    while rest:
        own = depth[trailing_zeros(rest)]
        lanes = 0
        for lane in range(32):
            lanes = lanes | (1 << lane if depth[lane] == own else 0)
        lanes = lanes & rest
        level = saved[own * stride :]
        for k in range(count):
            size, here, there = table[3 * k], table[3 * k + 1], table[3 * k + 2]
            if saves:
                copy_lanes(level[there:], frame[here:], size, lanes)
            else:
                copy_lanes(frame[here:], level[there:], size, lanes)
        rest = rest & ~lanes


_COPY = """
bytes{n}:
  %new{n} = load <32 x i{bits}>, ptr %from, align {n}
  %old{n} = load <32 x i{bits}>, ptr %to, align {n}
  %all{n} = select <32 x i1> %m, <32 x i{bits}> %new{n}, <32 x i{bits}> %old{n}
  store <32 x i{bits}> %all{n}, ptr %to, align {n}
  br label %done"""
_SIZES = (1, 2, 4, 8, 16)


@assembly(f"""
define internal i64 @copy_lanes(ptr %to, ptr %from, i64 %size, i64 %mask) {{
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  switch i64 %size, label %done [{" ".join(f"i64 {n}, label %bytes{n}" for n in _SIZES)}]
{"".join(_COPY.format(n=n, bits=8 * n) for n in _SIZES)}
done:
  ret i64 0
}}
""")
def copy_lanes(to: U8, source: U8, size: int, mask: int) -> None:
    """Copy lanes `mask` of a register of `size` bytes per lane."""
    raise NotImplementedError
