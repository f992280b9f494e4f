"""Uncoalesced accesses: the lanes of a warp need far more transactions than their bytes do."""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..why.search import Access
from ..why.sentence import Stride, stride
from . import misaligned, texture

EXCESS = 2
"""Transactions per ideal one from which an access is reported."""
SHARED = 4
"""Most transactions of a broadcast: lanes that share a few addresses."""
WIDEST = 16
"""Most bytes that a lane loads at once: wider elements take two loads that share sectors."""
FIELDS = 64
"""Bytes of the largest structure whose fields may be split into arrays."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check every plain load and store of global memory."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        lane_stride = stride(access.addresses)
        if misaligned.follows(evidence, access) or (
            lane_stride.step == 0 and access.cost <= SHARED
        ):
            continue
        cost, ideal = (
            evidence.of(access.pc, kind.prefix + name)
            for name in ("transactions", "ideal_transactions")
        )
        if (kind.width == WIDEST and cost <= EXCESS * ideal) or texture.is_near(evidence, access):
            continue
        if ideal and cost >= EXCESS * ideal and texture.helps(evidence, access) is None:
            yield Finding(
                f"an uncoalesced {kind.access}: {cost:,} transactions, {ideal:,} needed",
                evidence.describe(access),
                change := _change(evidence, access, lane_stride),
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
                effort=0 if change == SWAP else 1,
            )


NEIGHBOURS = "let neighbouring lanes take neighbouring words: "
SWAP = f"{NEIGHBOURS}exchange the indices, or pass tiles through shared memory"
TILES = (
    f"{NEIGHBOURS}pass tiles through shared memory (exchanged indices would scatter the {{others}}"
    " instead)"
)
GATHER = (
    f"{NEIGHBOURS}sort what they look up, let a warp share a row of it, or load it into shared"
    " memory first if it fits"
)
SCATTER = f"{NEIGHBOURS}sort what they store, or put it in order in shared memory first"
OFTEN = 0.5
"""Requests of a row of lanes, relative to those of the uncoalesced access, that exchanged indices
would scatter."""


def _change(evidence: Evidence, access: Access, lane_stride: Stride) -> str:
    """Return the advice for lanes with this stride."""
    device = evidence.device
    if lane_stride.step == 0 and access.kind.access == "load":
        return "keep what all lanes read in constant or shared memory, which give it to all at once"
    if device.capability < misaligned.ANY_WIDTH and access.kind.width not in misaligned.WIDTHS:
        return "let each thread take 4 bytes at once, or 8, or 16: no others are coalesced"
    if access.kind.width < (lane_stride.step or 0) <= FIELDS:
        return (
            "let neighbouring lanes take neighbouring words: keep an array for each field of a"
            " structure, or load all of it at once as a vector"
        )
    if lane_stride.step is None:
        return GATHER if access.kind.access == "load" else SCATTER
    others = _rows(evidence, access)
    return TILES.format(others=others) if others else SWAP


def _rows(evidence: Evidence, access: Access) -> str:
    """Return which accesses have a row of lanes, as in a transposition; empty if none."""
    often = evidence.of(access.pc, f"{access.kind.prefix}requests")
    for other in evidence.worst:
        kind = other.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        is_row = stride(other.addresses).step == kind.width
        if is_row and evidence.of(other.pc, f"{kind.prefix}requests") >= OFTEN * often:
            return f"{'other ' * (kind.access == access.kind.access)}{kind.access}s"
    return ""
