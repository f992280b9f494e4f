"""Occupancy limited by shared memory: at most half of an SM's warps fit."""

from collections.abc import Iterator

from ..advice.advice import Evidence, Finding

LITTLE, BYTES = 0.5, 128
"""The part of the warps, and the steps in which shared memory is handed out on 7.0 and newer."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at what limits the resident blocks."""
    facts, launch = evidence.profile.raw.facts, evidence.profile.launch
    active, most = (facts.get(k) for k in ("active_warps", "max_warps"))
    remark = next((r for r in evidence.profile.remarks if "limited by shared" in r), "")
    if active and most and remark and active <= LITTLE * most and evidence.fills_device():
        enough = evidence.fewer_for_a_block("shared", BYTES)
        more = f" (with {enough:,} an SM holds a block more)" if enough else ""
        yield Finding(
            f"shared memory leaves room for {active} of {most} warps",
            remark,
            f"use less than {launch.shared_static + launch.shared_dynamic:,} bytes a block{more}:"
            " smaller tiles, narrower types, or more threads that share one",
        )
