"""Scattered loads with locality on devices that coalesce in lane order only: use a texture.

On 1.x a half-warp with unordered lanes makes a transaction per lane or segment; a texture
cache accepts any order. The change is tried: the same addresses go through the device's texture
unit and its cache. Later devices have an L1 for such loads.
"""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..why.search import Access
from ..why.sentence import NO_STRIDE, stride

BEFORE = (2, 0)
REMAINING = 0.5
"""Largest part of the bytes that a texture may leave."""
PAIR = 2
THROUGH = "read `{}` through a texture, whose cache takes any order"
TRIED = "the same reads through a texture and its cache: from {} to {} bytes"
NEAR = 2
"""Lanes per transaction, on average, from which a gather has locality."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check loads with unordered lanes."""
    for access in evidence.worst:
        if (helped := helps(evidence, access)) is not None:
            before, after = helped
            name = evidence.array_of(access)
            yield Finding(
                f"lanes read near places of `{name}` in no order: {before:,} bytes move",
                evidence.describe(access),
                THROUGH.format(name),
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
                TRIED.format(before, after),
            )


def helps(evidence: Evidence, access: Access) -> tuple[int, int] | None:
    """Return the bytes moved now and through a texture, if a texture helps; else None."""
    if evidence.device.capability >= BEFORE:
        return None
    if (access.kind.space, access.kind.access) != ("global", "load"):
        return None
    if access.cost <= access.ideal or not is_orderless(access):
        return None
    return measure(evidence, access)


def measure(evidence: Evidence, access: Access) -> tuple[int, int] | None:
    """Return a load's bytes now and through a texture, if far fewer; else None."""
    name = evidence.array_of(access)
    if not name:
        return None
    before, after = evidence.trials.through_texture(access.pc, name)
    return (before, after) if after and after <= REMAINING * before else None


def is_orderless(access: Access) -> bool:
    """Return whether the lanes of an access follow no order; pairs may be in order by chance."""
    lane_stride = stride(access.addresses)
    return lane_stride == NO_STRIDE or lane_stride.run == PAIR


def is_near(evidence: Evidence, access: Access) -> bool:
    """Return whether the lanes of an orderless load share transactions, as an L1 can hold."""
    if evidence.device.capability < BEFORE or access.kind.access != "load":
        return False
    transactions = evidence.of(access.pc, f"{access.kind.prefix}transactions")
    return is_orderless(access) and NEAR * transactions < evidence.use_of(access).lanes
