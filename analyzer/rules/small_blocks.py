"""Occupancy limited by blocks an SM: they are too small to fill it."""

from collections.abc import Iterator

from ..advice.advice import Evidence, Finding

LITTLE, WAVES = 0.5, 4
"""The part of an SM's warps, and how often the grid fills the device, that make it worth a word."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at what limits the resident blocks."""
    facts, launch = evidence.profile.raw.facts, evidence.profile.launch
    active, most, blocks = (facts.get(k) for k in ("active_warps", "max_warps", "resident_blocks"))
    remark = next((r for r in evidence.profile.remarks if "limited by blocks" in r), "")
    if not (active and most and blocks and remark):
        return
    room = blocks * (facts.get("sms") or 0)
    if active < LITTLE * most and launch.blocks >= WAVES * room:
        yield Finding(
            f"small blocks leave room for {active} of {most} warps",
            remark,
            f"launch larger blocks than of {launch.threads} threads: an SM holds {blocks} at most",
        )
