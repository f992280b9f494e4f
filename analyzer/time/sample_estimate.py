"""The estimate from a sample of blocks: least and most time, with all loads cached and with none.

Instructions and requests to L1 are scaled to the grid. A sample does not determine hits of caches:
the launch is estimated twice, with every load a hit and with every load a miss. Both ends are
widened by the confidence interval of the sample.
"""

from collections.abc import Mapping
from dataclasses import replace

from ...models.replay.device.measured import Measured
from ..counting.bounds import ATOMICS, Bound
from ..counting.interval import Interval
from .estimate import Asked, Estimate, estimate
from .sample_warps import Ran
from .units import LOADS, SECTOR, STORES, Counts, Part

ASKED = {space: f"{space}_transactions" for space in (*LOADS, *STORES)}
"""Sectors that are asked of the first level, by the kind of access."""
ASKED["texture_load"] = "texture_load_sectors"


def estimate_between(
    asked: Asked, ran: Ran, measured: Measured, executed: Interval
) -> tuple[Estimate, Estimate] | None:
    """The least and the most that a sampled launch takes; `executed` is where its instructions lie.

    None if there are atomics on global memory: what they meet no sample says.
    """
    whole = sum(row["instructions"] for row in asked.sums.values())
    if not whole or any(row.get(name) for row in asked.sums.values() for name in ATOMICS):
        return None
    ends = zip((True, False), executed, strict=True)
    least, most = (
        _stretched(estimate(_as_if(asked, held), ran, measured), end / whole) for held, end in ends
    )
    return least, most


def _as_if(asked: Asked, held: bool) -> Asked:
    """A launch whose loads all find what they want in the first level, or in memory alone."""
    sums = {pc: {**row, **_served(row, held)} for pc, row in asked.sums.items()}
    moved = sum(row[name] for row in sums.values() for name in row if "_dram_bytes_" in name)
    ns = moved / asked.device.chip.memory_gb_per_s
    bounds = [Bound("DRAM", ns, moved, "bytes")] if moved else []
    return replace(asked, sums=sums, bounds=bounds, turns=None)


def _served(row: Counts, held: bool) -> Mapping[str, int]:
    """What caches would count. Stores go to the second level in either case."""
    found: dict[str, int] = {}
    for space, name in ASKED.items():
        sectors = row.get(name) or 0
        if space in STORES:
            found[f"{space}_l1_writes"] = found[f"{space}_l2_writes"] = sectors
            found[f"{space}_dram_bytes_written"] = 0 if held else sectors * SECTOR
        else:
            found[f"{space}_l1_reads"] = sectors
            found[f"{space}_l1_read_hits"] = sectors if held else 0
            found[f"{space}_l2_reads"] = 0 if held else sectors
            found[f"{space}_l2_read_hits"] = 0
            found[f"{space}_dram_bytes_read"] = 0 if held else sectors * SECTOR
    return found


def _stretched(found: Estimate, times: float) -> Estimate:
    parts = tuple(Part(part.what, part.ns * times) for part in found.parts)
    return replace(found, ns=found.ns * times, parts=parts)
