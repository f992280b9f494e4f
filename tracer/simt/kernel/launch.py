"""What the engine is asked to run, and where its rows go."""

from collections.abc import Callable
from dataclasses import field
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....base.options import option
from .chip import DEFAULT_CHIP, EPOCH, LAUNCH_NANOSECONDS, Chip

ENGINES = ("auto", "array", "compiled")
"""What runs a launch: arrays over many warps, compiled basic blocks, or what suits the kernel."""

BOUNDS = ("strict", "report")
"""What an access of global memory outside of every allocation is: a fault; or, where memory is
mapped, done as a chip does it, and counted."""

MOST_INSTRUCTIONS = 1 << 31
"""Steps of a warp are 32 bits in a trace."""

MOST_THREADS = (2**31 - 1) * 65535 * 65535 * 1024
"""Threads of the largest launch that any device takes."""


@dataclass(slots=True)
class Ran:
    """How much has been run: `launches` to their end, and of one more the `part` from 0 to 1.

    `blocks` are those of each launch there will be, where that is known before.
    """

    launches: int = 0
    part: float = 0.0
    blocks: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """The part of all thread blocks, from 0 to 1; 0 where nobody knows how many there are.

        >>> Ran(launches=1, part=0.5, blocks=(10, 20)).share
        0.6666666666666666
        """
        ended, running = self.blocks[: self.launches], self.blocks[self.launches :]
        return (sum(ended) + self.part * sum(running[:1])) / max(1, sum(self.blocks))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a launch is run: each field but `ran` is an option of `cutrace record` and of `Session`.

    `engine` is one of ENGINES. `bounds` is one of BOUNDS; None is strict, unless who runs the
    kernel maps memory. In `ran` the engine notes how far it is. Raises `CutraceError` for a value
    that makes no sense.
    """

    max_instructions: int = option(
        1 << 28, "Stop a kernel when a warp has run this many; else 2**28.", "N"
    )
    check_uninitialized: bool = option(False, "Stop a kernel that loads what nobody wrote.")
    max_threads: int = option(
        1 << 28, "Refuse a launch of more threads than this; else 2**28.", "N"
    )
    engine: str = option(
        "auto", "What runs the kernel, to the same trace; else what suits it.", "array|compiled"
    )
    bounds: str | None = option(
        None,
        "What it is to access global memory outside of every array: a fault (strict), or"
        " as on a chip, which maps memory in pages of 2 MB, and told (report).",
        "strict|report",
    )
    ran: Ran = field(default_factory=Ran, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.bounds not in (None, *BOUNDS):
            expected = " or ".join(BOUNDS)
            raise CutraceError(f"there are no bounds `{self.bounds}`, expected {expected}")
        if self.engine not in ENGINES:
            expected = ", ".join(ENGINES)
            raise CutraceError(f"there is no engine `{self.engine}`, expected one of {expected}")
        _check_range("max_instructions", self.max_instructions, MOST_INSTRUCTIONS, "for each warp")
        _check_range("max_threads", self.max_threads, MOST_THREADS, "for each launch")


def _check_range(name: str, value: int, most: int, of_what: str) -> None:
    if not 1 <= value <= most:
        raise CutraceError(f"{name} is {value}, expected 1 to {most} {of_what}")


DEFAULTS = RunOptions()


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: grid and block in blocks and threads, dynamic shared memory in bytes.

    `arguments` holds, for each parameter of the kernel, its bytes (little-endian, the parameter's
    own size). `output` takes what `printf` writes. Messages call
    the kernel `name`, or as its PTX does. Only the blocks `chosen`, rising, are run, if any are
    chosen. `cluster` is how many blocks
    form a cluster, along each axis; () where none were asked for: each block is one. It is launch
    `number` of its session, and an SM of the `chip` that it sees runs `resident` blocks at once.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_dynamic: int
    arguments: tuple[bytes, ...]
    output: Callable[[str], None]
    options: RunOptions = DEFAULTS
    name: str = ""
    chosen: tuple[int, ...] = ()
    cluster: tuple[int, int, int] | tuple[()] = ()
    number: int = 1
    chip: Chip = DEFAULT_CHIP
    resident: int = 1

    @property
    def begin(self) -> int:
        """When it begins, in nanoseconds of `%globaltimer`."""
        return EPOCH + self.number * LAUNCH_NANOSECONDS

    @property
    def executed(self) -> int:
        """Thread blocks that are run."""
        return len(self.chosen) or self.blocks

    def numbers(self, first: int, count: int) -> NDArray[np.int64]:
        """Return the numbers in the grid of `count` blocks that are run, from the `first` on."""
        if self.chosen:
            return np.array(self.chosen[first : first + count], dtype=np.int64)
        places = np.arange(first, first + count, dtype=np.int64)
        return self._by_cluster(places) if prod(self.cluster[1:]) > 1 else places

    def _by_cluster(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the blocks at these places of an order in which each cluster's follow each other,
        by rank."""
        cluster, rank = places // self.blocks_a_cluster, places % self.blocks_a_cluster
        block, before = np.zeros_like(places), 1
        for blocks, size in zip(self.grid, self.cluster, strict=True):
            block += (cluster % (blocks // size) * size + rank % size) * before
            cluster, rank, before = cluster // (blocks // size), rank // size, before * blocks
        return block

    @property
    def blocks_a_cluster(self) -> int:
        """Thread blocks that are resident together and share their shared memory."""
        return prod(self.cluster)

    def wave(self, number: int, blocks: int) -> NDArray[np.int64]:
        """Return the numbers in the grid of the wave of this number, of so many `blocks` each."""
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
    """Takes rows, as NumPy arrays with the column types of traces/schema.py: they are the sink's
    from then on, and nobody changes them."""

    def put(self, table: str, **columns: Any) -> int:
        """Add rows to a table, its columns by name; return the identifier of the first.

        A column may be one value for all rows. `paths` are flat columns and their `lengths`;
        `outside` is what lanes did outside of every allocation, the fields of schema.Outside.
        """


NUMBERED = {"patterns": "active", "paths": "lengths"}
"""Dictionaries, and a column of each with a value a row."""


class Nowhere:
    """A sink that drops every row, for a launch that is run and not recorded."""

    def __init__(self) -> None:
        self._next = dict.fromkeys(NUMBERED, 0)

    def put(self, table: str, **columns: Any) -> int:
        """Drop rows; number those of a dictionary, as a trace does."""
        first = self._next.get(table, 0)
        if table in NUMBERED:
            self._next[table] += len(columns[NUMBERED[table]])
        return first
