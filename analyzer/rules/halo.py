"""A stencil's halo: edges of tiles that neighbouring blocks load again.

Reported where loads limit the launch and each block loads an address about once; repeated loads by
one block belong to the rule `reuse`. Addresses that all blocks load are no halo. The proof counts
the words that tiles twice as large in each direction would load.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Ints
from ...models.replay.rows.sites import number_rows
from ...traces.unique import sorted_unique
from ..evidence.evidence import Evidence, Finding, find_gain
from ..why.search import Access

ONCE, AGAIN = 1.5, 4.0
"""Most loads of an address by a block in its tile, and by all blocks together."""
SHARE, UNSHARED = 0.15, 0.05
"""Least halo part of the loads, and least part of addresses that only one block loads."""
LIMITS = ("L1 data", "L2", "issue slots")
TWICE = 1.1
"""DRAM reads per requested byte from which the caches did not keep the edges."""
MOST, WORTH = 64, 0.05
"""Most loads of an array that are checked, and least part of the least time to be gained."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Loaded words: `requested` by lanes, distinct per block (`tiles`), distinct per block of twice
    the size (`merged`), distinct overall (`differ`), and loaded by one block only (`unshared`).
    """

    requested: int
    tiles: int
    merged: int
    differ: int
    unshared: int

    @property
    def halo(self) -> float:
        """The part of the tiles that other tiles also have."""
        return 1 - self.differ / self.tiles

    @property
    def is_halo(self) -> bool:
        """Whether tiles overlap only at their edges, and larger tiles overlap less."""
        once = self.requested <= ONCE * self.tiles and self.tiles <= AGAIN * self.differ
        return once and self.halo >= SHARE and self.unshared >= UNSHARED * self.differ > 0


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the loads of each array together."""
    if evidence.profile.limited_by not in (*LIMITS, "DRAM"):
        return
    loads = defaultdict[str, list[Access]](list)
    for access in evidence.worst:
        if (access.kind.space, access.kind.access) == ("global", "load"):
            loads[evidence.array_of(access)].append(access)
    for name, accesses in loads.items():
        if not name or len(accesses) > MOST or not _may_gain(evidence, accesses):
            continue
        if not (tiles := _tiles(evidence, accesses)):
            continue
        only = (*LIMITS, *(["DRAM"] if _is_read_again(evidence, accesses, tiles) else []))
        if not tiles.is_halo or evidence.profile.limited_by not in only:
            continue
        saved = 1 - tiles.merged / tiles.tiles
        gain = find_gain(evidence, [(access.pc, saved) for access in accesses], only)
        if gain < WORTH * evidence.profile.bounds[0].ns:
            continue
        after = 1 - tiles.differ / tiles.merged
        for access in accesses:
            yield Finding(
                f"{100 * tiles.halo:.0f} % of what blocks load of `{name}` is halo: neighbouring"
                " blocks load it, too",
                f"blocks load {tiles.tiles:,} words in all, of which {tiles.differ:,} differ",
                "let each block take a larger tile, say each thread several results",
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
                f"tiles twice as large in each direction load {tiles.merged:,} words, of which"
                f" {100 * after:.0f} % are halo",
                saved=saved,
                only=only,
                effort=2,
            )


def _may_gain(evidence: Evidence, accesses: Sequence[Access]) -> bool:
    """Return whether these loads cost enough, and the first block loads its words about once."""
    gain = find_gain(evidence, [(access.pc, 1.0) for access in accesses], (*LIMITS, "DRAM"))
    if gain < WORTH * evidence.profile.bounds[0].ns:
        return False
    parts = [np.zeros(0, np.int64)]
    for access in accesses:
        for batch, block in islice(evidence.trials.rows(access.pc), 1):
            mine = block == block[0]
            parts.append(batch.addresses[mine][batch.active[mine]])
    words = np.concatenate(parts)
    return len(words) <= ONCE * len(np.unique(words))


def _tiles(evidence: Evidence, accesses: Sequence[Access]) -> Tiles | None:
    """Count the words that the blocks with recorded loads load."""
    blocks, addresses = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for access in accesses:
        for batch, block in evidence.trials.rows(access.pc):
            blocks.append(np.repeat(block, batch.active.sum(axis=1)))
            addresses.append(batch.addresses[batch.active])
    load_count = sum(map(len, addresses))
    if not load_count:
        return None
    address = np.concatenate(addresses)
    low = int(address.min())
    words, place = number_rows(address - low, int(address.max()) - low + 1)
    block = np.concatenate(blocks)
    tiles = sorted_unique(block * len(words) + place)
    block_counts = np.bincount(tiles % len(words))
    merged = sorted_unique(_in_twos(block, evidence.profile.launch.grid) * len(words) + place)
    return Tiles(load_count, len(tiles), len(merged), len(words), int((block_counts == 1).sum()))


def _in_twos(block: Ints, grid: Sequence[int]) -> Ints:
    """Map blocks to tiles of twice the size in each direction, numbered like their first block."""
    # In one dimension blocks 0 1 2 3 become 0 0 1 1.
    x, row = block % grid[0], block // grid[0]
    y, z = row % grid[1], row // grid[1]
    return ((z // 2 * grid[1]) + y // 2) * grid[0] + x // 2


def _is_read_again(evidence: Evidence, accesses: Sequence[Access], tiles: Tiles) -> bool:
    """Return whether DRAM delivers the edges more than once."""
    read, request_bytes = (
        sum(evidence.of(access.pc, f"global_load_{name}") for access in accesses)
        for name in ("dram_bytes_read", "bytes_asked")
    )
    return read > TWICE * request_bytes * tiles.differ / tiles.requested
