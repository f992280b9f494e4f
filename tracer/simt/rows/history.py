"""Control-flow paths of warps, run-length coded; warps with equal paths share one.

The log of basic blocks is sorted by warp, equal neighbours are joined to (block, masks, repeats),
and a hash table finds the warps with the same path.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop_codegen import compile_routines
from ....jit.structure import I32, I64, U8, U32, Struct
from ....traces.schema import PATHS
from ..kernel.launch import Sink
from .buffers import Buffers

_KEEP = (1 << 62) - 1
_FACTOR = 0x2545F4914F6CDD1D
_OTHER = 0x1B873593CC9E2D51

REPEAT = 1 << 32


@dataclass(frozen=True, slots=True)
class Entries:
    """A log of basic blocks in execution order: warp, block, masks and repeats, (n,).

    `masks` has the active lanes in the high half, the lanes that took the block's branch in the
    low half.
    """

    warp: NDArray[np.int32]
    block: NDArray[np.int32]
    masks: NDArray[np.int64]
    repeat: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Shared:
    """Paths of `warps` warps: `path` is the index of each one's path, -1 if it ran nothing, `steps`
    its instructions. A path is one of `lengths` (n,) cut from the flat `columns`: basic blocks,
    active lanes, those of them that did not take its branch, targets, repeats.
    """

    path: NDArray[np.int64]
    steps: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    columns: Sequence[NDArray[Any]]


class Histories(Struct):
    """Arguments and results of the compiled `share_histories`.

    Input: `entries` as Entries has them, of `warps` warps; the `instructions` of each basic block,
    and whether it has a branch (`branches`).

    Sorted by warp, with equal neighbours joined: `sorted` has two words per entry, its masks, and
    its repeats times REPEAT plus its block. A warp's entries begin at entry `first` and are
    `length`; it ran `ran` instructions in all.

    `places` is an open-addressing hash table: at a history's hash, or after it, the number + 1 of
    its path (0: free). `path` is the index of each warp's path in the `selection`, the first warp
    with each path. The `total` entries of these are in `blocks` and the columns that follow.
    """

    entries: int
    warp: I32
    block: I32
    masks: I64
    repeat: I32
    warps: int
    instructions: I32
    branches: I32

    first: I64
    length: I64
    ran: U32
    sorted: I64

    places: I32
    mask: int
    path: I64
    selection: I64

    total: int
    blocks: U32
    active: U32
    not_taken: U32
    targets: U8
    repeats: U32


def share_histories(h: Histories) -> int:
    """Fill all results; return the number of distinct paths."""
    for place in range(h.mask + 1):
        h.places[place] = 0
    for warp in range(h.warps):
        h.first[warp] = 0
        h.length[warp] = 0
        h.ran[warp] = 0
    h.first[h.warps] = 0
    sort_entries(h)
    distinct = 0
    for warp in range(h.warps):
        h.path[warp] = -1
        if h.length[warp] == 0:
            continue
        at = hash_history(h, warp) & h.mask
        while h.places[at] and not same_history(h, warp, h.selection[h.places[at] - 1]):
            at = (at + 1) & h.mask
        if h.places[at] == 0:
            h.selection[distinct] = warp
            distinct += 1
            h.places[at] = distinct
            lay_out(h, warp)
        h.path[warp] = h.places[at] - 1
    return distinct


def sort_entries(h: Histories) -> None:
    """Sort the entries by warp (a counting sort), in execution order within a warp."""
    warps = h.warp
    first = h.first
    length = h.length
    to = h.sorted
    for entry in range(h.entries):
        first[warps[entry] + 1] += 1
    for warp in range(h.warps):
        first[warp + 1] += first[warp]
    blocks = h.block
    repeat = h.repeat
    masks = h.masks
    instructions = h.instructions
    ran = h.ran
    for entry in range(h.entries):
        warp = warps[entry]
        block = blocks[entry]
        repeats = repeat[entry] * REPEAT
        so_far = length[warp]
        at = 2 * (first[warp] + so_far)
        ran[warp] += instructions[block] * repeat[entry]
        # The same block and masks again: only add to the repeats in the high half.
        if so_far and to[at - 2] == masks[entry] and to[at - 1] % REPEAT == block:
            to[at - 1] += repeats
        else:
            to[at] = masks[entry]
            to[at + 1] = repeats + block
            length[warp] = so_far + 1


def hash_history(h: Histories, warp: int) -> int:
    """Return a non-negative hash of a warp's path."""
    count = h.length[warp]
    words = h.sorted[2 * h.first[warp] :]
    mixed = count
    for entry in range(count):
        mixed = (mixed ^ words[2 * entry]) * _FACTOR + words[2 * entry + 1] * _OTHER
        mixed = mixed ^ ((mixed & _KEEP) >> 30)
    return int(mixed & _KEEP)


def same_history(h: Histories, one: int, other: int) -> int:
    """Return 1 if the paths of two warps are equal, else 0."""
    if h.length[one] != h.length[other]:
        return 0
    apart = 2 * (h.first[other] - h.first[one])
    for word in range(2 * h.first[one], 2 * (h.first[one] + h.length[one])):
        if h.sorted[word] != h.sorted[word + apart]:
            return 0
    return 1


