"""Memory: bytes that the caches read from the device's memory and write to it.

What the hardware does. Memory is read and written in bursts; the caches decide whether the rest of
a burst is used.

What is modelled: `bytes_read` and `bytes_written` are the requests of the last cache; without a
cache, those of the coalescer. An atomic that no cache executes reads and writes.

What is not: pages, banks, refresh, error correction; parameters and code, which a launch reads too.

Source: Nsight Compute 2022.3 Profiling Guide, memory tables.
"""

from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from .replay.interface.model import Batch, Kind, Step

READS = frozenset({"load", "atomic", "reduction"})
WRITES = frozenset({"store", "atomic", "reduction"})


@dataclass(frozen=True)
class Memory:
    """The memory of a device."""

    counters: ClassVar[tuple[str, ...]] = ("bytes_read", "bytes_written")
    period: ClassVar[int] = 1
    adds_up: ClassVar[bool] = True

    def step(self, batch: Batch) -> Step:
        """Count each request by itself, or the sums of groups."""
        moves = [_moves(kind) for kind in batch.kinds]
        moved = np.array(moves or [(0, 0)], np.int64)
        if batch.group is None:
            counts = moved[batch.kind].T
        else:
            size = len(moved), batch.groups
            place = batch.kind * batch.groups + batch.group
            counts = moved.T @ np.bincount(place, minlength=size[0] * size[1]).reshape(size)
        return Step(dict(zip(self.counters, counts, strict=True)))


def _moves(kind: Kind) -> tuple[int, int]:
    """Return the bytes read and written by a request of a kind."""
    return kind.width * (kind.access in READS), kind.width * (kind.access in WRITES)
