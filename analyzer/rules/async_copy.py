"""Asynchronous copies: warps wait for a tile's loads before they store it into shared memory.

From 8.0 on `cp.async` copies global to shared memory without registers, from 9.0 on the Tensor
Memory Accelerator copies whole tiles (`cp.async.bulk`), while warps work on the tile before. Only
reported where the estimate shows that warps wait at such stores, again and again.
"""

from collections.abc import Iterator

from ..evidence.evidence import LATENCY, ON_MEMORY, Evidence, Finding

WAITS = 0.25
"""Least share of a warp's time that it waits for memory at stores into shared memory."""
OFTEN = 4
"""Fewest times that a warp does so: the next tile is loaded while the warp works on this one."""
LEAST_NS = 2000
"""Least gain: an asynchronous copy needs a second tile and a pipeline of its own."""
ASYNC, BULK = (8, 0), (9, 0)


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check stores into shared memory that wait for global loads, in a loop."""
    estimate, launch = evidence.profile.estimate, evidence.profile.launch
    if not estimate or evidence.device.capability < ASYNC:
        return
    stores = [a for a in evidence.worst if (a.kind.space, a.kind.access) == ("shared", "store")]
    waits = {
        access.pc: sum(
            share
            for (pc, why), share in estimate.at.items()
            if pc == access.pc and why in ON_MEMORY
        )
        for access in stores
    }
    times = sum(evidence.of(pc, "instructions") for pc, share in waits.items() if share)
    whole = sum(waits.values())
    if whole < WAITS or times < OFTEN * launch.blocks * launch.warps:
        return
    how = (
        "cp.async.bulk or a tensor map of the TMA"
        if evidence.device.capability >= BULK
        else "cp.async (cuda::memcpy_async)"
    )
    with_copies = evidence.estimate_scaled({LATENCY: 1 - whole})
    if with_copies is None or with_copies > estimate.ns - LEAST_NS:
        return
    for access in stores:
        if waits[access.pc]:
            yield Finding(
                f"warps wait for memory {100 * whole:.0f} % of their time before they store a tile"
                " into shared memory",
                evidence.describe(access),
                f"copy the next tile asynchronously while the warps work on this one: {how}, with"
                " two tiles or more",
                access.pc,
                evidence.share(access, "passes"),
                access.identifier,
                estimate=with_copies,
                effort=2,
            )
