"""Consecutive waves of a thread as one call of machine code, which holds no interpreter lock.

Once all warps of a wave have exited, compiled code shares its paths and begins the next wave
in the same arrays. The rows stay in the buffers; `row_ends` tells the waves apart. Whatever
else a wave needs is done by Python, as for a wave of its own (wave.py):

    Python      | begin |                                    | write rows |        | end |
    machine code        | wave 1 | 2 | 3 | 4 (buffers full)               | 4 | 5 |
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...jit.loop_codegen import compile_routines
from ...jit.machine_code import address
from ...jit.structure import I32, I64, Struct
from ...jit.value import assembly
from .rows.access_rows import ROW_ARRAYS
from .rows.history import Histories, HistoryRows, PathTable, share_histories
from .warp.instruction_set import Restart
from .warp.machine import Machine
from .warp.schedule import EXITED, IDLE
from .warp.scheduler import place_warps, run_warps
from .warp.simt_stack import BELOW

MORE = -2
"""Why a chain returns to Python besides a scheduler's reasons: to write paths, or to stop."""

MANY_LOGS = 4
"""Logs as long as the present wave's for whose paths there is room."""

Span: TypeAlias = tuple[int, ...]
"""Addresses, and bytes."""

KEPT = (*ROW_ARRAYS, *BELOW)
"""The arrays that are replaced by larger ones while a wave runs, for the waves after it, too."""


class Chain(Struct):
    """`waves` waves of as many blocks each, of which number `number` runs.

    A wave begins with the `count` words `fresh` of its machine; each of `copies` spans of bytes is
    copied from its initial values, each of `clears` filled with zeros, and so is each of `zeros`
    spans of every warp's frame, from byte `frames` on. The special registers of a wave's blocks are
    the next `block_bytes` bytes from `block_tables` on.

    Ended waves: `row_ends` and `run_ends` in the buffers, `path_ends` in the `path_lengths` of the
    `paths` since they were last written; `warp_paths` has the path of each warp among those of its
    wave, -1 for none. `room` is that of the columns of paths. Unless it `is_plain`, Python has
    written a part of the present wave's paths, and ends it. All waves end once `stop` is 1. Once
    they have `logged` about `most_logged` blocks, Python looks for Ctrl-C.
    """

    machine: Machine
    words: int
    fresh: int
    count: int
    copies: int
    copy_spans: I64
    clears: int
    clear_spans: I64
    zeros: int
    zero_spans: I64
    frames: int
    block_tables: int
    block_bytes: int

    waves: int
    number: int
    is_ended: int
    is_plain: int
    logged: int
    most_logged: int
    stop: I64

    histories: Histories
    room: int
    paths: int
    row_ends: I64
    run_ends: I64
    path_ends: I64
    path_lengths: I32
    warp_paths: I32


@assembly("""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal i64 @copy_span(i64 %to, i64 %from, i64 %size) {
  %p = inttoptr i64 %to to ptr
  %q = inttoptr i64 %from to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %size, i1 false)
  ret i64 0
}
""")
def copy_span(to: int, source: int, size: int) -> int:
    """Copy bytes from one address to another."""
    raise NotImplementedError


@assembly("""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal i64 @clear_span(i64 %to, i64 %size) {
  %p = inttoptr i64 %to to ptr
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %size, i1 false)
  ret i64 0
}
""")
def clear_span(to: int, size: int) -> int:
    """Fill bytes at an address with zeros."""
    raise NotImplementedError


def run_chain(c: Chain) -> int:
    """Run until Python is needed, and return why; IDLE also at the end of the last wave."""
    m = c.machine
    while c.waves:
        if c.is_ended == 0:
            reason = run_warps(m)
            if reason != IDLE or c.is_plain == 0 or c.number + 1 == c.waves:
                return reason
            if not have_exited(m):
                return IDLE
            c.is_ended = 1
            c.logged += m.logged
        if c.stop[0] or c.logged + m.logged > c.most_logged:
            return MORE
        if 2 * m.entries > c.room or c.histories.total + m.entries > c.room:
            return MORE
        end_wave(c)
        begin_next(c)
    return IDLE


def have_exited(m: Machine) -> int:
    """Return whether all warps have exited."""
    for warp in range(m.warps):
        if m.state[warp] != EXITED:
            return 0
    return 1


def end_wave(c: Chain) -> None:
    """Share the paths of the wave that has ended."""
    m = c.machine
    h = c.histories
    h.entries = m.entries
    distinct = share_histories(h)
    for warp in range(m.warps):
        c.warp_paths[c.number * m.warps + warp] = h.path[warp]
    for path in range(distinct):
        c.path_lengths[c.paths + path] = h.length[h.selection[path]]
    c.paths += distinct


