"""The access rows of a machine: those that machine code makes, those of escapes among them."""

import numpy as np
from numpy.typing import NDArray

from ....traces.schema import Space
from ..lanes import Array, Mask
from ..launch import Sink
from ..rows.access_rows import ROWS, AccessRows
from ..rows.pattern import PatternTable
from ..rows.row_table import columns_of
from ..rows.warps import Warps
from .compiled_kernel import Buffers, CompiledKernel, routines
from .machine.machine import Machine

_BUFFERS = {
    **{"row_warp": "i4", "row_step": "u4", "row_base": "i8", "row_pattern": "i4"},
    **{"run_site": "i4", "run_count": "i4"},
}

FEW_ROWS = 1 << 12
"""Rows for whose patterns there is room at first: room for ROWS takes a while to empty."""


class MachineRows(AccessRows):
    """As AccessRows, with each item a run of the machine's rows; `before` says how many accesses of
    the basic block in hand come before the instruction that the array engine runs."""

    def __init__(
        self,
        sink: Sink,
        patterns: PatternTable,
        owners: AccessRows,
        machine: Machine,
        code: CompiledKernel,
        buffers: Buffers,
    ) -> None:
        super().__init__(sink, patterns, owners.block, owners.warp)
        self.before = 0
        self._machine = machine
        self._code = code
        self._buffers = buffers
        self._sites: dict[tuple[int, int, int], int] = {}
        self._site_pc, self._site_space = code.site_pc, code.site_space
        self._site_part = code.site_part
        machine.row_limit = FEW_ROWS
        for name, kind in _BUFFERS.items():
            setattr(machine, name, buffers.take(name, code.capacity(machine.warps), kind))

    def add(
        self, group: Warps, position: int, pc: int, space: Space, part: int,
        base: Array, pattern: Array, keep: Mask | None,
    ) -> None:  # fmt: skip
        """Add a row for every warp of the group's shape that `keep` (rows, warps a row) leaves."""
        shape = (group.rows, group.warps_a_row)
        chosen = np.flatnonzero(np.broadcast_to(True if keep is None else keep, shape))
        if not chosen.size:
            return
        self._finish_before()
        m = self._machine
        rows = slice(m.rows, m.rows + len(chosen))
        self._reserve(rows.stop + int(m.site_count[m.number]) * m.warps)
        m.row_warp[rows] = group.place[chosen]
        m.row_step[rows] = group.step[chosen] + np.uint32(position)
        m.row_base[rows] = np.broadcast_to(base, shape).reshape(-1)[chosen]
        m.row_pattern[rows] = np.broadcast_to(pattern, shape).reshape(-1)[chosen].view(np.int32)
        m.run_site[m.runs] = self._site((pc, int(space), part))
        m.run_count[m.runs] = len(chosen)
        m.rows, m.runs = rows.stop, m.runs + 1

    def flush(self) -> None:
        """Nothing waits but what `write` writes."""

    def skip(self, pc: int) -> None:
        """Leave out the rows of the access at `pc` if it is one with generic addresses: the array
        engine has made it."""
        m = self._machine
        site = int(m.first_site[m.number]) + self.before
        if self.before < m.site_count[m.number] and self._code.sites[site][:2] == (pc, ""):
            self._finish_before()
            m.finished = self.before + 1

    def _finish_before(self) -> None:
        self._machine.upto = self.before
        routines().finish_some(self._machine.address)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._machine.row_warp):
            for name in _BUFFERS:
                setattr(self._machine, name, self._buffers.widen(name, 2 * rows))

    def _site(self, site: tuple[int, int, int]) -> int:
        """Return the number of an access (pc, state space, part) of the array engine's."""
        if site not in self._sites:
            self._sites[site] = len(self._site_pc)
            pc, space, part = site
            self._site_pc = np.append(self._site_pc, np.uint32(pc))
            self._site_space = np.append(self._site_space, np.uint8(space))
            self._site_part = np.append(self._site_part, np.uint8(part))
        return self._sites[site]

    def write(self, final: bool) -> None:
        """Write batches that end with the access by which ROWS were reached; `final`, all."""
        m = self._machine
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
        m, patterns = self._machine, self.patterns
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
        """Begin the buffers with what still waits."""
        m = self._machine
        if first == m.rows:
            m.rows = m.runs = 0
            return
        for column in (m.row_warp, m.row_step, m.row_base, m.row_pattern):
            column[: m.rows - first] = column[first : m.rows].copy()
        for column in (m.run_site, m.run_count):
            column[: m.runs - first_run] = column[first_run : m.runs].copy()
        m.rows, m.runs = m.rows - first, m.runs - first_run
