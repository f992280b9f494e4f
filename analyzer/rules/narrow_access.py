"""Narrow accesses: threads load or store one or two bytes each, in rows.

A warp's request of bytes moves one sector, and a request of 16 bytes a lane 16: the work of the
load-store unit, and of launching threads, is per request. Ranked by its gain; lanes whose bytes are
no row are the matter of another rule.
"""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..why.search import Access
from ..why.sentence import stride

WIDEST, WORD = 2, 4
"""Widest access that is reported, and the width to which its requests are widened."""
LEAST = 4096
"""Fewest requests of an instruction: fewer threads cost little to launch."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check plain loads and stores of global memory by rows of bytes."""
    for access in evidence.worst:
        kind = access.kind
        plain = kind.space == "global" and kind.access in ("load", "store")
        if not plain or kind.width > WIDEST or not _is_row(access):
            continue
        if evidence.of(access.pc, f"{kind.prefix}requests") < LEAST:
            continue
        words = WORD // kind.width
        yield Finding(
            f"{kind.access}s of {kind.width} byte{'s' * (kind.width > 1)} by each thread",
            evidence.describe(access),
            f"let each thread {kind.access} {words} neighbours at once, or more (uchar4, uint4):"
            f" a request then moves {words} times as much",
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            saved=1 - 1 / words,
            only=("issue slots", "ADU pipe", "launching blocks"),
        )


def _is_row(access: Access) -> bool:
    return stride(access.addresses).step == access.kind.width
