"""Estimate from a sample of blocks: least and most time, with all loads hits or all misses.

Instructions and L1 requests are scaled to the grid. A sample does not determine cache hits, so the
launch is estimated twice, with every load a hit and with every load a miss. Both ends are widened
by the confidence interval of the sample.
"""

from collections.abc import Mapping
from dataclasses import replace

from ...models.replay.device.measured import Measured
from ..counting.bounds import ATOMICS, Bound
from ..counting.interval import Interval
from .estimate import Estimate, EstimateInput, estimate
from .sample_warps import Ran
from .units import LOADS, SECTOR, STORES, Counts, Part

TRANSACTION_COUNTERS = {space: f"{space}_transactions" for space in (*LOADS, *STORES)}
"""Sectors requested from L1, by kind of access."""
TRANSACTION_COUNTERS["texture_load"] = "texture_load_sectors"


def estimate_between(
    request: EstimateInput, ran: Ran, measured: Measured, executed: Interval
) -> tuple[Estimate, Estimate] | None:
    """Return the least and the most time of a sampled launch; `executed` bounds its instructions.

    None if there are atomics on global memory, whose contention a sample does not determine.
    """
    whole = sum(row["instructions"] for row in request.sums.values())
    if not whole or any(row.get(name) for row in request.sums.values() for name in ATOMICS):
        return None
    ends = zip((True, False), executed, strict=True)
    least, most = (
        _stretched(estimate(_as_if(request, is_cached), ran, measured), end / whole)
        for is_cached, end in ends
    )
    return least, most


def _as_if(request: EstimateInput, is_cached: bool) -> EstimateInput:
    """Return the launch as if all loads hit in L1, or all went to memory."""
    sums = {pc: {**row, **_served(row, is_cached)} for pc, row in request.sums.items()}
    moved = sum(row[name] for row in sums.values() for name in row if "_dram_bytes_" in name)
    ns = moved / request.device.chip.memory_gb_per_s
    bounds = [Bound("DRAM", ns, moved, "bytes")] if moved else []
    return replace(request, sums=sums, bounds=bounds, contention=None)


def _served(row: Counts, is_cached: bool) -> Mapping[str, int]:
    """Return the counts that the caches would have. Stores go to L2 in either case."""
    served: dict[str, int] = {}
    for space, name in TRANSACTION_COUNTERS.items():
        sectors = row.get(name) or 0
        if space in STORES:
            served[f"{space}_l1_writes"] = served[f"{space}_l2_writes"] = sectors
            served[f"{space}_dram_bytes_written"] = 0 if is_cached else sectors * SECTOR
        else:
            served[f"{space}_l1_reads"] = sectors
            served[f"{space}_l1_read_hits"] = sectors if is_cached else 0
            served[f"{space}_l2_reads"] = 0 if is_cached else sectors
            served[f"{space}_l2_read_hits"] = 0
            served[f"{space}_dram_bytes_read"] = 0 if is_cached else sectors * SECTOR
    return served


def _stretched(base: Estimate, times: float) -> Estimate:
    parts = tuple(Part(part.what, part.ns * times) for part in base.parts)
    return replace(base, ns=base.ns * times, parts=parts)
