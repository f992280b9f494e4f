"""Scattered loads with locality on devices that coalesce in lane order only: use a texture.

On 1.x a half-warp whose lanes do not follow one another makes a transaction for each lane or
segment; a texture's cache takes any order. It is tried: the same addresses go through the device's
texture unit and its cache. Later devices have an L1 for such loads.
"""

from collections.abc import Iterator

from ..evidence.evidence import Evidence, Finding
from ..why.search import Access
from ..why.sentence import NO_STRIDE, stride

BEFORE = (2, 0)
REMAINING = 0.5
"""A texture is advice if it leaves this part of the bytes at most."""
PAIR = 2
THROUGH = "read `{}` through a texture, whose cache takes any order"
TRIED = "the same reads through a texture and its cache: from {} to {} bytes"
NEAR = 2
"""Lanes that share a transaction, on average, where a gather's places lie near one another."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at loads that no order of lanes explains."""
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
    """Bytes moved now and through a texture, if that is far fewer; else None."""
    if evidence.device.capability >= BEFORE:
        return None
    if (access.kind.space, access.kind.access) != ("global", "load"):
        return None
    if access.cost <= access.ideal or not is_orderless(access):
        return None
    return measure(evidence, access)


def measure(evidence: Evidence, access: Access) -> tuple[int, int] | None:
    """Bytes that a load moves now and through a texture, if that is far fewer; else None."""
    name = evidence.array_of(access)
    if not name:
        return None
    before, after = evidence.trials.through_texture(access.pc, name)
    return (before, after) if after and after <= REMAINING * before else None


def is_orderless(access: Access) -> bool:
    """Whether no order of lanes explains an access; pairs of neighbours come about by chance."""
    lane_stride = stride(access.addresses)
    return lane_stride == NO_STRIDE or lane_stride.run == PAIR


def is_near(evidence: Evidence, access: Access) -> bool:
    """Whether it is a load in no order whose lanes share transactions, which an L1 then holds."""
    if evidence.device.capability < BEFORE or access.kind.access != "load":
        return False
    transactions = evidence.of(access.pc, f"{access.kind.prefix}transactions")
    return is_orderless(access) and NEAR * transactions < evidence.use_of(access).lanes
