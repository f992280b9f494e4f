"""A launch, the chip that it runs on, and the sink of its rows.

A trace is independent of hardware, but `%smid` is not: blocks go to SMs round-robin, as in the
replay, and an SM has at most as many resident blocks as fit. Without a device the default chip
holds.
"""

from collections.abc import Callable
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..ops.lanes import LANES
from .run_options import DEFAULTS, RunOptions

REDUCTION = 1 << 16
"""Added to the bytes of an update whose order does not matter: several waves may update a word that
they neither load nor store."""


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


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: grid in blocks, block in threads, dynamic shared memory in bytes.

    `arguments` has the bytes of each kernel parameter (little-endian, of the parameter's size).
    `output` receives `printf` output. `name` is the kernel's name in messages, else its PTX name.
    If `sampled_blocks` (ascending) is not empty, only those blocks run. `cluster` is the blocks per
    cluster along each axis; by default, (), each block is one. `number` is the launch's index in
    its session. `chip` is the chip that it sees, and `resident` the blocks per SM.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_dynamic: int
    arguments: tuple[bytes, ...]
    output: Callable[[str], None]
    options: RunOptions = DEFAULTS
    name: str = ""
    sampled_blocks: tuple[int, ...] = ()
    cluster: tuple[int, int, int] | tuple[()] = ()
    number: int = 1
    chip: Chip = DEFAULT_CHIP
    resident: int = 1

    @property
    def begin(self) -> int:
        """The start time, in nanoseconds of `%globaltimer`."""
        return EPOCH + self.number * LAUNCH_NANOSECONDS

    @property
    def executed(self) -> int:
        """The number of thread blocks that run."""
        return len(self.sampled_blocks) or self.blocks

    def numbers(self, first: int, count: int) -> NDArray[np.int64]:
        """Return the grid numbers of `count` executed blocks, from the `first` on."""
        if self.sampled_blocks:
            return np.array(self.sampled_blocks[first : first + count], dtype=np.int64)
        places = np.arange(first, first + count, dtype=np.int64)
        return self._by_cluster(places) if prod(self.cluster[1:]) > 1 else places

    def _by_cluster(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the blocks at these places of the cluster order: cluster by cluster, by rank."""
        cluster, rank = places // self.blocks_a_cluster, places % self.blocks_a_cluster
        block, before = np.zeros_like(places), 1
        for blocks, size in zip(self.grid, self.cluster, strict=True):
            block += (cluster % (blocks // size) * size + rank % size) * before
            cluster, rank, before = cluster // (blocks // size), rank // size, before * blocks
        return block

    @property
    def blocks_a_cluster(self) -> int:
        """Thread blocks per cluster: resident together, with distributed shared memory."""
        return prod(self.cluster)

    def wave(self, number: int, blocks: int) -> NDArray[np.int64]:
        """Return the grid numbers of the blocks of wave `number`, with `blocks` per wave."""
        first = number * blocks
        return self.numbers(first, min(blocks, self.executed - first))

    @property
    def blocks(self) -> int:
        """Thread blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]


class Sink(Protocol):
    """Takes rows, as NumPy arrays with the column types of traces/schema.py.

    The sink owns the arrays: the caller must not change them afterwards.
    """

    def put(self, table: str, **columns: Any) -> int:
        """Add rows to a table, columns by name; return the identifier of the first.

        A column may be one value for all rows. `paths` are flat columns and their `lengths`;
        `outside` is the out-of-bounds lanes, with the fields of schema.Outside.
        """


NUMBERED = {"patterns": "active", "paths": "lengths"}
"""Dictionary tables, and a column of each with a value per row."""


class NullSink:
    """A sink that drops every row, for a launch that is not recorded."""

    def __init__(self) -> None:
        self._next = dict.fromkeys(NUMBERED, 0)

    def put(self, table: str, **columns: Any) -> int:
        """Drop rows; number those of a dictionary, as a trace does."""
        first = self._next.get(table, 0)
        if table in NUMBERED:
            self._next[table] += len(columns[NUMBERED[table]])
        return first
