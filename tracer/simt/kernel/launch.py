"""A launch, and the sink of its rows."""

from collections.abc import Callable
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from .chip import DEFAULT_CHIP, EPOCH, LAUNCH_NANOSECONDS, Chip
from .run_options import DEFAULTS, RunOptions


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
