"""Compose a launch of another tool into the launch entry and tables of a trace.

`place` maps addresses to arrays and state spaces; `write_histories` reconstructs basic blocks,
paths and control; `Composed` holds one launch and writes its tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..check_launch import first_finding
from ..launch_writer import LaunchWriter
from ..schema import LANES, Array, Kept, Launch, Manifest, Range, Resources, Space
from ..unique import sorted_unique
from .gathered_rows import Accesses, Gathered, instruction_table, lanes_of
from .reader_interface import Code, Head, Ints
from .sass import Facts, facts_of

PAGE = 1 << 9
"""Alignment of the driver's allocations."""
MOST_ARRAYS = 64
"""Maximum number of inferred arrays: beyond it, regions are merged across wider gaps."""
_CHUNK = 1 << 16
RESERVED = 1 << 10
"""Bytes of a block's shared memory that the system reserves (CUDA C++ Programming Guide, compute
capability 8.0 and later): the kernel's own follow them."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Accesses with addresses as in a trace, and the memory regions that contain them."""

    accesses: Accesses
    arrays: tuple[Array, ...]
    local_bytes: int
    shared_bytes: int


def place(accesses: Accesses, width: Ints, head: Head, arrays: Sequence[Range]) -> Placed:
    """Return accesses with shared and local addresses based at 0, and the extents of all spaces.

    `width` (n,) are the bytes of a lane; `arrays` are the known arrays of global memory.
    """
    low, high = _extents(accesses, width)
    base = accesses.base.astype(np.int64)
    shared, local = (accesses.space == space for space in (Space.SHARED, Space.LOCAL))
    reserved = _reserved(base[shared], int(high[shared].max(initial=0)), head)
    bottom = int(low[local].min(initial=0 if not local.any() else 1 << 62)) // 256 * 256
    moved = base - np.where(shared, reserved, 0) - np.where(local, bottom, 0)
    return Placed(
        replace(accesses, base=moved.view(np.uint64)),
        _arrays(accesses, low, high, width, arrays),
        int(high[local].max(initial=bottom)) - bottom,
        int(high[shared].max(initial=reserved)) - reserved,
    )


def _extents(accesses: Accesses, width: Ints) -> tuple[Ints, Ints]:
    """Return the first byte of each row's lanes, and the end (exclusive) of the last one."""
    base = accesses.base.astype(np.int64)
    least = accesses.offsets.min(axis=1).astype(np.int64)[accesses.pattern]
    most = accesses.offsets.max(axis=1).astype(np.int64)[accesses.pattern]
    return base + least, base + most + width


def _reserved(base: Ints, end: int, head: Head) -> int:
    """Return the bytes of shared memory reserved before the kernel's own, inferred from
    addresses."""
    beyond = head.shared_bytes and end > head.shared_bytes
    return RESERVED if beyond and int(base.min(initial=0)) >= RESERVED else 0


def _arrays(
    accesses: Accesses, low: Ints, high: Ints, width: Ints, ranges_known: Sequence[Range]
) -> tuple[Array, ...]:
    """Return the arrays of global memory: the known ones, and other accessed regions."""
    ranges = _merged(ranges_known)
    starts, ends = (np.array([r[i] for r in ranges], np.int64) for i in (0, 1))
    inside = np.zeros(len(low), bool)
    if len(ranges):
        at = np.searchsorted(starts, low, "right") - 1
        inside = (at >= 0) & (high <= ends[np.maximum(at, 0)])
    indices = np.flatnonzero((accesses.space == Space.GLOBAL) & ~inside)
    pieces = _pieces(_pages(accesses, indices, low, high, width))
    regions = [*ranges, *(part for piece in pieces for part in _without(piece, ranges))]
    return tuple(Array(f"{a:#x}", Space.GLOBAL, a, b - a) for a, b in sorted(regions))


