"""The chip as special registers show it, and the SM of each block.

A trace is independent of hardware, but `%smid` is not: blocks go to SMs round-robin, as in the
replay, and an SM has at most as many resident blocks as fit. Without a device the default one
holds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..ops.lanes import LANES


def _fits(registers: int, shared: int, threads: int) -> int:
    """Return the resident blocks per SM of capability 9.0 (CUDA C++ Programming Guide, "Compute
    Capabilities"): registers are allocated by 256 to the warps of each of four schedulers, shared
    memory by 128 bytes.
    """
    warps = -(-threads // LANES)
    by_registers = 4 * (16384 // max(256, -(-registers * LANES // 256) * 256)) // warps
    by_shared = 228 * 1024 // (-(-(shared + 1024) // 128) * 128)
    return min(32, 64 // warps, by_registers, by_shared)


@dataclass(frozen=True, slots=True)
class Chip:
    """`warps` is the warp capacity of an SM, `sms_per_cluster` the SMs of a texture cluster of 1.x.

    `shared_unit` is the allocation unit of shared memory, `shared_reserved` the system's share of
    each block, in bytes. `fits(registers, shared bytes, threads)` blocks are resident on an SM.
    """

    capability: int = 90
    sms: int = 132
    sms_per_cluster: int = 1
    warps: int = 64
    shared_unit: int = 128
    shared_reserved: int = 1024
    fits: Callable[[int, int, int], int] = _fits

    def sm(self, block: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the SM of each block, as `models/replay/schedule/place.py` does."""
        clusters = self.sms // self.sms_per_cluster
        core = block // clusters % self.sms_per_cluster
        return block % clusters * self.sms_per_cluster + core


DEFAULT_CHIP = Chip()
EPOCH = 1 << 60
"""Start of `%globaltimer`, in nanoseconds since 1970: a time that no real clock shows today."""
LAUNCH_NANOSECONDS = 1 << 31
"""Time between launches: more than the steps of any warp, so that time never runs backwards."""
