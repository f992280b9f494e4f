"""Some warps of a launch, each the one of its block that runs longest, and what they ran."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...models.replay.seam import Ints
from ...traces.reader import LaunchTrace

SAMPLE = 8
"""Blocks that are looked at, evenly over the grid."""
History = tuple[tuple[int, int], ...]
"""(basic block, times in a row), in order."""
Histories = Sequence[tuple[History, int]]
"""With the number of sampled blocks whose longest warp ran each."""


def sample_warps(trace: LaunchTrace) -> Histories:
    """Return histories, and of how many of the sampled blocks each is the longest warp's."""
    wanted = np.unique(np.linspace(0, trace.launch.blocks - 1, SAMPLE).astype(np.int64))
    rows: dict[tuple[int, int], list[int]] = {}
    for batch in trace.control_batches():
        blocks, warps, ran = (
            np.asarray(batch[name].to_numpy()).astype(np.int64)
            for name in ("block", "warp", "path")
        )
        for row in np.flatnonzero(np.isin(blocks, wanted)).tolist():
            rows.setdefault((int(blocks[row]), int(warps[row])), []).append(int(ran[row]))
    paths = _paths(trace, sorted({p for each in rows.values() for p in each}))
    sizes = _sizes(trace)
    longest: dict[int, tuple[int, tuple[int, ...]]] = {}
    for (block, _), each in rows.items():
        length = sum(int(sizes[b]) * n for p in each for b, n in paths[p])
        longest[block] = max(longest.get(block, (-1, ())), (length, tuple(each)))
    found = Counter(each for _, each in longest.values())
    return [(tuple(e for p in each for e in paths[p]), n) for each, n in found.items()]


def _paths(trace: LaunchTrace, wanted: Sequence[int]) -> dict[int, History]:
    if not wanted:
        return {}
    paths = trace.paths().select(["blocks", "repeat"])
    taken = [paths.slice(number, 1).to_pylist()[0] for number in wanted]  # `take` imports a lot
    return {
        number: tuple(zip(row["blocks"], row["repeat"], strict=True))
        for number, row in zip(wanted, taken, strict=True)
    }


def _sizes(trace: LaunchTrace) -> Ints:
    """Instructions of each basic block."""
    return np.bincount(np.asarray(trace.instructions()["block"].to_numpy()))
