"""Sampled warps: histories and loads of some blocks, instruction counts of all blocks.

The history of the longest warp is kept for some blocks. Instructions are counted for all blocks,
since an SM with longer blocks finishes last.
"""

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import field
from pathlib import Path

import numpy as np

from ...base import progress
from ...base.cores import cores
from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.measured import load_measured
from ...models.replay.interface.model import Ints
from ...models.replay.replay_cache import cached_answer
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Launch
from ...traces.unique import sorted_unique
from ..counting import paths as of_paths
from ..counting.paths import Paths, read_paths
from . import first_touches as touching
from .first_touches import Touches, first_touches

_SOURCES = [Path(name) for name in (__file__, touching.__file__, of_paths.__file__)]
SAMPLE = 8
"""Blocks that are sampled, evenly over the grid."""
History = tuple[tuple[int, int], ...]
"""(basic block, times in a row), in order."""
Histories = Sequence[tuple[History, int]]
"""Each history, with the number of sampled blocks whose longest warp ran it."""


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """The sampled execution of a launch's warps.

    `histories` pairs each history with the number of sampled blocks whose longest warp ran it.
    `sizes` (blocks,) are the warp instructions of each block. `touches` are the access statistics
    of the sampled blocks' loads.
    """

    histories: Histories
    sizes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    touches: Touches = field(default_factory=Touches)


def sample_warps(trace: LaunchTrace) -> Ran:
    """Sample a launch's warps and the loads of some blocks; results are cached."""
    return cached_answer(trace, _SOURCES, _sample, _pack, _unpack)


def _sample(trace: LaunchTrace) -> Ran:
    block_ids = _sampled_blocks(trace.launch)
    rows: dict[tuple[int, int], list[int]] = {}
    every = read_paths(trace)
    lengths, sizes = every.lengths, np.diff(every.first)
    sums = np.zeros(trace.launch.blocks, np.int64)
    for batch in trace.control_batches():
        blocks, warps, ran = integers(batch, "block", "warp", "path")
        sums += np.bincount(blocks, lengths[ran], len(sums)).astype(np.int64)
        for row in np.flatnonzero(np.isin(blocks, block_ids)).tolist():
            rows.setdefault((int(blocks[row]), int(warps[row])), []).append(int(ran[row]))
    histories_by_path = {
        path: _history(every, path) for path in {p for each in rows.values() for p in each}
    }
    longest: dict[int, tuple[int, tuple[int, ...], int]] = {}
    for (block, warp), each in rows.items():
        length = sum(int(sizes[b]) * n for p in each for b, n in histories_by_path[p])
        longest[block] = max(longest.get(block, (-1, (), 0)), (length, tuple(each), warp))
    path_counts = Counter(each for _, each, _ in longest.values())
    histories = [
        (tuple(e for p in each for e in histories_by_path[p]), n) for each, n in path_counts.items()
    ]
    if trace.launch.kept.sample.blocks:
        sums = np.zeros(0, np.int64)  # instruction counts of other blocks are unknown
    longest_warps = [longest[block][2] if block in longest else 0 for block in block_ids.tolist()]
    return Ran(histories, sums, first_touches(trace, block_ids, np.array(longest_warps, np.int64)))


def _sampled_blocks(launch: Launch) -> Ints:
    """Return the sampled blocks; of a sampled launch a part of its sample."""
    drawn = np.array(launch.kept.sample.blocks, np.int64)
    places = np.linspace(0, (len(drawn) or launch.blocks) - 1, SAMPLE).astype(np.int64)
    indices = sorted_unique(places)
    return drawn[indices] if len(drawn) else indices


def _pack(ran: Ran) -> bytes:
    touches = ran.touches
    by_pc = (
        *(touches.firsts, touches.longest, touches.passes),
        *(touches.refetched, touches.apart, touches.earlier),
    )
    payload = ran.histories, [[*each.items()] for each in by_pc], sorted(touches.any_order)
    head = json.dumps(payload).encode()
    return head + b"\n" + zlib.compress(ran.sizes.astype("<i8").tobytes(), 1)


def _unpack(data: bytes) -> Ran:
    head, _, sizes = data.partition(b"\n")
    histories, by_pc, any_order = json.loads(head)
    firsts, longest, passes, fresh_shares, apart, earlier = (dict(each) for each in by_pc)
    return Ran(
        [(tuple((block, times) for block, times in each), many) for each, many in histories],
        np.frombuffer(zlib.decompress(sizes), "<i8"),
        Touches(firsts, longest, passes, frozenset(any_order), fresh_shares, apart, earlier),
    )


def _history(paths: Paths, path: int) -> History:
    entries = slice(paths.bounds[path], paths.bounds[path + 1])
    blocks, times = (paths.columns[name][entries].tolist() for name in ("blocks", "repeat"))
    return tuple(zip(blocks, times, strict=True))


WORTH = 1 << 18
"""Rows of accesses from which a thread pays off."""


@dataclass(slots=True)
class SampledWarps:
    """The sampled warps of a launch, read in a thread of their own.

    The thread starts when a replay on the devices first reports progress, if an estimate follows
    from any of them.
    """

    launch: LaunchTrace
    devices: Sequence[Device]
    _sample: Future[Ran] | None = field(default=None, repr=False)

    def sampling(self) -> AbstractContextManager[None]:
        """Start the thread on the first progress of the body."""

        def begin(fraction: float) -> None:
            if fraction < 1 and self._sample is None and self._is_worth_a_thread:
                thread = ThreadPoolExecutor(1, "sample")
                # a copy: threads would share the files that a launch has open
                self._sample = thread.submit(sample_warps, deepcopy(self.launch))
                thread.shutdown(wait=False)
            whole(fraction)

        whole = progress.listener()
        return progress.listening(begin)

    def __call__(self) -> Ran:
        """Return the sampled warps; read them now if no thread has."""
        if self._sample is None:
            self._sample = Future()
            self._sample.set_result(sample_warps(self.launch))
        return self._sample.result()

    @property
    def _is_worth_a_thread(self) -> bool:
        is_long = self.launch.count("accesses") >= WORTH and cores() > 1
        return is_long and any(map(load_measured, self.devices))
