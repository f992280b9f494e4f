"""Blocks whose last warp is partly empty: its idle lanes cost as much as busy ones."""

from collections.abc import Iterator

from ...traces.schema import LANES
from ..advice import Evidence, Finding

IDLE = 0.1
"""The part of all lanes that makes it worth a word."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at the block's size; a launch that would fit in one warp is what it is."""
    launch = evidence.profile.launch
    lanes = launch.warps * LANES
    idle = lanes - launch.threads
    if launch.threads * launch.blocks > LANES and idle > IDLE * lanes:
        last = launch.threads % LANES
        warps = f"the last of {launch.warps} warps" if launch.warps > 1 else "its only warp"
        yield Finding(
            f"{idle} of {lanes} lanes of a block are idle",
            f"{launch.threads} threads a block: {warps} has {last}",
            f"launch blocks of a multiple of {LANES} threads",
        )
