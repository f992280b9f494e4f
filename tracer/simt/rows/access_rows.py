"""Access rows of one wave: buffered as a row per warp, in runs of one access each, and written in
batches.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import compile_routines
from ....jit.structure import I32, I64, U8, U16, U32, Layout, Struct
from ....traces.schema import MOST_PARTS, Space
from ..kernel.launch import Sink
from .buffers import Buffers
from .pattern import PatternTable, Questions, Table

ROWS = 1 << 16
"""Maximum buffered rows, two megabytes: a record batch of the trace. Fewer are copied to one, and
threads that write them wait for one another more often; with more, patterns take more memory."""


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
ROW_ARRAYS = tuple(_OF_BOTH)
"""The arrays of the rows, which grow."""

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
        self._columns.warps, self._columns.warp_number = len(warp), warp
        self.set_blocks(block)
        self.buffer, self.buffers = buffer, buffers
        self.taken = 0
        """The rows that are written."""
        self._epoch = patterns.epoch
        buffer.table = patterns.store.table
        buffers.bind(buffer, _OF_BOTH, FEW_ROWS)
        self._room = min(len(buffer.row_warp), len(buffer.run_pc))

    def begin_again(self, sink: Sink, block: NDArray[np.uint64]) -> None:
        """Collect the rows of other blocks, in the buffers that the machine has again."""
        self.sink, self._epoch = sink, self.patterns.epoch
        self.set_blocks(block)
        self._room = min(len(self.buffer.row_warp), len(self.buffer.run_pc))

    def set_blocks(self, block: NDArray[np.uint64]) -> None:
        """Set the blocks of the warps: (W,), or (waves, W) of several waves."""
        self._columns.warp_block = block.view(np.int64)

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

    @property
    def is_full(self) -> bool:
        """Whether a batch may be full."""
        return self.buffer.rows >= ROWS

    def write(self, final: bool, ended: Sequence[tuple[int, int]] = ()) -> None:
        """Write batches, each up to the access that reaches ROWS; with `final` write all rows.

        Waves that have `ended` are written, too: where the rows and the runs of each end.
        """
        m, patterns, c = self.buffer, self.patterns, self._columns
        cuts = self._cuts(ended, final)
        if not cuts:
            return
        (last, last_run), first = cuts[-1], 0
        c.wave_ends = np.array([*(rows for rows, _ in ended), 1 << 62], np.int64)
        columns = columns_of(m, c, last, last_run)
        for end, _ in cuts:
            epoch = patterns.epoch
            pattern = patterns.write(m.row_pattern[first:end].view(np.uint32), self.sink)
            ours = {name: column[first:end] for name, column in columns.items()}
            self.sink.put("accesses", **ours, pattern=pattern)
            if epoch != patterns.epoch and end < m.rows:  # later rows name forgotten patterns
                later = m.row_pattern[end : m.rows]
                later[:] = patterns.store.find(*patterns.store.take(later.astype(np.int64)))
            first = end
        self.taken += last
        self._move_down(last, last_run)

    def _cuts(self, ended: Sequence[tuple[int, int]], final: bool) -> list[tuple[int, int]]:
        """Return where batches end: the numbers of rows and of runs."""
        m, cuts, first, first_run = self.buffer, [], 0, 0
        for number, (rows, runs) in enumerate((*ended, (m.rows, m.runs))):
            is_whole = final or number < len(ended)
            while rows - first >= ROWS:
                ends = np.cumsum(m.run_count[first_run:runs], dtype=np.int64)
                run = int(np.searchsorted(ends, ROWS))
                if run == len(ends):
                    break
                first, first_run = first + int(ends[run]), first_run + run + 1
                cuts.append((first, first_run))
            if is_whole and rows > first:
                first, first_run = rows, runs
                cuts.append((first, first_run))
        return cuts

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
    """Columns of the rows of the first `runs` runs of a buffer.

    A warp of the wave is the warp `warp_number` of the block `warp_block`, which has `warps` for
    each wave; the rows of a wave end at `wave_ends`.
    """

    runs: int
    warps: int
    wave_ends: I64
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
    row_warp = m.row_warp
    row_step = m.row_step
    row_base = m.row_base
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
    wave = 0
    for run in range(c.runs):
        while first >= c.wave_ends[wave]:
            wave += 1
        of_wave = wave * c.warps
        last = first + m.run_count[run]
        pc = m.run_pc[run]
        part = m.run_part[run]
        space = m.run_space[run]
        for row in range(first, last):
            block[row] = warp_block[of_wave + row_warp[row]]
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


def columns_of(buffer: RowBuffer, c: Columns, rows: int, runs: int) -> dict[str, NDArray[Any]]:
    """Return all columns but the patterns of the first rows, in these runs; `c` has the warps."""
    c.runs = runs
    filled = _COLUMNS.give(c, rows)
    (fill,) = compile_routines(fill_columns)
    fill(buffer.address, c.address)
    return filled
