"""Occupancy limited by shared memory: at most half of an SM's warps fit."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..occupancy.occupancy import resident_text

LITTLE, BYTES = 0.5, 128
"""Largest reported part of the warps, and the allocation unit of shared memory on 7.0 and newer."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check what limits the resident blocks."""
    occupancy, launch = evidence.limited_by("shared"), evidence.profile.launch
    if (
        occupancy
        and occupancy.active_warps <= LITTLE * occupancy.max_warps
        and evidence.fills_device()
    ):
        enough = evidence.fewer_for_a_block("shared", BYTES)
        more = f" (with {enough:,} an SM holds a block more)" if enough else ""
        yield Finding(
            f"shared memory leaves room for {occupancy.active_warps} of {occupancy.max_warps}"
            " warps",
            resident_text(occupancy),
            f"use less than {launch.shared_static + launch.shared_dynamic:,} bytes a block{more}:"
            " smaller tiles, narrower types, or more threads that share one",
        )
