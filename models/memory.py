"""Memory: bytes that the caches read from the device's memory and write to it.

What the hardware does. Memory is read and written in bursts; what a burst brings beyond what was
asked for is the caches' to ask for or not.

What is modelled: `bytes_read` and `bytes_written`, as the last cache asks (a device without one:
as the coalescer does). An atomic that no cache does for it reads and writes.

What is not: pages, banks, refresh, error correction; parameters and code, which a launch reads too.

Source: Nsight Compute 2022.3 Profiling Guide, memory tables.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .replay.seam import Batch, Step

READS = frozenset({"load", "atomic", "reduction"})
WRITES = frozenset({"store", "atomic", "reduction"})


@dataclass(frozen=True)
class Memory:
    """The memory of a device."""

    counters: ClassVar[tuple[str, ...]] = ("bytes_read", "bytes_written")
    period: ClassVar[int] = 1

    def step(self, batch: Batch) -> Step:
        """Count each request by itself."""
        counts = {name: np.zeros(len(batch), np.int64) for name in self.counters}
        for kind, rows in batch.parts():
            counts["bytes_read"][rows] = kind.width * (kind.access in READS)
            counts["bytes_written"][rows] = kind.width * (kind.access in WRITES)
        return Step(counts)
