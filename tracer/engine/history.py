"""What each warp ran, run-length coded, and shared between warps that ran the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array import Bits
from .launch import Sink

RUNS = 1 << 20
"""Runs of a basic block by a warp that wait at most."""

_WEIGHTS = np.random.default_rng(7).integers(1, 1 << 62, size=5, dtype=np.int64) | 1


@dataclass(frozen=True, slots=True)
class _Run:
    """Warps (n,) that ran `block` together; `taken` None: it ended without a branch."""

    warps: NDArray[np.intp] | None
    count: int
    block: int
    length: int
    active: Bits
    taken: Bits | None
    targets: NDArray[np.uint8] | None


class HistoryRows:
    """Collects the basic blocks that the warps of a wave ran; they lie in `block`, `warp` (W,)."""

    def __init__(self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16]) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._runs: list[_Run] = []
        self._pending = 0
        self._steps: NDArray[np.uint32] = np.zeros(len(block), dtype=np.uint32)

    def add(
        self, warps: NDArray[np.intp] | None, block: int, length: int, active: Bits,
        taken: Bits | None, targets: NDArray[np.uint8] | None,
    ) -> None:  # fmt: skip
        """Add a basic block of `length` instructions, run by `warps` (None: all)."""
        self._runs.append(_Run(warps, len(active), block, length, active, taken, targets))
        self._pending += len(active)
        if self._pending >= RUNS:
            self.flush()

    def flush(self) -> None:
        """Write a control row for each warp that ran, and the paths that they took."""
        if not self._runs:
            return
        one = self._one_for_all()
        warps, columns = one or self._in_order_of_warp()
        starts, columns = _run_lengths(warps, columns)
        owner = warps[starts]
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        lengths = np.diff(first, append=len(owner))
        who = owner[first]
        path, chosen = _share(columns[:, 1:], first, lengths)
        path = self._write_paths(columns, first[chosen], lengths[chosen])[path]
        ran = np.add.reduceat(columns[:, 0] * columns[:, 5], first).astype(np.uint32)
        if one:
            who = np.arange(len(self._block))
            path, ran = np.repeat(path, len(who)), np.repeat(ran, len(who))
        self._sink.control(self._block[who], self._warp[who], self._steps[who], path)
        self._steps[who] += ran
        self._runs.clear()
        self._pending = 0

    def _one_for_all(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the history of one warp as `_in_order_of_warp` would, if all warps share it."""
        columns = np.zeros((len(self._runs), 5), dtype=np.int64)
        for row, run in enumerate(self._runs):
            if run.warps is not None or bool((run.active != run.active[0]).any()):
                return None
            columns[row, :3] = run.length, run.block, run.active[0]
            if run.taken is not None and run.targets is not None:
                if bool((run.taken != run.taken[0]).any()):
                    return None
                columns[row, 3:] = run.taken[0], run.targets[0]
        return np.zeros(len(columns), dtype=np.int64), columns

    def _in_order_of_warp(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return warps (n,), and (n, 5): length, block, active, taken, targets; stable by warp."""
        size = self._pending
        warps = np.empty(size, dtype=np.int64)
        columns = np.zeros((size, 5), dtype=np.int64)
        everyone = np.arange(len(self._block))
        start = 0
        for run in self._runs:
            rows = slice(start, start + run.count)
            warps[rows] = everyone if run.warps is None else run.warps
            columns[rows, 0] = run.length
            columns[rows, 1] = run.block
            columns[rows, 2] = run.active
            if run.taken is not None and run.targets is not None:
                columns[rows, 3] = run.taken
                columns[rows, 4] = run.targets
            start += run.count
        order = np.argsort(warps, kind="stable")
        return warps[order], columns[order]

    def _write_paths(
        self, columns: NDArray[Any], first: NDArray[Any], lengths: NDArray[Any]
    ) -> NDArray[np.uint32]:
        where = _ranges(first, lengths)
        chosen = columns[where]
        start = self._sink.paths(
            lengths.astype(np.uint32),
            chosen[:, 1].astype(np.uint32),
            chosen[:, 2].astype(np.uint32),
            chosen[:, 3].astype(np.uint32),
            chosen[:, 4].astype(np.uint8),
            chosen[:, 5].astype(np.uint32),
        )
        return np.arange(start, start + len(first), dtype=np.uint32)


def _run_lengths(warps: NDArray[Any], columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Join equal neighbours of a warp; return where they start, and a sixth column: how many."""
    changed = (columns[1:] != columns[:-1]).any(axis=1) | (warps[1:] != warps[:-1])
    starts = np.flatnonzero(np.concatenate(([True], changed)))
    repeat = np.diff(starts, append=len(warps))
    return starts, np.column_stack((columns[starts], repeat))


def _share(
    columns: NDArray[Any], first: NDArray[Any], lengths: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find equal histories: return for each its number among the distinct ones, and which stand
    for them. Equality is checked; if two that differ share a hash, nothing is shared."""
    position = np.arange(len(columns)) - np.repeat(first, lengths)
    values = columns @ _WEIGHTS
    mixed = (values ^ (values >> 29)) * (2 * position + 1) * _WEIGHTS[0]
    keys = np.add.reduceat(mixed ^ (mixed >> 31), first) * 31 + lengths
    _, chosen, path = np.unique(keys, return_index=True, return_inverse=True)
    same_length = bool((lengths[chosen][path] == lengths).all())
    if same_length and len(chosen) < len(first):
        twin = _ranges(first[chosen][path], lengths)
        if bool((columns[twin] == columns).all()):
            order = np.argsort(chosen, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return rank[path], chosen[order]
    everyone = np.arange(len(first))
    return everyone, everyone


def _ranges(first: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return first[0], first[0]+1, ... (lengths[0] of them), then those of first[1], ..."""
    ends = np.cumsum(lengths)
    shift: NDArray[Any] = np.repeat(ends - lengths - first, lengths)
    places: NDArray[Any] = np.arange(int(ends[-1])) - shift
    return places
