"""Access rows of one wave: buffered as one item per instruction, expanded to a row per warp
on flush.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop_codegen import translate
from ....jit.machine_code import compile_assembly
from ....jit.structure import I32, I64, U8, U16, U32, Struct
from ....traces.schema import Space
from ..kernel.launch import Sink
from ..ops.lanes import Array, Mask
from .pattern import PatternTable


class Warps(Protocol):
    """Warps (indices in the wave, ascending) with their lanes in arrays (rows, columns).

    `place` (rows * warps per row) is each warp's index in the wave, `step` its running instruction
    number, `common_step` the one of all if they agree; `row_block` (rows,) is the thread block of
    each row.
    """

    warps: NDArray[np.intp]
    rows: int
    columns: int
    compacted: bool
    row_block: NDArray[np.intp]
    step: NDArray[np.uint32]
    common_step: int | None

    @property
    def warps_a_row(self) -> int:
        """Warps side by side in a row."""

    @property
    def blocks_in_wave(self) -> int:
        """Thread blocks of the wave."""

    @property
    def place(self) -> NDArray[np.intp]:
        """Each warp's index in the wave."""


ROWS = 1 << 15
"""Maximum buffered rows: a megabyte, written as one record batch."""


@dataclass(frozen=True, slots=True)
class _Item:
    """Rows of one instruction: `base` and `pattern` as `_spread` takes them, `warps` None for
    all.
    """

    warps: NDArray[np.intp] | None
    step: NDArray[np.uint32] | int
    base: Array
    pattern: Array
    count: int
    pc: int
    space: int
    part: int


@dataclass(slots=True)
class AccessRows:
    """Collects the accesses of a wave's warps, which are `warp` (W,) of the blocks `block` (W,)."""

    sink: Sink
    patterns: PatternTable
    block: NDArray[np.uint64]
    warp: NDArray[np.uint16]
    _items: list[_Item] = field(default_factory=list)
    _pending: int = 0

    def add(
        self, group: Warps, position: int, pc: int, space: Space, part: int,
        base: Array, pattern: Array, keep: Mask | None,
    ) -> None:  # fmt: skip
        """Add a row for each warp of the group's shape that `keep` (rows, warps per row)
        selects.
        """
        step: NDArray[np.uint32] | int
        step = position + (group.step if group.common_step is None else group.common_step)
        warps = group.warps if group.compacted else None
        count = len(group.place)
        if keep is not None:
            shape = (group.rows, group.warps_a_row)
            row_mask = np.broadcast_to(keep, shape).reshape(-1)
            base = np.broadcast_to(base, shape).reshape(-1)[row_mask]
            pattern = np.broadcast_to(pattern, shape).reshape(-1)[row_mask]
            warps = group.place[row_mask]
            count = len(warps)
            step = step if isinstance(step, int) else step[row_mask]
        self._items.append(_Item(warps, step, base, pattern, count, pc, int(space), part))
        self._pending += count
        if self._pending >= ROWS:
            self.flush()

    def take(self) -> Iterator[tuple[int, int, int, Array, Array, Array, Array]]:
        """Yield the buffered rows of each instruction, and empty the buffer: pc, state space, part,
        and for each row warp, step, base and pattern."""
        everyone = np.arange(len(self.block))
        for item in self._items:
            step: NDArray[Any] = np.empty(item.count, dtype=np.uint32)
            base: NDArray[Any] = np.empty(item.count, dtype=np.int64)
            pattern: NDArray[Any] = np.empty(item.count, dtype=np.uint32)
            step[:] = item.step
            _spread(base, item.base)
            _spread(pattern, item.pattern)
            warps = everyone if item.warps is None else item.warps
            yield item.pc, item.space, item.part, warps, step, base, pattern
        self._items.clear()
        self._pending = 0

    def flush(self) -> None:
        """Write the buffered rows, after the patterns that they name."""
        items = self._items
        if not items:
            return
        counts = [item.count for item in items]
        base: NDArray[Any] = np.empty(self._pending, dtype=np.int64)
        pattern: NDArray[Any] = np.empty(self._pending, dtype=np.uint32)
        step: NDArray[Any] = np.empty(self._pending, dtype=np.uint32)
        start = 0
        for item in items:
            end = start + item.count
            _spread(base[start:end], item.base)
            _spread(pattern[start:end], item.pattern)
            step[start:end] = item.step
            start = end
        part, pc, space = (
            np.repeat(np.array(values, dtype=dtype), counts)
            for values, dtype in (
                ([item.part for item in items], np.uint8),
                ([item.pc for item in items], np.uint32),
                ([item.space for item in items], np.uint8),
            )
        )
        block, warp = self._owners()
        pattern = self.patterns.write(pattern, self.sink)
        self.sink.put(
            "accesses", block=block, warp=warp, step=step, part=part, pc=pc, space=space,
            base=base.view(np.uint64), pattern=pattern,
        )  # fmt: skip
        items.clear()
        self._pending = 0

    def _owners(self) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
        """Return block and warp of every buffered row."""
        if all(item.warps is None for item in self._items):
            return np.tile(self.block, len(self._items)), np.tile(self.warp, len(self._items))
        everyone = np.arange(len(self.block))
        index = np.concatenate(
            [everyone if item.warps is None else item.warps for item in self._items]
        )
        return self.block[index], self.warp[index]


