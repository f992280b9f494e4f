"""Access rows of one wave: buffered as a row per warp, in runs of one access each, and written in
batches.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import translate
from ....jit.machine_code import compile_assembly
from ....jit.structure import I32, I64, U8, U16, U32, Struct
from ....traces.schema import Space
from ..kernel.launch import Sink
from ..ops.lanes import Array, Mask
from .buffers import Buffers
from .pattern import PatternTable


class Warps(Protocol):
    """Warps (indices in the wave, ascending) with their lanes in arrays (rows, columns).

    `place` (rows * warps per row) is each warp's index in the wave, `step` its running instruction
    number; `row_block` (rows,) is the thread block of each row.
    """

    warps: NDArray[np.intp]
    rows: int
    columns: int
    compacted: bool
    row_block: NDArray[np.intp]
    step: NDArray[np.uint32]

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


class RowBuffer(Struct):
    """Access rows that wait to be written: `rows` rows, in `runs` runs of one access each.

    A row has the warp of the wave, its running instruction number, the lowest address, and the
    number of its pattern. A run has the number of its access, and its rows.
    """

    rows: int
    runs: int
    row_warp: I32
    row_step: U32
    row_base: I64
    row_pattern: I32
    run_site: I32
    run_count: I32


_COLUMNS_OF_ROWS = {
    **{"row_warp": "i4", "row_step": "u4", "row_base": "i8", "row_pattern": "i4"},
    **{"run_site": "i4", "run_count": "i4"},
}

FEW_ROWS = 1 << 12
"""Rows for which room is reserved at first: to clear room for ROWS takes a while."""

Site: TypeAlias = tuple[int, int, int]
"""An access of an instruction: its pc, the state space, and which part of the instruction it is."""


class AccessRows:
    """Collects the accesses of a wave's warps, which are `warp` (W,) of the blocks `block` (W,)."""

    def __init__(
        self,
        sink: Sink,
        patterns: PatternTable,
        block: NDArray[np.uint64],
        warp: NDArray[np.uint16],
        buffer: RowBuffer,
        buffers: Buffers,
    ) -> None:
        self.sink, self.patterns, self.block, self.warp = sink, patterns, block, warp
        self.buffer, self.buffers = buffer, buffers
        self.sites: dict[Site, int] = {}
        self._site_pc: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._site_space: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._site_part: NDArray[np.uint8] = np.empty(0, np.uint8)
        for name, kind in _COLUMNS_OF_ROWS.items():
            setattr(buffer, name, buffers.take(name, FEW_ROWS, kind))

    def add(
        self, group: Warps, position: int, pc: int, space: Space, part: int,
        base: Array, pattern: Array, keep: Mask | None,
    ) -> None:  # fmt: skip
        """Add a row for each warp of the group's shape that `keep` (rows, warps per row)
        selects.
        """
        shape = (group.rows, group.warps_a_row)
        site = pc, int(space), part
        step = group.step + np.uint32(position)
        base = np.broadcast_to(base, shape).reshape(-1)
        pattern = np.broadcast_to(pattern, shape).reshape(-1)
        if keep is None:
            self._append(site, group.place, step, base, pattern)
        else:
            on = np.broadcast_to(keep, shape).reshape(-1)
            self._append(site, group.place[on], step[on], base[on], pattern[on])

    def _append(self, site: Site, warps: Array, step: Array, base: Array, pattern: Array) -> None:
        """Add a run of rows."""
        m = self.buffer
        rows = slice(m.rows, m.rows + len(warps))
        self.reserve(rows.stop, m.runs + 1)
        m.row_warp[rows] = warps
        m.row_step[rows] = step
        m.row_base[rows] = base
        m.row_pattern[rows] = pattern.view(np.int32)
        m.run_site[m.runs] = self._site(site)
        m.run_count[m.runs] = len(warps)
        m.rows, m.runs = rows.stop, m.runs + 1

    def reserve(self, rows: int, runs: int) -> None:
        """Make room for this many rows and runs."""
        m, buffers = self.buffer, self.buffers
        if rows > len(m.row_warp):
            for name in ("row_warp", "row_step", "row_base", "row_pattern"):
                setattr(m, name, buffers.widen(name, 2 * rows))
        if runs > len(m.run_site):
            for name in ("run_site", "run_count"):
                setattr(m, name, buffers.widen(name, 2 * runs))

    def _site(self, site: Site) -> int:
        """Return the number of an access."""
        if site not in self.sites:
            self.sites[site] = len(self._site_pc)
            pc, space, part = site
            self._site_pc = np.append(self._site_pc, np.uint32(pc))
            self._site_space = np.append(self._site_space, np.uint8(space))
            self._site_part = np.append(self._site_part, np.uint8(part))
        return self.sites[site]

    def write_full(self) -> None:
        """Write the batches that are full."""
        if self.buffer.rows >= ROWS:
            self.write(final=False)

    def write(self, final: bool) -> None:
        """Write batches, each up to the access that reaches ROWS; with `final` write all rows."""
        m = self.buffer
        counts: NDArray[np.int64] = m.run_count[: m.runs].astype(np.int64)
        ends = np.cumsum(counts)
        first = first_run = 0
        while first < m.rows:
            run = int(np.searchsorted(ends, first + ROWS))
            if run == m.runs and not final:
                break
            run = min(run + 1, m.runs)
            last = int(ends[run - 1])
            self._write_batch(slice(first, last), slice(first_run, run))
            first, first_run = last, run
        self._move_down(first, first_run)

    def _write_batch(self, rows: slice, runs: slice) -> None:
        m, patterns = self.buffer, self.patterns
        epoch = patterns.epoch
        pattern = patterns.write(m.row_pattern[rows].view(np.uint32), self.sink)
        columns = columns_of(
            rows.stop - rows.start,
            run_site=m.run_site[runs],
            run_count=m.run_count[runs],
            site_pc=self._site_pc,
            site_part=self._site_part,
            site_space=self._site_space,
            row_warp=m.row_warp[rows],
            row_step=m.row_step[rows],
            row_base=m.row_base[rows],
            warp_block=self.block,
            warp_number=self.warp,
        )
        self.sink.put("accesses", **columns, pattern=pattern)
        if epoch != patterns.epoch and rows.stop < m.rows:
            later = m.row_pattern[rows.stop : m.rows]
            later[:] = patterns.store.find(*patterns.store.take(later.astype(np.int64)))

    def _move_down(self, first: int, first_run: int) -> None:
        """Move the remaining rows to the start of the buffers."""
        m = self.buffer
        if first == m.rows:
            m.rows = m.runs = 0
            return
        for column in (m.row_warp, m.row_step, m.row_base, m.row_pattern):
            column[: m.rows - first] = column[first : m.rows].copy()
        for column in (m.run_site, m.run_count):
            column[: m.runs - first_run] = column[first_run : m.runs].copy()
        m.rows, m.runs = m.rows - first, m.runs - first_run


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
