"""Placement of blocks on SMs. A profiler of 1.x counted one cluster, which is a group of SMs.

Blocks go to clusters in turn: with c clusters, block b goes to cluster b mod c, and within a
cluster to its SMs in turn. The profiled cluster is the first: it receives blocks 0, c, 2c, ... A
chip's scheduler is less even, so the user may give the number of blocks that it received: it takes
that many of these, and if there are not enough, then those of the next cluster (1, c + 1, ...), and
so on. With k SMs per cluster, its first SM has every k-th of its blocks.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.schema import LANES, Sample
from ..interface.model import Ints
from .gpcs import place_clusters, place_runs, sizes_of

SCOPE_NAMES = ("sm", "cluster", "rest")
"""The scopes that `Placement.scope` numbers: the profiled SM, the rest of its cluster, the rest."""

GROUPS = 20
"""The most groups of a sample: their spread gives the error of sampling."""


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of SMs and of SMs per cluster, and the speed and size of memory.

    `clock_mhz` is the maximum clock of the cores. `memory_bits`, `memory_mhz` and `l2_bytes` are
    what CUDA reports: the bus width, a clock at which the bus moves two bits per cycle and line
    whatever the kind of memory, and the size of L2 (a part of it holds no lines). A launch reads
    `launch_bytes` of its own, and its code `code_ahead` bytes beyond the end, up to `code_window`
    bytes from the beginning (`fetch_code`). `host_gb_per_s` is the peak rate of the link to the
    host, each way; 0 if the host's memory is the device's own. Elsewhere 0 is unknown. `gpcs` are
    the SMs of each GPC, of the first of which `gpc_apart` are filled first (`gpcs.py`).
    """

    sms: int
    sms_per_cluster: int
    memory_gb_per_s: float
    memory_bytes: int = 0
    clock_mhz: int = 0
    memory_bits: int = 0
    memory_mhz: int = 0
    l2_bytes: int = 0
    code_window: int = 0
    code_ahead: int = 0
    launch_bytes: int = 0
    host_gb_per_s: float = 0.0
    gpcs: tuple[int, ...] = ()
    gpc_apart: int = 0

    def __post_init__(self) -> None:
        """Refuse clusters of unequal size and negative numbers."""
        if self.memory_gb_per_s <= 0 or min(self.memory_bytes, self.clock_mhz) < 0:
            raise CutraceError(
                f"memory of {self.memory_bytes} bytes at {self.memory_gb_per_s} GB/s, "
                f"{self.clock_mhz} MHz: expected numbers above zero"
            )
        if self.host_gb_per_s < 0:
            raise CutraceError(f"host_gb_per_s = {self.host_gb_per_s}: expected 0 or more")
        if min(self.memory_bits, self.memory_mhz, self.l2_bytes) < 0:
            raise CutraceError(
                f"memory_bits = {self.memory_bits}, memory_mhz = {self.memory_mhz}, l2_bytes = "
                f"{self.l2_bytes}: expected numbers above zero"
            )
        if min(self.gpcs, default=1) < 1 or not 0 <= self.gpc_apart <= sum(self.gpcs[:1]):
            raise CutraceError(
                f"gpcs = {list(self.gpcs)}, gpc_apart = {self.gpc_apart}: expected SMs of each "
                "GPC, and a part of the first"
            )
        if self.sms < 1 or self.sms_per_cluster < 1 or self.sms % self.sms_per_cluster:
            raise CutraceError(
                f"{self.sms} SMs in clusters of {self.sms_per_cluster}: expected a multiple, not 0"
            )

    def fetch_code(self, size: int) -> int:
        """Return the bytes that a launch with `size` bytes of machine code reads from memory for
        itself, if no cache has them; 0 if that is unknown.

        The code is read once however many SMs run it: all of it, since it is fetched ahead of what
        runs, and a little more. What does not run is read, too, within the window.
        """
        if not (self.launch_bytes and size):
            return 0
        return max(size, min(size + self.code_ahead, self.code_window)) + self.launch_bytes

    @property
    def clusters(self) -> int:
        """The number of clusters of the chip."""
        return self.sms // self.sms_per_cluster


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """The blocks of a sample, (n,), rising: each represents `weight` blocks, and belongs to a
    `group`.

    Group 0 has the blocks at the ends of the grid, perhaps none. The others take blocks in turn, so
    that each is spread over the grid.
    """

    block: Ints
    weight: Ints
    group: Ints

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.group.max()) + 1

    def find(self, block: Ints) -> Ints:
        """Return the index in the sample of each block; all must be in it."""
        return np.minimum(np.searchsorted(self.block, block), len(self.block) - 1)


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of one launch on one chip; `profiled` is the number of blocks of the profiled
    cluster.

    The scopes of a sample are its groups. `shape` are the grid and the cluster, which may be ().
    """

    chip: Chip
    blocks: int
    profiled: int
    sampling: Sampling | None = None
    shape: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the scopes."""
        if self.sampling is None:
            return SCOPE_NAMES
        return tuple(map(str, range(self.sampling.groups)))

    def rank(self, block: Ints) -> Ints:
        """Return each block's rank in the profiled cluster's order of blocks."""
        share, remainder = divmod(self.blocks, self.chip.clusters)
        column = block % self.chip.clusters
        return column * share + np.minimum(column, remainder) + block // self.chip.clusters

    def weight(self, block: Ints) -> Ints | None:
        """Return the number of blocks that each represents, (n,); None if each represents itself
        only.
        """
        if self.sampling is None:
            return None
        return self.sampling.weight[self.sampling.find(block)]

    def times(self, block: Ints) -> Ints:
        """Return (n, scopes): the weight of each block's rows in each scope."""
        times: Ints = (self.scope(block)[:, None] == np.arange(len(self.names))).astype(np.int64)
        weight = self.weight(block)
        if weight is not None:
            times *= weight[:, None]
        return times

    def scope(self, block: Ints) -> NDArray[np.uint8]:
        """Return the scope of each block, an index in `names`."""
        if self.sampling is not None:
            groups: NDArray[np.uint8] = self.sampling.group.astype(np.uint8)
            return groups[self.sampling.find(block)]
        rank = self.rank(block)
        other = np.where(rank < self.profiled, 1, 2)
        return np.where((other == 1) & (rank % self.chip.sms_per_cluster == 0), 0, other).astype(
            np.uint8
        )

    def cluster(self, block: Ints) -> Ints:
        """Return the cluster of each block: 0 is the profiled one."""
        clusters = self.chip.clusters
        own = block % clusters
        left_over = 1 + block // clusters % max(clusters - 1, 1)
        elsewhere = np.where(own == 0, left_over % clusters, own)
        return np.where(self.rank(block) < self.profiled, 0, elsewhere)

    def sm(self, block: Ints) -> Ints:
        """Return the SM of each block: 0 is the profiled one."""
        place = np.where(
            self.rank(block) < self.profiled, self.rank(block), block // self.chip.clusters
        )
        cores = self.chip.sms_per_cluster
        return np.asarray(self.cluster(block) * cores + place % cores, np.int64)

    def gpc(self) -> Ints:
        """Return the GPC of each block, (blocks,)."""
        sizes = sizes_of(self.chip.sms, self.chip.gpcs)
        apart = self.chip.gpc_apart if sizes == self.chip.gpcs else 0
        grid, cluster = self.shape
        if not cluster:
            return place_runs(sizes, apart, self.blocks)
        block, number, step = np.arange(self.blocks), np.zeros(self.blocks, np.int64), 1
        for extent, many in zip(grid, cluster, strict=True):
            number += block % extent // many * step
            block, step = block // extent, step * (extent // many)
        return place_clusters(sizes, apart, step, prod(cluster))[number]

    def count_scopes(self) -> tuple[int, ...]:
        """Return the number of blocks of each scope, represented ones included, in the order of
        `names`.
        """
        if self.sampling is not None:
            weights = np.bincount(self.sampling.group, self.sampling.weight, self.sampling.groups)
            return tuple(weights.astype(np.int64).tolist())
        on_sm, peer_blocks = self.count_profiled()
        return on_sm, peer_blocks, self.blocks - self.profiled

    def count_profiled(self) -> tuple[int, int]:
        """Return the number of blocks of the profiled SM, and of the rest of its cluster."""
        on_sm = -(-self.profiled // self.chip.sms_per_cluster)
        return on_sm, self.profiled - on_sm


def place(
    chip: Chip,
    blocks: int,
    profiled: int | None = None,
    sample: Sample | None = None,
    shape: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> Placement:
    """Place a launch's blocks; `profiled` overrides the number of blocks of the profiled cluster.

    An empty `sample` means that the trace has all blocks. `shape` are the grid and the cluster.
    """
    share = -(-blocks // chip.clusters)
    share = min(blocks, share if profiled is None else profiled)
    return Placement(chip, blocks, share, divide_sample(sample) if sample else None, shape)


def divide_sample(sample: Sample) -> Sampling | None:
    """Divide the blocks of a sample into groups; None if it is empty."""
    if not sample.blocks:
        return None
    block = np.array(sample.blocks, np.int64)
    inside = ~np.isin(block, sample.ends)
    count = int(inside.sum())
    group = np.zeros(len(block), np.int64)
    group[inside] = 1 + np.arange(count) % min(GROUPS, max(count, 1))
    return Sampling(block, np.array(sample.weights, np.int64), group)


@dataclass(frozen=True, slots=True)
class Waves:
    """The waves of a launch on a chip that holds `blocks_per_wave` at once.

    `tail_blocks` are the blocks of the last of `waves`, if it is not full (else 0).
    """

    blocks_per_wave: int
    waves: int
    tail_blocks: int


def count_waves(chip: Chip, blocks: int, resident: int) -> Waves | None:
    """Count the waves of a launch, with `resident` blocks per SM; None if none fits."""
    if not resident:
        return None
    at_once = chip.sms * resident
    return Waves(at_once, -(-blocks // at_once), blocks % at_once)


def count_padding_lanes(blocks: int, threads: int) -> int:
    """Count the lanes of a launch without a thread: those at the end of each block's last warp."""
    return blocks * (-threads % LANES)
