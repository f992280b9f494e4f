"""What each warp ran, run-length coded, and shared between warps that ran the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array import Bits
from .compiled.history_table import find_alike
from .launch import Sink

RUNS = 1 << 18
"""Runs of a basic block by a warp that wait at most."""

_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class _Run:
    """Warps (n,) that ran `block` together; `masks` has the active lanes in its high half and
    those that took the block's branch in its low half, a single one where all warps agree."""

    warps: NDArray[np.intp] | None
    count: int
    block: int
    masks: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Entries:
    """Runs in order: the warp, the basic block, the masks and how many times in a row, (n,)."""

    warp: NDArray[Any]
    block: NDArray[np.int32]
    masks: NDArray[np.uint64]
    repeat: NDArray[np.int64]


class HistoryRows:
    """Collects which of `blocks` basic blocks the warps of a wave ran; they lie in `block`, `warp`
    (W,)."""

    def __init__(
        self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16], blocks: int
    ) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._lengths: NDArray[np.int64] = np.zeros(blocks, dtype=np.int64)
        self._branches: NDArray[np.bool_] = np.zeros(blocks, dtype=np.bool_)
        self._runs: list[_Run] = []
        self._pending = 0
        self._steps: NDArray[np.uint32] = np.zeros(len(block), dtype=np.uint32)

    def add(
        self,
        warps: NDArray[np.intp] | None,
        block: int,
        length: int,
        active: Bits,
        taken: Bits | None,
    ) -> None:
        """Add a basic block of `length` instructions that `warps` (None: all) ran.

        `active` and `taken` (n,) are their lanes, and those that took its branch, if it has one.
        """
        self._lengths[block] = length
        self._branches[block] = taken is not None
        masks = active.astype(np.uint64) << _HALF
        if taken is not None:
            masks |= taken
        if bool((masks == masks[0]).all()):
            masks = masks[:1].copy()
        self._runs.append(_Run(warps, len(active), block, masks))
        self._pending += len(active)
        if self._pending >= RUNS:
            self.flush()

    def flush(self) -> None:
        """Write a control row for each warp that ran, and the paths that they took."""
        if not self._runs:
            return
        alike = all(run.warps is None and len(run.masks) == 1 for run in self._runs)
        entries = self._one_for_all() if alike else self._in_order_of_warp()
        self._write(_join_repeats(entries), alike)
        self._runs.clear()
        self._pending = 0

    def write_log(self, log: "Entries", lengths: NDArray[Any], branches: NDArray[Any]) -> None:
        """Write runs that lie in the order in which they were run, equal ones of a warp in a row
        joined.

        `lengths` and `branches` say of each basic block its instructions, and if it has a branch.
        """
        if not len(log.warp):
            return
        self._lengths[: len(lengths)] = lengths
        self._branches[: len(branches)] = branches != 0
        kind = np.uint16 if len(self._block) <= 1 << 16 else np.uint32
        order = np.argsort(log.warp.astype(kind), kind="stable")
        by_warp = log.warp[order], log.block[order], log.masks[order], log.repeat[order]
        self._write(Entries(*by_warp), False)

    def _write(self, entries: Entries, alike: bool) -> None:
        """Write entries by warp; `alike`, those of one for all."""
        first = np.flatnonzero(np.diff(entries.warp, prepend=-1))
        lengths = np.diff(first, append=len(entries.warp))
        who = entries.warp[first]
        columns = entries.block, entries.masks, entries.repeat
        alike_to, chosen = find_alike(first, lengths, *columns)
        path = self._write_paths(entries, first[chosen], lengths[chosen])[alike_to]
        steps = self._lengths[entries.block] * entries.repeat
        ran = np.add.reduceat(steps, first).astype(np.uint32)
        if alike:
            who = np.arange(len(self._block))
            path, ran = np.repeat(path, len(who)), np.repeat(ran, len(who))
        self._sink.control(self._block[who], self._warp[who], self._steps[who], path)
        self._steps[who] += ran

    def _one_for_all(self) -> Entries:
        """Return the history of one warp, which all share."""
        blocks = np.array([run.block for run in self._runs], dtype=np.int32)
        masks = np.concatenate([run.masks for run in self._runs])
        zeros = np.zeros(len(blocks), dtype=np.int64)
        return Entries(zeros, blocks, masks, zeros + 1)

    def _in_order_of_warp(self) -> Entries:
        """Return all runs by warp, those of a warp in the order in which it ran them."""
        counts = [run.count for run in self._runs]
        kind = np.uint16 if len(self._block) <= 1 << 16 else np.uint32
        everyone = np.arange(len(self._block), dtype=kind)
        warps: NDArray[Any] = np.empty(self._pending, dtype=kind)
        masks: NDArray[np.uint64] = np.empty(self._pending, dtype=np.uint64)
        blocks = np.repeat(np.array([run.block for run in self._runs], dtype=np.int32), counts)
        start = 0
        for run in self._runs:
            rows = slice(start, start + run.count)
            warps[rows] = everyone if run.warps is None else run.warps
            masks[rows] = run.masks
            start += run.count
        order = np.argsort(warps, kind="stable")
        ones = np.ones(len(order), dtype=np.int64)
        return Entries(warps[order].astype(np.int64), blocks[order], masks[order], ones)

    def _write_paths(
        self, entries: Entries, first: NDArray[Any], lengths: NDArray[Any]
    ) -> NDArray[np.uint32]:
        where = _ranges(first, lengths)
        blocks, masks = entries.block[where], entries.masks[where]
        active, taken = (masks >> _HALF).astype(np.uint32), masks.astype(np.uint32)
        targets = np.add(taken != 0, taken != active, dtype=np.uint8) * self._branches[blocks]
        repeat = entries.repeat[where].astype(np.uint32)
        start = self._sink.paths(
            lengths.astype(np.uint32), blocks.astype(np.uint32), active, taken, targets, repeat
        )
        return np.arange(start, start + len(first), dtype=np.uint32)


def _join_repeats(entries: Entries) -> Entries:
    """Make one entry of equal neighbours."""
    warp, block, masks = entries.warp, entries.block, entries.masks
    changed = (block[1:] != block[:-1]) | (masks[1:] != masks[:-1]) | (warp[1:] != warp[:-1])
    starts = np.flatnonzero(np.concatenate(([True], changed)))
    repeat = np.add.reduceat(entries.repeat, starts)
    return Entries(warp[starts], block[starts], masks[starts], repeat)


def _ranges(first: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return first[0], first[0]+1, ... (lengths[0] of them), then those of first[1], ..."""
    ends = np.cumsum(lengths)
    shift: NDArray[Any] = np.repeat(ends - lengths - first, lengths)
    places: NDArray[Any] = np.arange(int(ends[-1])) - shift
    return places
