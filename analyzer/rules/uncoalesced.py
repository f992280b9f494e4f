"""Uncoalesced accesses: the lanes of a warp need far more transactions than their bytes do."""

from collections.abc import Iterator

from ...models.replay.device.device import Device
from ..evidence.evidence import Evidence, Finding
from ..why.search import Access
from ..why.sentence import Stride, stride
from . import misaligned, texture

EXCESS = 2
"""How many times as many transactions as would do make it worth a word."""
SHARED = 4
"""Lanes that share a few addresses are served by so many transactions: that is a broadcast."""
WIDEST = 16
"""Bytes that a lane loads at most: elements of twice as many take two loads that share sectors."""
FIELDS = 64
"""Bytes of a structure whose fields may as well be arrays of their own."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at every plain load and store of global memory."""
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
                f"uncoalesced {kind.access}s: {cost:,} transactions, {ideal:,} needed",
                evidence.describe(access),
                _change(evidence.device, access, lane_stride),
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
            )


def _change(device: Device, access: Access, lane_stride: Stride) -> str:
    """The advice for lanes with this stride."""
    if lane_stride.step == 0 and access.kind.access == "load":
        return "keep what all lanes read in constant or shared memory, which give it to all at once"
    if device.capability < misaligned.ANY_WIDTH and access.kind.width not in misaligned.WIDTHS:
        return "let each thread take 4 bytes at once, or 8, or 16: no others are coalesced"
    if access.kind.width < (lane_stride.step or 0) <= FIELDS:
        return (
            "let neighbouring lanes take neighbouring words: keep an array for each field of a"
            " structure, or load all of it at once as a vector"
        )
    return (
        "let neighbouring lanes take neighbouring words: exchange the indices, or pass tiles"
        " through shared memory"
    )
