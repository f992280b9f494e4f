"""Uncoalesced accesses: the lanes of a warp need far more transactions than their bytes do."""

from collections.abc import Iterator

from ...models.replay.device.device import Device
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
                f"uncoalesced {kind.access}s: {cost:,} transactions, {ideal:,} needed",
                evidence.describe(access),
                _change(evidence.device, access, lane_stride),
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
                effort=0,
            )


def _change(device: Device, access: Access, lane_stride: Stride) -> str:
    """Return the advice for lanes with this stride."""
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
