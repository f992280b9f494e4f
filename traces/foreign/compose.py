"""Composing: one launch of another tool, as the launch and the tables of a trace."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ..check_launch import first_finding
from ..launch_writer import LaunchWriter
from ..schema import LANES, Kept, Launch, Manifest, Range, Resources
from ..table.unique import sorted_unique
from .gathered import Gathered, instruction_table
from .histories import Executed, number_blocks, write_histories
from .lanes import Accesses, lanes_of
from .regions import Placed, place
from .sass import Facts, facts_of
from .seam import Code, Ints


@dataclass(frozen=True, eq=False)
class Composed:
    """A launch that is known as a whole; `source` is the key of the source text, or empty."""

    gathered: Gathered
    source: str
    lines_of: str
    placed: Placed
    codes: list[Code]
    pc: Ints
    block: Ints
    warp: Ints
    mask: Ints

    @property
    def accesses(self) -> Accesses:
        """Its rows of memory."""
        return self.placed.accesses

    @cached_property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // LANES)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.gathered.head.block
        return x * y * z

    @cached_property
    def facts(self) -> list[Facts]:
        """The facts of each instruction."""
        return [facts_of(code.mnemonic) for code in self.codes]

    @cached_property
    def order(self) -> Ints:
        """The rows sorted by warp; those of a warp as they were executed."""
        return np.argsort(self.block * self.warps + self.warp, kind="stable")

    @cached_property
    def executed(self) -> Executed:
        """The rows sorted by warp."""
        whose = (self.block * self.warps + self.warp)[self.order]
        branch = np.array([f.operation == "branch" for f in self.facts], bool)
        ends = [f.kind == "control" or f.barrier is not None for f in self.facts]
        opens = np.diff(whose, prepend=-1) != 0
        return Executed(
            self.pc[self.order], self.mask[self.order], whose, opens, branch, np.array(ends, bool)
        )

    @cached_property
    def active(self) -> Ints:
        """The lanes that were active at each row of `executed`, of those that the warp has."""
        filled = np.clip(self.threads - self.executed.warp % self.warps * LANES, 0, LANES)
        return self.executed.active & ((np.int64(1) << filled) - 1)

    @cached_property
    def predicated(self) -> Ints:
        """Whether an instruction was ever off in active lanes, (pcs,)."""
        off = (self.active & ~self.executed.mask) != 0
        return np.bincount(self.executed.pc, off, len(self.codes)).astype(np.int64)

    @cached_property
    def _blocks_ran(self) -> Ints:
        return sorted_unique(self.block)

    @cached_property
    def has_control(self) -> bool:
        """Whether all instructions of all warps of the blocks that ran are there."""
        ran = len(sorted_unique(self.executed.warp))
        return self.gathered.head.is_whole and 0 < ran == len(self._blocks_ran) * self.warps

    @cached_property
    def basic_blocks(self) -> Ints:
        """The basic block of each instruction."""
        if self.has_control:
            return number_blocks(self.executed, self.active, len(self.codes))
        return np.arange(len(self.codes))

    @cached_property
    def launch(self) -> Launch:
        """The launch, as the manifest has it."""
        head, placed = self.gathered.head, self.placed
        static = max(head.shared_bytes, placed.shared_bytes) - head.shared_dynamic
        resources = Resources(head.arch or "sm_50", head.registers, static, placed.local_bytes, 0)
        return Launch(
            kernel=head.kernel,
            signature=head.signature or head.kernel,
            grid=head.grid,
            block=head.block,
            shared_static=static,
            shared_dynamic=head.shared_dynamic,
            local_bytes=placed.local_bytes,
            arrays=placed.arrays,
            resources=(resources,) if head.registers else (),
            source=self.source,
            kept=self._kept(),
        )

    def _kept(self) -> Kept:
        """The recorded part of the launch."""
        if not self.has_control:
            return Kept(control=False)
        grid = int(np.prod(np.array(self.gathered.head.grid, object)))
        ran = self._blocks_ran
        if len(ran) == grid:
            return Kept()
        apart = np.flatnonzero(np.diff(ran) > 1)
        first, last = ran[np.append(0, apart + 1)], ran[np.append(apart, len(ran) - 1)]
        return Kept(blocks=tuple(zip(first.tolist(), last.tolist(), strict=True)))

    @property
    def lacks(self) -> list[str]:
        """The missing information, a phrase each."""
        found = [*self.gathered.head.lacks]
        found += [f"the addresses of {opcode}" for opcode in self.gathered.untraced()]
        if not any(code.line for code in self.codes):
            found.append("source lines")
        if self.gathered.head.is_whole and not self.has_control:
            found.append("what the warps ran, since of some there is no instruction")
        if self._kept().blocks:
            found.append("blocks that were not traced")
        return found

    def write(self, rows: LaunchWriter) -> None:
        """Write all tables."""
        head, accesses, at = self.gathered.head, self.accesses, self.accesses.row
        of, name = self.basic_blocks, self.source or self.lines_of
        rows.instructions(instruction_table(self.codes, of, self.predicated, head, name))
        first = rows.patterns(accesses.active, accesses.offsets)
        columns = (self.block[at], self.warp[at], self._steps[at], accesses.part, self.pc[at])
        pattern = accesses.pattern + first
        rows.accesses(*columns, accesses.space, accesses.base, pattern)
        if self.has_control:
            write_histories(rows, self.executed, self.active, of, self.warps)
            self._write_lanes_on(rows)

    @property
    def _steps(self) -> Ints:
        """The number of each row in its warp."""
        places = np.arange(len(self.order))
        starts = np.maximum.accumulate(np.where(self.executed.opens, places, 0))
        steps: Ints = np.empty(len(places), np.int64)
        steps[self.order] = places - starts
        return steps

    def _write_lanes_on(self, rows: LaunchWriter) -> None:
        counted = [not f.access and f.operation != "branch" for f in self.facts]
        which = np.array(counted, bool) & (self.predicated > 0)
        some = which[self.executed.pc]
        pc, mask = self.executed.pc[some], self.executed.mask[some]
        key = self.executed.warp[some] // self.warps * len(self.codes) + pc
        distinct, number = np.unique(key, return_inverse=True)
        lanes = np.bincount(number, lanes_of(mask).sum(axis=1), len(distinct)).astype(np.int64)
        rows.lanes_on(distinct // len(self.codes), distinct % len(self.codes), lanes)


def compose(gathered: Gathered, arrays: Sequence[Range], source: str, lines_of: str) -> Composed:
    """Return a launch as a whole; `arrays` are the first and last addresses of what is known of
    global memory, `lines_of` is what lines are of where there is no `source`."""
    which, block, warp, mask = gathered.columns()
    codes = sorted(gathered.codes, key=lambda code: (code.pc, code.mnemonic, code.text, code.line))
    at = {code: pc for pc, code in enumerate(codes)}
    pc = np.array([at[code] for code in gathered.codes], np.int64)[which]
    width = np.array([facts_of(code.mnemonic).bytes for code in codes], np.int64)
    accesses = gathered.accesses()
    placed = place(accesses, width[pc[accesses.row]], gathered.head, arrays)
    head = gathered.head
    if 0 in (*head.grid, *head.block):
        raise CutraceError(
            f"launch of {head.kernel}: grid {head.grid}, block {head.block}: a launch of nothing"
        )
    x, y, z = head.block
    warp = _of_block(block, warp, -(-x * y * z // LANES), gathered.head.kernel)
    has_lines = any(code.line for code in codes)
    known = source if has_lines else ""
    done = Composed(gathered, known, lines_of, placed, codes, pc, block, warp, mask)
    if problem := first_finding(Manifest(launches=(replace(done.launch, source=""),))):
        raise CutraceError(f"{problem}; is the trace whole?")
    _check_lanes(done)
    return done


def _check_lanes(done: Composed) -> None:
    """Refuse lanes that no thread of the block fills."""
    filled = np.clip(done.threads - done.executed.warp % done.warps * LANES, 0, LANES)
    beyond = np.flatnonzero(done.executed.mask >> filled)
    if len(beyond):
        warp, lanes = (int(v[beyond[0]]) for v in (done.executed.warp, done.executed.mask))
        raise CutraceError(
            f"launch of {done.launch.kernel}: lanes {lanes:#x} in warp "
            f"{warp % done.warps} of block {warp // done.warps}, which has {done.threads} threads; "
            "is the block's size in the trace the kernel's?"
        )


def _of_block(block: Ints, warp: Ints, warps: int, kernel: str) -> Ints:
    """Number warps in their block; some tools tell the warp's place on its multiprocessor.

    Warps of a block have places side by side there, unless they do not: then they are numbered in
    order.
    """
    if not len(warp) or int(warp.max()) < warps:
        return warp
    distinct, number = np.unique(block << 32 | warp, return_inverse=True)
    first = np.flatnonzero(np.diff(distinct >> 32, prepend=-1))
    rank = np.arange(len(distinct)) - np.repeat(first, np.diff(np.append(first, len(distinct))))
    place = distinct & 0xFFFFFFFF
    lowest = place[np.repeat(first, np.diff(np.append(first, len(place))))]
    aligned = place // warps == lowest // warps
    within = np.where(aligned.all(), place % warps, rank)
    if int(within.max()) >= warps:
        raise CutraceError(
            f"launch of {kernel}: a block has {int(within.max()) + 1} warps, but threads for "
            f"{warps}; is the block's size in the trace the kernel's?"
        )
    return within[number]
