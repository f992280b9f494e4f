"""What a launch's warps ran: some of them step by step, all blocks in sums, some blocks' loads.

Of some blocks the warp that runs longest is kept with its history. Of all blocks the instructions
are counted, since an SM that has longer ones than the others ends last.
"""

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from ...lazy_dataclass import dataclass
from ...models.replay.kept import kept_answer
from ...models.replay.seam import Ints
from ...traces.reader import LaunchTrace
from ...traces.schema import Launch
from ...traces.table.nested import list_values
from ...traces.table.unique import sorted_unique
from . import first_touches as touching
from .first_touches import Touches, first_touches

SAMPLE = 8
"""Blocks that are looked at, evenly over the grid."""
History = tuple[tuple[int, int], ...]
"""(basic block, times in a row), in order."""
Histories = Sequence[tuple[History, int]]
"""With the number of sampled blocks whose longest warp ran each."""


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """What warps of a launch ran.

    `histories` say of how many of the sampled blocks each is the longest warp's; `sizes` (blocks,)
    are the warp instructions of each block; `touches` say where the sampled blocks' loads went.
    """

    histories: Histories
    sizes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    touches: Touches = field(default_factory=Touches)


def sample_warps(trace: LaunchTrace) -> Ran:
    """Look at what warps ran, and where some blocks' loads went, or at what was found before."""
    return kept_answer(trace, [Path(__file__), Path(touching.__file__)], _sample, _pack, _unpack)


def _sample(trace: LaunchTrace) -> Ran:
    wanted = _wanted(trace.launch)
    rows: dict[tuple[int, int], list[int]] = {}
    lengths = _lengths(trace)
    sums = np.zeros(trace.launch.blocks, np.int64)
    for batch in trace.control_batches():
        blocks, warps, ran = (
            np.asarray(batch[name].to_numpy()).astype(np.int64)
            for name in ("block", "warp", "path")
        )
        sums += np.bincount(blocks, lengths[ran], len(sums)).astype(np.int64)
        for row in np.flatnonzero(np.isin(blocks, wanted)).tolist():
            rows.setdefault((int(blocks[row]), int(warps[row])), []).append(int(ran[row]))
    paths = _paths(trace, sorted({p for each in rows.values() for p in each}))
    sizes = _sizes(trace)
    longest: dict[int, tuple[int, tuple[int, ...], int]] = {}
    for (block, warp), each in rows.items():
        length = sum(int(sizes[b]) * n for p in each for b, n in paths[p])
        longest[block] = max(longest.get(block, (-1, (), 0)), (length, tuple(each), warp))
    found = Counter(each for _, each, _ in longest.values())
    histories = [(tuple(e for p in each for e in paths[p]), n) for each, n in found.items()]
    if trace.launch.kept.sample.blocks:
        sums = np.zeros(0, np.int64)  # those of the others are not known
    longest_warps = [longest[block][2] if block in longest else 0 for block in wanted.tolist()]
    return Ran(histories, sums, first_touches(trace, wanted, np.array(longest_warps, np.int64)))


def _wanted(launch: Launch) -> Ints:
    """The blocks that are looked at: of a sample some of it."""
    drawn = np.array(launch.kept.sample.blocks, np.int64)
    places = np.linspace(0, (len(drawn) or launch.blocks) - 1, SAMPLE).astype(np.int64)
    found = sorted_unique(places)
    return drawn[found] if len(drawn) else found


def _pack(ran: Ran) -> bytes:
    touches = ran.touches
    by_pc = touches.firsts, touches.longest, touches.passes, touches.anew
    told = ran.histories, [[*each.items()] for each in by_pc], sorted(touches.any_order)
    head = json.dumps(told).encode()
    return head + b"\n" + zlib.compress(ran.sizes.astype("<i8").tobytes(), 1)


def _unpack(data: bytes) -> Ran:
    head, _, sizes = data.partition(b"\n")
    histories, by_pc, any_order = json.loads(head)
    firsts, longest, passes, anew = (dict(each) for each in by_pc)
    return Ran(
        [(tuple((block, times) for block, times in each), many) for each, many in histories],
        np.frombuffer(zlib.decompress(sizes), "<i8"),
        Touches(firsts, longest, passes, frozenset(any_order), anew),
    )


def _lengths(trace: LaunchTrace) -> Ints:
    """Instructions of each path."""
    paths = trace.paths()
    blocks, times = (
        paths[name].combine_chunks() if paths.num_rows else None for name in ("blocks", "repeat")
    )
    if blocks is None or times is None:
        return np.zeros(0, np.int64)
    repeats = list_values(times).to_numpy().astype(np.int64)
    steps = _sizes(trace)[list_values(blocks).to_numpy()] * repeats
    ends = np.asarray(blocks.offsets.to_numpy()).astype(np.int64)
    sums = np.concatenate(([0], np.cumsum(steps)))
    return np.asarray(sums[ends[1:]] - sums[ends[:-1]], np.int64)


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
