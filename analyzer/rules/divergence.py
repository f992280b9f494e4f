"""Branches that send neighbouring lanes of a warp different ways: by an even or odd number, say.

Only a pattern that repeats every few lanes is told: then threads can be renumbered so that whole
warps go one way. A warp at the edge of its data diverges once and is left alone.
"""

from collections.abc import Iterator

import numpy as np

from ..advice import Evidence, Finding

PERIODS = (2, 4, 8, 16)
FULL = (1 << 32) - 1


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at the branches that split whole warps by a repeating pattern."""
    splits = dict(_periodic(evidence))
    for row in evidence.sums.filter(evidence.sums["divergent_branches"] > 0).rows(named=True):
        block = evidence.trace.instructions()["block"][row["pc"]].as_py()
        if block in splits and row["branches"]:
            taken, period = splits[block]
            yield Finding(
                f"{row['divergent_branches']} of {row['branches']} branches split their warp,"
                f" by a pattern of {period} lanes",
                f"lanes {taken:#010x} of a full warp take the branch",
                "number the work so that the threads of a warp go one way: whole warps for each"
                " case, not every other thread",
                int(row["pc"]),
            )


def _periodic(evidence: Evidence) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield basic blocks whose branch splits a full warp periodically: lanes taken, the period."""
    paths = evidence.trace.paths()
    flat = {
        name: paths[name].combine_chunks().flatten().to_numpy()
        for name in ("blocks", "active", "taken", "targets")
    }
    split = (flat["targets"] > 1) & (flat["active"] == FULL)
    pairs = np.stack([flat["blocks"][split], flat["taken"][split]], axis=1)
    for block, taken in np.unique(pairs, axis=0).tolist():
        for period in PERIODS:
            if ((taken >> period) | (taken << (32 - period))) & FULL == taken:
                yield block, (taken, period)
                break