def lay_out(h: Histories, warp: int) -> None:
    """Append a warp's path to the columns."""
    to = h.total
    for entry in range(h.first[warp], h.first[warp] + h.length[warp]):
        masks = h.sorted[2 * entry]
        block = h.sorted[2 * entry + 1] % REPEAT
        active = (masks >> 32) & 0xFFFFFFFF
        fallthrough = 0
        ways = 0
        if h.branches[block]:
            fallthrough = active ^ (masks & 0xFFFFFFFF)
            ways = (1 if fallthrough != active else 0) + (1 if fallthrough != 0 else 0)
        h.blocks[to] = block
        h.active[to] = active
        h.not_taken[to] = fallthrough
        h.targets[to] = ways
        h.repeats[to] = h.sorted[2 * entry + 1] // REPEAT
        to += 1
    h.total = to


_WORK = {
    **{"first": "i8", "length": "i8", "ran": "u4", "sorted": "i8", "places": "i4"},
    **{"path": "i8", "selection": "i8", "blocks": "u4", "active": "u4", "not_taken": "u4"},
    **{"targets": "u1", "repeats": "u4"},
}
"""What is used while paths are shared."""


class PathTable:
    """Finds the paths of `warps` warps in logs, of which `entries` is the room; `instructions` and
    `branches` describe each basic block.
    """

    def __init__(
        self, entries: Entries, warps: int, instructions: NDArray[np.int32],
        branches: NDArray[np.int32], buffers: Buffers,
    ) -> None:  # fmt: skip
        h = Histories()
        h.warps, h.warp, h.block = warps, entries.warp, entries.block
        h.masks, h.repeat = entries.masks, entries.repeat
        h.instructions, h.branches = instructions, branches
        self.histories, self.room = h, 0
        self.columns: Sequence[NDArray[Any]] = ()
        self._buffers = buffers
        self._places = 1 << (2 * warps).bit_length()
        h.mask = self._places - 1

    def reserve(self, entries: int) -> None:
        """Make room for a log of so many entries, and for as many entries of paths."""
        h = self.histories
        if self.room < max(2 * entries, self._places):
            self.room = max(2 * entries, self._places)
            self._buffers.bind(h, _WORK, self.room)
            self.columns = h.blocks, h.active, h.not_taken, h.targets, h.repeats
            self._of_warps = h.path[: h.warps], h.ran[: h.warps]

    def share(self, entries: int) -> Shared:
        """Return the paths of a log of so many entries; `path` and `steps` of the result are valid
        until the next call."""
        h = self.histories
        h.entries = entries
        self.reserve(entries)
        (share,) = compile_routines(share_histories)
        path_indices = h.selection[: share(h.address)]
        lengths = h.length[path_indices].astype(np.uint32)
        total, h.total = h.total, 0
        return Shared(*self._of_warps, lengths, [each[:total].copy() for each in self.columns])


RUNS = 1 << 18
"""Entries of a log after which it is written, one per basic block and warp."""


class HistoryRows:
    """Collects the control flow of a wave's warps, which are `warp` (W,) of the blocks
    `block` (W,).
    """

    def __init__(
        self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16], paths: PathTable
    ) -> None:
        self._sink, self._paths = sink, paths
        self._block = block
        self._warp = warp
        self._steps: NDArray[np.uint32] = np.zeros(len(block), dtype=np.uint32)

    def begin_again(self, sink: Sink, block: NDArray[np.uint64]) -> None:
        """Collect the control flow of other blocks."""
        self._sink = sink
        self.set_blocks(block)

    def set_blocks(self, block: NDArray[np.uint64]) -> None:
        """Set the blocks of the warps, which have run nothing yet."""
        self._block = block
        self._steps[:] = 0

    @property
    def paths(self) -> PathTable:
        """Where the paths of logs are found."""
        return self._paths

    @property
    def steps(self) -> int:
        """The instructions of all warps in the logs so far."""
        return int(self._steps.sum(dtype=np.int64))

    def write_log(self, entries: int) -> None:
        """Write a control row for each warp of a log of so many entries, and the distinct paths."""
        if not entries:
            return
        shared = self._paths.share(entries)
        self.put(self._block, shared.path, shared.lengths, shared.columns)
        self._steps += shared.steps

    def put(
        self, block: NDArray[np.uint64], path: NDArray[np.int64], lengths: NDArray[np.uint32],
        columns: Sequence[NDArray[Any]],
    ) -> None:  # fmt: skip
        """Write the paths of warps of these blocks, as `Shared` has them."""
        names = dict(zip(PATHS.names, columns, strict=True))
        first = self._sink.put("paths", lengths=lengths, **names)
        ran = path >= 0
        who: Any = slice(None) if ran.all() else ran
        self._sink.put(
            "control",
            block=block[who],
            warp=self._warp[who],
            step=self._steps[who].copy(),
            path=(path[who] + first).astype(np.uint32),
        )
