"""Occupancy limited by warps: the block's size does not divide an SM's warps, so places stay empty.

Ranked after advice with a gain, as other limits of occupancy are.
"""

from collections.abc import Iterator
from dataclasses import replace

from ...models.analyses.occupancy import occupancy
from ..evidence.evidence import Evidence, Finding
from ..occupancy.occupancy import resident_text, sizes_for

MOST = 0.75
"""Largest part of an SM's warps at which the size is reported."""
LEAST = 128
"""Smallest block that is advised."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look for a smaller block with which an SM holds more warps."""
    resident, launch = evidence.limited_by("warps"), evidence.profile.launch
    if not resident or resident.active_warps > MOST * resident.max_warps:
        return
    if not evidence.fills_device():
        return
    need = resident.need
    for threads in reversed(sizes_for(launch, evidence.device.limits)):
        if not LEAST <= threads < launch.threads:
            continue
        shared = need.shared * threads // launch.threads
        other = occupancy(evidence.device.limits, replace(need, threads=threads, shared=shared))
        if other.active_warps > resident.active_warps:
            yield Finding(
                f"blocks of {launch.threads} threads leave room for {resident.active_warps} of"
                f" {resident.max_warps} warps",
                resident_text(resident),
                f"launch blocks of {threads} threads: an SM then holds {other.active_warps} warps",
                effort=0,
            )
            return
