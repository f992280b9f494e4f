"""Occupancy limited by blocks per SM: they are too small to fill it."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..occupancy.occupancy import resident_text

LITTLE, WAVES = 0.5, 4
"""Largest reported part of an SM's warps, and least number of waves of the grid."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check what limits the resident blocks."""
    occupancy, launch = evidence.limited_by("blocks"), evidence.profile.launch
    if not occupancy:
        return
    capacity = occupancy.blocks * evidence.device.chip.sms
    if occupancy.active_warps < LITTLE * occupancy.max_warps and launch.blocks >= WAVES * capacity:
        yield Finding(
            f"small blocks leave room for {occupancy.active_warps} of {occupancy.max_warps} warps",
            resident_text(occupancy),
            f"launch larger blocks than of {launch.threads} threads: an SM holds"
            f" {occupancy.blocks} at"
            " most",
            effort=0,
        )
