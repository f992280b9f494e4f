"""Occupancy limited by registers: at most half of an SM's warps fit."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..occupancy.occupancy import resident_text

LITTLE = 0.5
KNOWN_SINCE = (3, 0)
"""No current assembler supports older devices, and other register counts do not carry over."""
CONFIGURED = "given"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check what limits the resident blocks."""
    occupancy = evidence.limited_by("registers")
    if not occupancy or (
        evidence.device.capability < KNOWN_SINCE and occupancy.registers_from != CONFIGURED
    ):
        return
    active, most = occupancy.active_warps, occupancy.max_warps
    if active <= LITTLE * most and evidence.fills_device():
        enough = evidence.fewer_for_a_block("registers", 1)
        more = f"; with {enough} an SM holds a block more" if enough else ""
        yield Finding(
            f"registers leave room for {active} of {most} warps",
            resident_text(occupancy),
            f"use fewer than {occupancy.registers} registers a thread: __launch_bounds__,"
            f" --maxrregcount, shorter lives of variables{more}; more work a thread may be as good",
            effort=0,
        )