def _spread(into: NDArray[Any], values: Array) -> None:
    """Expand values (n,), (1, 1), (rows, 1), (1, warps) or (rows, warps) into `into` (n,)."""
    if values.size == into.size:
        into[:] = values.reshape(-1)
    elif values.size == 1:
        into[:] = values.reshape(-1)[0]
    elif values.shape[1] == 1:
        into.reshape(values.shape[0], -1)[:] = values
    else:
        into.reshape(-1, values.shape[1])[:] = values


class Columns(Struct):
    """Input and output columns of `fill_columns`.

    Input: `runs` runs of rows, each with `run_count` rows of the access `run_site`. An access has
    `site_pc`, `site_part` and `site_space`: its pc, part and state space. Each row has its
    `row_step`, `row_base` and `row_warp`, its warp in the wave, which is the warp `warp_number` of
    the block `warp_block`. Output: the columns `block`, `warp`, `step`, `part`, `pc`, `space` and
    `base`.
    """

    runs: int
    run_site: I32
    run_count: I32
    site_pc: U32
    site_part: U8
    site_space: U8
    row_warp: I32
    row_step: U32
    row_base: I64
    warp_block: I64
    warp_number: U16
    block: I64
    warp: U16
    step: U32
    part: U8
    pc: U32
    space: U8
    base: I64


def fill_columns(c: Columns) -> None:
    """Fill the output columns."""
    row_warp = c.row_warp
    row_step = c.row_step
    row_base = c.row_base
    warp_block = c.warp_block
    warp_number = c.warp_number
    block = c.block
    warp = c.warp
    step = c.step
    parts = c.part
    pcs = c.pc
    spaces = c.space
    base = c.base
    first = 0
    for run in range(c.runs):
        last = first + c.run_count[run]
        pc = c.site_pc[c.run_site[run]]
        part = c.site_part[c.run_site[run]]
        space = c.site_space[c.run_site[run]]
        for row in range(first, last):
            block[row] = warp_block[row_warp[row]]
            warp[row] = warp_number[row_warp[row]]
            step[row] = row_step[row]
            parts[row] = part
            pcs[row] = pc
            spaces[row] = space
            base[row] = row_base[row]
        first = last


@cache
def _fill() -> Callable[[int], int]:
    find = compile_assembly(translate([fill_columns]), vectors=False)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(find("fill_columns"))


_COLUMNS = {
    "block": "u8",
    "warp": "u2",
    "step": "u4",
    "part": "u1",
    "pc": "u4",
    "space": "u1",
    "base": "u8",
}


def columns_of(rows: int, **columns: Any) -> dict[str, NDArray[Any]]:
    """Return all columns but the patterns of `rows` rows.

    `columns` are arrays of Columns, unsigned ones of 64 bits as they are in a trace.
    """
    c = Columns()
    filled = {name: np.empty(rows, dtype=kind) for name, kind in _COLUMNS.items()}
    c.runs = len(columns["run_site"])
    for name, array in (columns | filled).items():
        setattr(c, name, array)
    _fill()(c.address)
    return filled
