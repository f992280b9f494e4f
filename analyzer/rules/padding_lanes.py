"""Blocks with a padded last warp: lanes without a thread cost as much as busy ones."""

from collections.abc import Iterator

from ...traces.schema import LANES
from ..evidence.evidence import Evidence, Finding

PADDING = 0.1
"""Part of all lanes from which padding is reported."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the block's size; a launch that fits in one warp gives no finding."""
    launch = evidence.profile.launch
    lanes = launch.warps * LANES
    padding = lanes - launch.threads
    if launch.threads * launch.blocks > LANES and padding > PADDING * lanes:
        last = launch.threads % LANES
        warps = f"the last of {launch.warps} warps" if launch.warps > 1 else "its only warp"
        yield Finding(
            f"{padding} of {lanes} lanes of a block have no thread",
            f"{launch.threads} threads a block: {warps} has {last}",
            f"launch blocks of a multiple of {LANES} threads",
            effort=0,
        )
