"""Lanes of a warp that lie apart in global memory: far more transactions than their bytes need."""

from collections.abc import Iterator

from ..advice import Evidence, Finding
from ..why.sentence import stride

EXCESS = 2
"""How many times as many transactions as would do make it worth a word."""
FEW, SHARED = "one address", 2
"""Lanes that share one address or two are served by so many transactions: that is a broadcast."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at every plain load and store of global memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        found = stride(access.addresses)
        if found == f"stride {kind.width} bytes" or (FEW in found and access.cost <= SHARED):
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
