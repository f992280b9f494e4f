"""Tiling: the warps of a block load the same global addresses many times.

A tile in shared memory or registers would be loaded once. Reported where DRAM, L2 or L1 limits the
launch, or issue slots of which such loads take a large part. A few addresses that all lanes read
are a broadcast and not reported.
"""

from collections.abc import Iterator

import numpy as np

from ...models.replay.rows.lanes import NONE, sort_distinct
from ...traces.unique import sorted_unique
from ..evidence.evidence import Evidence, Finding
from ..why.search import Access

TIMES = 8
"""Loads of each address by a block, on average, from which a tile is advised."""
MOST = 64
"""Most loads that are checked, those that move most: each is a pass over the trace."""
FEW = 32
"""Fewest addresses of a block that make a tile."""
BYTES = ("DRAM", "L2", "L1 data")
SLOTS, PART = "issue slots", 0.125
"""If issue slots limit a launch, the part of them from which repeated loads are reported."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check plain loads of global memory if bytes limit the launch."""
    if evidence.profile.limited_by not in (*BYTES, SLOTS):
        return
    loads = [a for a in evidence.worst if (a.kind.space, a.kind.access) == ("global", "load")]
    loads = sorted(loads, key=lambda load: -evidence.share(load, "bytes_moved"))[:MOST]
    uses = [(access, *_of_a_block(evidence, access)) for access in loads]
    repeats = [each for each in uses if each[2] >= FEW and each[1] >= TIMES * each[2]]
    slots = sum(evidence.of(access.pc, "instructions") for access, _, _ in repeats)
    if evidence.profile.limited_by == SLOTS and slots < PART * evidence.total("instructions"):
        return
    for access, requests, distinct in repeats:
        name = evidence.array_of(access)
        tile = f"a tile of `{name}`" if name else "a tile"
        yield Finding(
            f"the warps of a block load the same addresses {requests / distinct:.3g} times",
            f"one block asks {requests:,} times for {distinct:,} addresses",
            f"let each block bring {tile} into shared memory once, and each thread compute"
            " several results from values that it keeps in registers",
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            saved=1 - distinct / requests,
            effort=2,
        )


def _of_a_block(evidence: Evidence, access: Access) -> tuple[int, int]:
    """Return one block's addresses, summed over its requests, and the distinct ones."""
    first: int | None = None
    parts = [np.zeros(0, np.int64)]
    for batch, block in evidence.trials.rows(access.pc):
        first = int(block[0]) if first is None else first
        mine = np.flatnonzero(block == first)
        addresses = sort_distinct(batch.addresses[mine], batch.active[mine])
        parts.append(addresses[addresses != NONE])
    every = np.concatenate(parts)
    return len(every), len(sorted_unique(every))
