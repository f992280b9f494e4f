"""Access rows of one wave: buffered as a row per warp, in runs of one access each, and written in
batches.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import compile_routines
from ....jit.structure import I32, I64, U8, U16, U32, Layout, Struct
from ....traces.schema import MOST_PARTS, Space
from ..kernel.launch import Sink
from .buffers import Buffers
from .pattern import PatternTable, Questions, Table

ROWS = 1 << 15
"""Maximum buffered rows: a megabyte, written as one record batch."""


class RowBuffer(Struct):
    """Access rows that wait to be written: `rows` rows, in `runs` runs of one access each.

    A row has the warp of the wave, its running instruction number, the lowest address, and the
    number of its pattern. A run has the pc, state space and part of its access, and its rows.

    Patterns are numbered by `table`; `site_pattern` is the last pattern per access and warp, -1 for
    none. The `questions` for patterns of new rows are answered together.

    If the launch `reports`, lanes outside of all allocations but in mapped memory are counted per
    instruction (`outside_lanes`). Warps may run in any order: the other `outside` arrays are the
    first such lane of the lowest warp.
    """

    rows: int
    runs: int
    row_warp: I32
    row_step: U32
    row_base: I64
    row_pattern: I32
    run_pc: I32
    run_space: I32
    run_part: I32
    run_count: I32
    table: Table
    site_pattern: I32
    questions: Questions
    reports: int
    outside_lanes: I64
    outside_warp: I64
    outside_lane: I64
    outside_address: I64


_OF_ROWS = {"row_warp": "i4", "row_step": "u4", "row_base": "i8", "row_pattern": "i4"}
_OF_RUNS = dict.fromkeys(("run_pc", "run_space", "run_part", "run_count"), "i4")
_OF_BOTH = _OF_ROWS | _OF_RUNS

FEW_ROWS = 1 << 12
"""Rows for which room is reserved at first: to clear room for ROWS takes a while."""


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
        self.sink, self.patterns = sink, patterns
        self._columns = Columns()
        self._columns.warp_block, self._columns.warp_number = block.view(np.int64), warp
        self.buffer, self.buffers = buffer, buffers
        self._epoch = patterns.epoch
        buffer.table = patterns.store.table
        buffers.bind(buffer, _OF_BOTH, FEW_ROWS)
        self._room = min(len(buffer.row_warp), len(buffer.run_pc))

    def begin_again(self, sink: Sink, block: NDArray[np.uint64]) -> None:
        """Collect the rows of other blocks, in the buffers that the machine has again."""
        self.sink, self._epoch = sink, self.patterns.epoch
        self._columns.warp_block = block.view(np.int64)
        self._room = min(len(self.buffer.row_warp), len(self.buffer.run_pc))

    def report_outside(self, instructions: int) -> None:
        """Count lanes outside of all allocations."""
        m = self.buffer
        m.reports = 1
        for name in ("outside_lanes", "outside_warp", "outside_lane", "outside_address"):
            setattr(m, name, np.zeros(instructions, np.int64))

    def begin_blocks(self, rows: int) -> None:
        """Reserve patterns for the rows of the next basic blocks."""
        self.patterns.store.reserve(rows)
        if self._epoch != self.patterns.epoch:
            self._epoch = self.patterns.epoch
            self.buffer.site_pattern[:] = -1

    def reserve_more(self, more: int) -> None:
        """Make room for `more` rows, their patterns, and the runs of one access."""
        self.patterns.store.reserve(more)
        m = self.buffer
        self.reserve(m.rows + more, m.runs + len(Space))

    def add_pieces(
        self, warp: int, step: int, pc: int, first: int, base: NDArray[np.int64],
        active: NDArray[np.uint32], offsets: NDArray[np.int32],
    ) -> None:  # fmt: skip
        """Add rows of global memory for one warp (its index in the wave), parts from `first` on:
        lowest addresses (n,), masks (n,), offsets (n, 32).
        """
        m, many = self.buffer, len(base)
        pattern = self.patterns.store.find(active, offsets)
        self.reserve(m.rows + many, m.runs + many)
        rows, runs = slice(m.rows, m.rows + many), slice(m.runs, m.runs + many)
        m.row_warp[rows], m.row_step[rows] = warp, step
        m.row_base[rows], m.row_pattern[rows] = base, pattern
        m.run_pc[runs], m.run_space[runs], m.run_count[runs] = pc, int(Space.GLOBAL), 1
        m.run_part[runs] = np.minimum(first + np.arange(many), MOST_PARTS)
        m.rows, m.runs = rows.stop, runs.stop

    def reserve(self, rows: int, runs: int) -> None:
        """Make room for this many rows and runs."""
        if max(rows, runs) <= self._room:
            return
        m = self.buffer
        for names, size in ((_OF_ROWS, rows), (_OF_RUNS, runs)):
            for name in names:
                if size > len(getattr(m, name)):
                    setattr(m, name, self.buffers.widen(name, 2 * size))
        self._room = min(len(m.row_warp), len(m.run_pc))

    def write_full(self) -> None:
        """Write the batches that are full."""
        if self.buffer.rows >= ROWS:
            self.write(final=False)

    def write(self, final: bool) -> None:
        """Write batches, each up to the access that reaches ROWS; with `final` write all rows."""
        m, patterns = self.buffer, self.patterns
        rows, all_runs, row_pattern = m.rows, m.runs, m.row_pattern
        ends = None if rows < ROWS else np.cumsum(m.run_count[:all_runs], dtype=np.int64)
        first = first_run = 0
        while first < rows:
            run, last = all_runs, rows
            if ends is not None:
                run = int(np.searchsorted(ends, first + ROWS))
                if run == all_runs and not final:
                    break
                run = min(run + 1, all_runs)
                last = int(ends[run - 1])
            elif not final:
                break
            epoch = patterns.epoch
            pattern = patterns.write(row_pattern[first:last].view(np.uint32), self.sink)
            columns = columns_of(m, self._columns, slice(first, last), slice(first_run, run))
            self.sink.put("accesses", **columns, pattern=pattern)
            if epoch != patterns.epoch and last < rows:  # later rows name forgotten patterns
                later = row_pattern[last:rows]
                later[:] = patterns.store.find(*patterns.store.take(later.astype(np.int64)))
            first, first_run = last, run
        self._move_down(first, first_run)

    def _move_down(self, first: int, first_run: int) -> None:
        """Move the remaining rows to the start of the buffers."""
        m = self.buffer
        if first == m.rows:
            m.rows = m.runs = 0
            return
        for names, begin, end in ((_OF_ROWS, first, m.rows), (_OF_RUNS, first_run, m.runs)):
            for column in (getattr(m, name) for name in names):
                column[: end - begin] = column[begin:end].copy()
        m.rows, m.runs = m.rows - first, m.runs - first_run


class Columns(Struct):
    """Columns of the rows from `first_row` on, in `runs` runs from `first_run` on, of a buffer.

    A warp of the wave is the warp `warp_number` of the block `warp_block`.
    """

    first_row: int
    first_run: int
    runs: int
    warp_block: I64
    warp_number: U16
    block: I64
    warp: U16
    step: U32
    part: U8
    pc: U32
    space: U8
    base: I64


def fill_columns(m: RowBuffer, c: Columns) -> None:
    """Fill the columns."""
    row_warp = m.row_warp[c.first_row :]
    row_step = m.row_step[c.first_row :]
    row_base = m.row_base[c.first_row :]
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
    for run in range(c.first_run, c.first_run + c.runs):
        last = first + m.run_count[run]
        pc = m.run_pc[run]
        part = m.run_part[run]
        space = m.run_space[run]
        for row in range(first, last):
            block[row] = warp_block[row_warp[row]]
            warp[row] = warp_number[row_warp[row]]
            step[row] = row_step[row]
            parts[row] = part
            pcs[row] = pc
            spaces[row] = space
            base[row] = row_base[row]
        first = last


_COLUMNS = Layout(
    Columns,
    {
        **{"block": "u8", "base": "u8", "step": "u4", "pc": "u4"},
        **{"warp": "u2", "part": "u1", "space": "u1"},
    },
)


def columns_of(buffer: RowBuffer, c: Columns, rows: slice, runs: slice) -> dict[str, NDArray[Any]]:
    """Return all columns but the patterns of some rows, in these runs; `c` has the warps."""
    c.first_row, c.first_run, c.runs = rows.start, runs.start, runs.stop - runs.start
    filled = _COLUMNS.give(c, rows.stop - rows.start)
    (fill,) = compile_routines(fill_columns)
    fill(buffer.address, c.address)
    return filled