def _pages(accesses: Accesses, rows: Ints, low: Ints, high: Ints, width: Ints) -> Ints:
    """Return the touched pages of some rows, ascending: by the ends of a row, or by lane if they
    are far apart.
    """
    near = rows[high[rows] - low[rows] <= PAGE]
    pages = [sorted_unique(low[near] // PAGE), sorted_unique((high[near] - 1) // PAGE)]
    far = rows[high[rows] - low[rows] > PAGE]
    for some in np.split(far, range(_CHUNK, len(far), _CHUNK)):
        pattern = accesses.pattern[some]
        on = lanes_of(accesses.active[pattern].astype(np.int64))
        lanes = accesses.base[some].astype(np.int64)[:, None] + accesses.offsets[pattern]
        pages.append(sorted_unique(lanes[on] // PAGE))
        pages.append(sorted_unique((lanes + width[some, None] - 1)[on] // PAGE))
    return sorted_unique(np.concatenate(pages))


def _pieces(pages: Ints) -> list[Range]:
    """Merge neighbouring pages into regions; the gap grows until there are few enough regions."""
    # Widen the gap eightfold per round: sparse accesses would otherwise give an array per page.
    gap, apart = 1, np.flatnonzero(np.diff(pages) > 1)
    while len(apart) >= MOST_ARRAYS:
        gap *= 8
        apart = np.flatnonzero(np.diff(pages) > gap)
    if not len(pages):
        return []
    first = pages[np.append(0, apart + 1)] * PAGE
    last = (pages[np.append(apart, len(pages) - 1)] + 1) * PAGE
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _merged(ranges: Sequence[Range]) -> list[Range]:
    """Merge overlapping ranges, ascending."""
    regions: list[Range] = []
    for start, end in sorted(ranges):
        if regions and start < regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        elif end > start:
            regions.append((start, end))
    return regions


def _without(piece: Range, ranges: Sequence[Range]) -> Iterator[Range]:
    """Yield the parts of a piece outside the ranges, which ascend."""
    start, end = piece
    for first, last in ranges:
        if last <= start or first >= end:
            continue
        if first > start:
            yield start, first
        start = max(start, last)
    if start < end:
        yield start, end


Flags = npt.NDArray[np.bool_]

ENTRIES = 1 << 20
"""Maximum entries of a path; a longer history is split."""

_ENTRY = np.dtype(
    [("block", "u4"), ("active", "u4"), ("not_taken", "u4"), ("targets", "u1"), ("repeat", "u4")]
)


@dataclass(frozen=True, slots=True, eq=False)
class Executed:
    """The n executed instructions, sorted by warp: `pc` counts from 0 without gaps; `opens` marks
    the first of each warp; `warp` is the warp's index in the grid. `branch` and `ends` (pcs,) mark
    the branches, and the ends of basic blocks.
    """

    pc: Ints
    mask: Ints
    warp: Ints
    opens: Flags
    branch: Flags
    ends: Flags

    @property
    def active(self) -> Ints:
        """Return the active lanes, as far as they can be inferred; 0 if unknown."""
        # A mask of 0 says nothing about active lanes: the predicate was off in all of them. Take
        # the mask of the previous instruction of the warp instead.
        masks = np.where(self.mask == 0, self._before(_filled(self.mask, self.opens)), self.mask)
        # The mask of a branch holds only the lanes whose predicate held. If the branch follows its
        # predecessor directly (pc + 1) and its lanes are a subset, no lanes have joined or left:
        # the active set is the mask of the predecessor.
        right_behind = ~self.opens & (self.pc == self._before(self.pc) + 1)
        before = self._before(masks)
        wider = right_behind & self.branch[self.pc] & (masks & ~before == 0)
        return np.where(wider, before, masks)

    @staticmethod
    def _before(values: Ints) -> Ints:
        return np.concatenate([values[:1], values[:-1]])


def _filled(mask: Ints, opens: Flags) -> Ints:
    """Return masks with each 0 replaced by the previous one; all lanes if a warp begins with 0."""
    is_exact = (mask != 0) | opens
    place = np.maximum.accumulate(np.where(is_exact, np.arange(len(mask)), 0))
    values = mask[place]
    return np.where(values == 0, 0xFFFFFFFF, values)


def number_blocks(executed: Executed, active: Ints, pcs: int) -> Ints:
    """Return the basic block of each pc, (pcs,), numbered in order."""
    pc = executed.pc
    # Two neighbouring pcs are in one block if each execution of the first was followed by the
    # second with the same active lanes, and the second was never entered from elsewhere.
    follows = (pc[1:] == pc[:-1] + 1) & ~executed.opens[1:] & (active[1:] == active[:-1])
    times = np.bincount(pc, minlength=pcs)
    together = np.bincount(pc[:-1][follows], minlength=pcs)
    glued = (together == times) & (together == np.append(times[1:], -1)) & ~executed.ends
    return np.concatenate([[0], np.cumsum(~glued[:-1])]).astype(np.int64)


def write_histories(
    rows: LaunchWriter, executed: Executed, active: Ints, of_pc: Ints, warps: int
) -> None:
    """Write paths and control; `of_pc` is the basic block of each pc, `warps` the warps per block.

    A history shared by several warps is written once.
    """
    # A basic block is entered at its first pc only: each row with such a pc starts an entry, and
    # the block's length leads to its last row.
    first_pc = np.searchsorted(of_pc, np.arange(of_pc.max(initial=-1) + 2))
    starts = np.flatnonzero(first_pc[of_pc[executed.pc]] == executed.pc)
    last = first_pc[of_pc[executed.pc[starts]] + 1] - first_pc[of_pc[executed.pc[starts]]] - 1
    entries, merged = _entries(executed, active, of_pc, starts, starts + last)
    begins = starts[merged]
    bounds = np.searchsorted(begins, np.append(np.flatnonzero(executed.opens), len(executed.pc)))
    numbers: dict[bytes, int] = {}
    paths: list[npt.NDArray[np.void]] = []
    control: list[tuple[int, int, int, int]] = []
    for low, high, opened in zip(bounds, bounds[1:], np.flatnonzero(executed.opens), strict=False):
        warp = int(executed.warp[opened])
        for start in range(int(low), int(high), ENTRIES):
            piece = entries[start : min(start + ENTRIES, int(high))]
            number = numbers.setdefault(piece.tobytes(), len(paths))
            if number == len(paths):
                paths.append(piece)
            control.append((warp // warps, warp % warps, int(begins[start] - opened), number))
    for some in _batches(paths):
        flat = np.concatenate(some)
        names = ("block", "active", "not_taken", "targets", "repeat")
        rows.paths([len(path) for path in some], *(np.array(flat[name]) for name in names))
    if control:
        rows.control(*np.array(control, np.int64).T)


def _entries(
    executed: Executed, active: Ints, of_pc: Ints, starts: Ints, ends: Ints
) -> tuple[npt.NDArray[np.void], Ints]:
    """Return the run-length coded entries of all warps, concatenated, and the index of each warp's
    first.
    """
    entries = np.zeros(len(starts), _ENTRY)
    entries["block"], entries["active"] = of_pc[executed.pc[starts]], active[starts]
    branch = executed.branch[executed.pc[ends]]
    off = np.where(branch, active[ends] & ~executed.mask[ends], 0)
    entries["not_taken"] = off
    entries["targets"] = np.where(branch, (off != 0).astype(int) + (executed.mask[ends] != 0), 0)
    opens = executed.opens[starts]
    new = np.ones(len(entries), bool)
    new[1:] = (entries[1:] != entries[:-1]) | opens[1:]
    merged = np.flatnonzero(new)
    runs = entries[merged]
    runs["repeat"] = np.diff(np.append(merged, len(entries)))
    return runs, merged


def _batches(paths: list[npt.NDArray[np.void]]) -> Iterator[list[npt.NDArray[np.void]]]:
    """Yield groups of paths with not much more than ENTRIES entries each."""
    some: list[npt.NDArray[np.void]] = []
    count = 0
    for path in paths:
        some.append(path)
        count += len(path)
        if count >= ENTRIES:
            yield some
            some, count = [], 0
    if some:
        yield some


@dataclass(frozen=True, eq=False)
class Composed:
    """A complete launch; `source` is the key of the source text, or empty."""

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
        """Return the memory accesses of the launch."""
        return self.placed.accesses

    @cached_property
    def warps(self) -> int:
        """Return the warps per block."""
        return -(-self.threads // LANES)

    @property
    def threads(self) -> int:
        """Return the threads per block."""
        x, y, z = self.gathered.head.block
        return x * y * z

    @cached_property
    def facts(self) -> list[Facts]:
        """Return the facts of each instruction."""
        return [facts_of(code.mnemonic) for code in self.codes]

    @cached_property
    def order(self) -> Ints:
        """Return the order of rows by warp, and by execution within a warp."""
        return np.argsort(self.block * self.warps + self.warp, kind="stable")

    @cached_property
    def executed(self) -> Executed:
        """Return the rows sorted by warp."""
        warps = (self.block * self.warps + self.warp)[self.order]
        branch = np.array([f.operation == "branch" for f in self.facts], bool)
        ends = [f.kind == "control" or f.barrier is not None for f in self.facts]
        opens = np.diff(warps, prepend=-1) != 0
        return Executed(
            self.pc[self.order], self.mask[self.order], warps, opens, branch, np.array(ends, bool)
        )

    @cached_property
    def filled(self) -> Ints:
        """Return the lanes with a thread of the block, at each row of `executed`."""
        return np.clip(self.threads - self.executed.warp % self.warps * LANES, 0, LANES)

    @cached_property
    def active(self) -> Ints:
        """Return the active lanes at each row of `executed`, masked to the warp's threads."""
        return self.executed.active & ((np.int64(1) << self.filled) - 1)

    @cached_property
    def predicated(self) -> Ints:
        """Return whether an instruction was ever disabled in active lanes, (pcs,)."""
        off = (self.active & ~self.executed.mask) != 0
        return np.bincount(self.executed.pc, off, len(self.codes)).astype(np.int64)

    @cached_property
    def _blocks_ran(self) -> Ints:
        return sorted_unique(self.block)

    @cached_property
    def has_control(self) -> bool:
        """Return whether all instructions of all warps of the executed blocks are present."""
        ran = len(sorted_unique(self.executed.warp))
        return self.gathered.head.is_whole and 0 < ran == len(self._blocks_ran) * self.warps

    @cached_property
    def basic_blocks(self) -> Ints:
        """Return the basic block of each instruction."""
        if self.has_control:
            return number_blocks(self.executed, self.active, len(self.codes))
        return np.arange(len(self.codes))

    @cached_property
    def launch(self) -> Launch:
        """Return the launch entry of the manifest."""
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
            kept=self._recorded_part(),
        )

    def _recorded_part(self) -> Kept:
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
        """Return the missing information, a phrase each."""
        gaps = [*self.gathered.head.lacks]
        gaps += [f"the addresses of {opcode}" for opcode in self.gathered.untraced()]
        if not any(code.line for code in self.codes):
            gaps.append("source lines")
        if self.gathered.head.is_whole and not self.has_control:
            gaps.append("what the warps ran, since of some there is no instruction")
        if self._recorded_part().blocks:
            gaps.append("blocks that were not traced")
        return gaps

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
        """Return the index of each row within its warp."""
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
    """Return a complete launch; `arrays` are the first and last addresses of known global arrays,
    `lines_of` names the file of line numbers if there is no `source`.
    """
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
    text = source if has_lines else ""
    composition = Composed(gathered, text, lines_of, placed, codes, pc, block, warp, mask)
    if problem := first_finding(Manifest(launches=(replace(composition.launch, source=""),))):
        raise CutraceError(f"{problem}; is the trace whole?")
    _check_lanes(composition)
    return composition


def _check_lanes(composition: Composed) -> None:
    """Reject active lanes without a thread of the block."""
    executed = composition.executed
    beyond = np.flatnonzero(executed.mask >> composition.filled)
    if len(beyond):
        warp, lanes = (int(column[beyond[0]]) for column in (executed.warp, executed.mask))
        raise CutraceError(
            f"launch of {composition.launch.kernel}: lanes {lanes:#x} in warp "
            f"{warp % composition.warps} of block {warp // composition.warps}, which has"
            f" {composition.threads} threads; "
            "is the block's size in the trace the kernel's?"
        )


def _of_block(block: Ints, warp: Ints, warps: int, kernel: str) -> Ints:
    """Number warps within their block; some tools print the warp's slot on its multiprocessor.

    A block's warps usually occupy adjacent slots; if they do not, they are numbered in order.
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
