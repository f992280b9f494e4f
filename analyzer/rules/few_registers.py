"""Occupancy limited by registers: at most half of an SM's warps fit."""

from collections.abc import Iterator

from ..advice.advice import Evidence, Finding

LITTLE = 0.5
KNOWN_SINCE = (3, 0)
"""For older devices nobody assembles any more, and other counts say little about theirs."""
GIVEN = "(given)"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at what limits the resident blocks."""
    facts = evidence.profile.raw.facts
    active, most, registers = (facts.get(k) for k in ("active_warps", "max_warps", "registers"))
    remark = next((r for r in evidence.profile.remarks if "limited by registers" in r), "")
    if evidence.device.capability < KNOWN_SINCE and GIVEN not in remark:
        return
    if active and most and remark and active <= LITTLE * most and evidence.fills_device():
        enough = evidence.fewer_for_a_block("registers", 1)
        more = f"; with {enough} an SM holds a block more" if enough else ""
        yield Finding(
            f"registers leave room for {active} of {most} warps",
            remark,
            f"use fewer than {registers} registers a thread: __launch_bounds__, --maxrregcount,"
            f" shorter lives of variables{more}; more work a thread may be as good",
        )
