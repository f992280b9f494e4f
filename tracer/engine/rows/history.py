"""Control-flow paths of warps, run-length coded, shared between warps with equal paths."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.schema import PATHS
from ..lanes import Bits
from ..launch import Sink
from .history_table import Entries, Shared, share_paths

RUNS = 1 << 18
"""Runs of a basic block by a warp that wait at most."""

_HALF = 32


@dataclass(frozen=True, slots=True)
class _Run:
    """Warps (n,) that ran `block` together; `masks` as Entries has them, a single one where all
    warps agree."""

    warps: NDArray[np.intp] | None
    count: int
    block: int
    masks: NDArray[np.int64]


class HistoryRows:
    """Collects which of `blocks` basic blocks the warps of a wave ran; they lie in `block`, `warp`
    (W,)."""

    def __init__(
        self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16], blocks: int
    ) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._lengths: NDArray[np.int32] = np.zeros(blocks, dtype=np.int32)
        self._branches: NDArray[np.int32] = np.zeros(blocks, dtype=np.int32)
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
        masks = active.astype(np.int64) << _HALF
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
        if all(run.warps is None and len(run.masks) == 1 for run in self._runs):
            one = share_paths(self._one_for_all(), 1, self._lengths, self._branches)
            every = len(self._block)
            path, steps = np.repeat(one.path, every), np.repeat(one.steps, every)
            self._write(Shared(path, steps, one.lengths, one.columns))
        else:
            self.write_log(self._all_runs(), self._lengths, self._branches)
        self._runs.clear()
        self._pending = 0

    def write_log(
        self, log: Entries, lengths: NDArray[np.int32], branches: NDArray[np.int32]
    ) -> None:
        """Write runs that lie in the order in which they were run.

        `lengths` and `branches` say of each basic block its instructions, and if it has a branch.
        """
        if len(log.warp):
            self._write(share_paths(log, len(self._block), lengths, branches))

    def _write(self, shared: Shared) -> None:
        columns = dict(zip(PATHS.names, shared.columns, strict=True))
        first = self._sink.put("paths", lengths=shared.lengths, **columns)
        ran = shared.path >= 0
        who: Any = slice(None) if ran.all() else ran
        self._sink.put(
            "control",
            block=self._block[who],
            warp=self._warp[who],
            step=self._steps[who].copy(),
            path=(shared.path[who] + first).astype(np.uint32),
        )
        self._steps += shared.steps

    def _one_for_all(self) -> Entries:
        """Return the history of one warp, which all share."""
        blocks = np.array([run.block for run in self._runs], dtype=np.int32)
        masks = np.concatenate([run.masks for run in self._runs])
        zeros = np.zeros(len(blocks), dtype=np.int32)
        return Entries(zeros, blocks, masks, zeros + 1)

    def _all_runs(self) -> Entries:
        """Return all runs, those of one basic block side by side."""
        counts = [run.count for run in self._runs]
        everyone = np.arange(len(self._block), dtype=np.int32)
        warps: NDArray[np.int32] = np.empty(self._pending, dtype=np.int32)
        masks: NDArray[np.int64] = np.empty(self._pending, dtype=np.int64)
        blocks = np.repeat(np.array([run.block for run in self._runs], dtype=np.int32), counts)
        start = 0
        for run in self._runs:
            rows = slice(start, start + run.count)
            warps[rows] = everyone if run.warps is None else run.warps
            masks[rows] = run.masks
            start += run.count
        return Entries(warps, blocks, masks, np.ones(len(warps), dtype=np.int32))
