"""Repeated loads of the same addresses by a warp, of arrays that the kernel does not write.

The compiler loads again in each iteration of a loop if a store through another pointer may have
changed the value; `const` and `__restrict__` rule that out.
"""

from collections.abc import Iterator

import numpy as np

from ...traces.schema import LANES
from ..evidence.evidence import Evidence, Finding
from ..why.search import Access

TIMES = 8
"""Loads of the same address by a warp, on average, from which repeats are reported."""
PART = 0.02
"""Least part of all instructions for such a load."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check plain loads of arrays that the launch does not write."""
    warps = -(-evidence.profile.launch.threads // LANES)
    for access in evidence.worst:
        if (access.kind.space, access.kind.access) != ("global", "load"):
            continue
        slots = evidence.of(access.pc, "instructions")
        if slots < PART * evidence.total("instructions"):
            continue
        name = evidence.array_of(access)
        if not name or evidence.is_written(name):
            continue
        rows, distinct = _count(evidence, access)
        if rows < TIMES * warps * distinct:
            continue
        times = rows / (warps * distinct)
        yield Finding(
            f"each warp loads the same addresses of `{name}` {times:.3g} times",
            f"the first {rows:,} loads want {distinct:,} different sets of addresses, by blocks of"
            f" {warps} {'warp' if warps == 1 else 'warps'}",
            "load it once, before the loop, into a variable; where a store stands between, declare"
            f" `{name}` as const and all pointers as __restrict__, and the compiler does so",
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            saved=1 - 1 / times,
        )


def _count(evidence: Evidence, access: Access) -> tuple[int, int]:
    """Return the number of checked rows, and of those that differ in block or addresses."""
    rows = 0
    row_keys: set[bytes] = set()
    for batch, block in evidence.trials.rows(access.pc):
        rows += len(batch)
        what = np.where(batch.active, batch.addresses, -1)
        row_keys.update(map(bytes, np.column_stack((block, what))))
    return rows, max(1, len(row_keys))
