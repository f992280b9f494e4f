"""Place: which block runs where. Clusters are what a profiler of 1.x watched: groups of SMs.

Blocks go to clusters in turn: with c clusters, block b to cluster b mod c, and inside a cluster
to its SMs in turn. The profiled cluster is the first: it receives blocks 0, c, 2c, ... A chip's
own scheduler is not so even, so the user may say how many blocks it received: that many of these,
and if there are not enough, those of the next cluster after them (1, c + 1, ...), and so on. Its
first SM has every k-th of its blocks, with k SMs a cluster.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import CutraceError
from .seam import Ints

SCOPE_NAMES = ("sm", "cluster", "rest")
"""What `Placement.scope` numbers: the profiled SM, the rest of its cluster, the rest."""


@dataclass(frozen=True, slots=True)
class Chip:
    """How many SMs there are and how many share a cluster; how fast and large the memory is.

    `clock_mhz` is the cores' clock at best. What is 0 is not known.
    """

    sms: int
    sms_per_cluster: int
    memory_gb_per_s: float
    memory_bytes: int = 0
    clock_mhz: int = 0

    def __post_init__(self) -> None:
        """Refuse clusters that are not all alike."""
        if self.sms < 1 or self.sms_per_cluster < 1 or self.sms % self.sms_per_cluster:
            raise CutraceError(
                f"{self.sms} SMs in clusters of {self.sms_per_cluster}: expected a multiple"
            )

    @property
    def clusters(self) -> int:
        """Clusters of the chip."""
        return self.sms // self.sms_per_cluster


@dataclass(frozen=True, slots=True)
class Placement:
    """The blocks of one launch on one chip; `profiled` is the blocks of the profiled cluster."""

    chip: Chip
    blocks: int
    profiled: int

    def rank(self, block: Ints) -> Ints:
        """Return each block's place in the order in which the profiled cluster takes them."""
        share, rest = divmod(self.blocks, self.chip.clusters)
        column = block % self.chip.clusters
        return column * share + np.minimum(column, rest) + block // self.chip.clusters

    def scope(self, block: Ints) -> NDArray[np.uint8]:
        """Return an index in SCOPE_NAMES for each block."""
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

    def count_scopes(self) -> tuple[int, int, int]:
        """Return how many blocks each scope has, in the order of SCOPE_NAMES."""
        on_sm = -(-self.profiled // self.chip.sms_per_cluster)
        return on_sm, self.profiled - on_sm, self.blocks - self.profiled

    def blocks_of_sms(self) -> Ints:
        """Return how many blocks each SM receives, (sms,)."""
        return np.bincount(self.sm(np.arange(self.blocks)), minlength=self.chip.sms)


def place(chip: Chip, blocks: int, profiled: int | None = None) -> Placement:
    """Place a launch's blocks; `profiled` is what the profiled cluster is said to have received."""
    share = -(-blocks // chip.clusters)
    return Placement(chip, blocks, min(blocks, share if profiled is None else profiled))
