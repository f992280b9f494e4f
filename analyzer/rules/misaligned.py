"""Neighbouring words that begin beside a boundary: a transaction more for every request."""

from collections.abc import Iterator

from ..advice import Evidence, Finding
from ..why.sentence import stride

EXCESS = 1.1
"""The excess from which on it is worth a word: the odd edge of an array is not."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at loads and stores whose lanes follow one another without a gap."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        if stride(access.addresses) != f"stride {kind.width} bytes":
            continue
        cost, ideal = (
            evidence.of(access.pc, kind.prefix + name)
            for name in ("transactions", "ideal_transactions")
        )
        if ideal and cost > EXCESS * ideal:
            yield Finding(
                f"{kind.access}s begin beside a boundary: {cost} transactions where {ideal} would"
                " do",
                evidence.describe(access),
                "begin rows at a multiple of 128 bytes (cudaMallocPitch, padding), or shift the"
                " work so that warps begin there",
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
            )