def begin_next(c: Chain) -> None:
    """Begin the next wave."""
    m = c.machine
    rows = m.rows
    runs = m.runs
    row_limit = m.row_limit
    c.row_ends[c.number] = rows
    c.run_ends[c.number] = runs
    c.path_ends[c.number] = c.paths
    c.number += 1
    c.is_ended = 0
    copy_span(c.words, c.fresh, 8 * c.count)
    m.rows = rows
    m.runs = runs
    m.row_limit = row_limit
    for span in range(c.copies):
        copy_span(c.copy_spans[3 * span], c.copy_spans[3 * span + 1], c.copy_spans[3 * span + 2])
    for span in range(c.clears):
        clear_span(c.clear_spans[2 * span], c.clear_spans[2 * span + 1])
    for span in range(c.zeros):
        for warp in range(m.warps):
            at = c.frames + warp * m.frame_bytes + c.zero_spans[2 * span]
            clear_span(at, c.zero_spans[2 * span + 1])
    m.block_table = c.block_tables + c.number * c.block_bytes  # type: ignore[assignment]
    place_warps(m)


class WaveChain:
    """A chain of waves of the blocks `numbers` (waves, blocks), in the arrays of a machine.

    `block_of_warp` (warps,) is the place of each warp's block in its wave. `copies` are spans of
    bytes with initial values, (n, 3): to, from, size; `clears` spans of zeros besides those of
    `restart`, (n, 2). The chain ends once `stop` (1,) is 1.
    """

    def __init__(
        self, numbers: NDArray[np.int64], block_of_warp: NDArray[np.intp], m: Machine,
        copies: Sequence[Span], clears: Sequence[Span], restart: Restart, stop: NDArray[np.int64],
        most_logged: int,
    ) -> None:  # fmt: skip
        c = self._chain = Chain()
        self.numbers, self._tables, self._machine = numbers, restart.tables, m
        self.block = numbers.astype(np.uint64).take(block_of_warp, axis=1)
        self._begun, self._rows_written, self._paths_written = 0, 0, 0
        waves, warps = self.block.shape
        c.machine, c.words, c.waves, c.is_plain, c.stop = m, m.address, waves, 1, stop
        c.count, c.most_logged = len(m.fields), most_logged
        spans = copies, [*clears, *restart.clears], restart.zeros
        c.copies, c.clears, c.zeros = map(len, spans)
        c.copy_spans, c.clear_spans, c.zero_spans = (
            np.array([*each, (0, 0, 0)[: len(each[0])]] if each else [0], np.int64).reshape(-1)
            for each in spans
        )
        c.frames = address(m.frames)
        c.block_tables, c.block_bytes = address(self._tables), self._tables.nbytes // waves
        self._ends: NDArray[np.int64] = np.zeros((3, waves), np.int64)
        c.row_ends, c.run_ends, c.path_ends = self._ends
        c.path_lengths, c.warp_paths = np.empty((2, waves * warps), np.int32)

    def enter(self, fresh: Machine, paths: PathTable) -> None:
        """Begin, with the machine of a wave that has not run, and where paths are found."""
        self._fresh, self._paths = fresh, paths
        c = self._chain
        c.fresh, c.histories = fresh.address, paths.histories
        fresh.escape = self._machine.escape

    def run(self) -> int:
        """Run until Python is needed; return why."""
        self.keep_arrays()
        self._fresh.levels = self._machine.levels
        self._chain.room = self._paths.room
        (run,) = compile_routines(run_chain)
        return run(self._chain.address)

    def keep_arrays(self) -> None:
        """Let the waves after this one have its arrays, which may be larger than at first."""
        self._fresh.share(self._machine, KEPT)

    @property
    def has_moved(self) -> bool:
        """Whether another wave runs than at the last call."""
        before, self._begun = self._begun, self._chain.number
        return before != self._begun

    @property
    def present(self) -> int:
        """The number of the wave that runs."""
        return self._chain.number

    def take_row_ends(self) -> tuple[NDArray[np.uint64], list[tuple[int, int]]]:
        """Return the blocks of the warps of the waves with rows, (waves, warps), and where the rows
        and the runs of each but the present one end: they are written now."""
        c, first = self._chain, self._rows_written
        self._rows_written = last = c.number
        ends = c.row_ends[first:last].tolist(), c.run_ends[first:last].tolist()
        return self.block[first : last + 1], list(zip(*ends, strict=True))

    def write_paths(self, history: HistoryRows) -> None:
        """Write the paths of the waves that have ended."""
        c, first = self._chain, self._paths_written
        self._paths_written = last = c.number
        h, begin, entry = c.histories, 0, 0
        for wave in range(first, last):
            end = int(c.path_ends[wave])
            lengths = c.path_lengths[begin:end].astype(np.uint32)
            to = entry + int(lengths.sum())
            places = c.warp_paths[wave * h.warps : (wave + 1) * h.warps].astype(np.int64)
            if to > entry:
                columns = [each[entry:to].copy() for each in self._paths.columns]
                history.put(self.block[wave], places, lengths, columns)
            begin, entry = end, to
        h.total = c.paths = c.logged = 0
        self._paths.reserve(MANY_LOGS * c.machine.entries)

    def end_by_python(self) -> None:
        """Have Python end the present wave: a part of its paths is written."""
        self._chain.is_plain = 0

    @property
    def may_go_on(self) -> bool:
        """Whether the present wave has ended, and another follows."""
        return self.present + 1 < len(self.numbers) and have_exited(self._machine) == 1

    def go_on(self) -> None:
        """Begin the next wave after one whose paths Python has written."""
        c = self._chain
        (begin,) = compile_routines(begin_next)
        begin(c.address)
        c.is_plain, self._paths_written = 1, c.number
