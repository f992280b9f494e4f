"""Blocks whose last warp is partly empty: its idle lanes cost as much as busy ones."""

from collections.abc import Iterator

from ...traces.schema import LANES
from ..advice import Evidence, Finding

IDLE = 0.1
"""The part of all lanes that makes it worth a word."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at the block's size."""
    launch = evidence.profile.launch
    lanes = launch.warps * LANES
    idle = lanes - launch.threads
    if launch.threads > LANES and idle > IDLE * lanes:
        last = launch.threads % LANES
        yield Finding(
            f"{idle} of {lanes} lanes of a block are idle",
            f"{launch.threads} threads a block: the last of {launch.warps} warps has {last}",
            f"launch blocks of a multiple of {LANES} threads",
        )
