"""Lanes of a warp that lie apart in global memory: far more transactions than their bytes need."""

from collections.abc import Iterator

from ..advice import Evidence, Finding
from ..why.sentence import stride

EXCESS = 2
"""How many times as many transactions as would do make it worth a word."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at every plain load and store of global memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        if stride(access.addresses) == f"stride {kind.width} bytes":
            continue
        cost, ideal = (
            evidence.of(access.pc, kind.prefix + name)
            for name in ("transactions", "ideal_transactions")
        )
        if ideal and cost >= EXCESS * ideal:
            yield Finding(
                f"{kind.access}s of neighbouring lanes lie apart: {cost} transactions where"
                f" {ideal} would do",
                evidence.describe(access),
                "let neighbouring lanes take neighbouring words: exchange the indices, keep an"
                " array for each field, or pass tiles through shared memory",
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
            )
