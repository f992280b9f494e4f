"""Small grid: fewer blocks than SMs, or a last round of blocks that leaves most SMs empty.

Reported if work spread over all SMs would finish at least LEAST_NS sooner. Ranked after all advice
with a gain, since kernels are often recorded with smaller sizes than in production.
"""

from collections.abc import Iterator

from ..counting.bounds import ON_AN_SM
from ..evidence.evidence import Evidence, Finding
from ..time.units import is_own

LEAST_NS, LONG_NS, PART = 5000, 2000, 0.5
"""Least gain by bounds, and by an estimate, of which it is at least this part; an empty kernel
takes about 2,000."""
IDLE, ROUNDS = 0.25, 4
"""Least empty part of all rounds' places, and most rounds, for which a tail is reported."""
RESOURCES = frozenset(name for _, name, _, _ in ON_AN_SM)


def find(evidence: Evidence) -> Iterator[Finding]:
    """Compare the grid with the capacity of the device."""
    facts, blocks = evidence.profile.raw.facts, evidence.profile.launch.blocks
    sms, resident = facts.get("sms") or 0, facts.get("resident_blocks") or 0
    if not blocks or not resident:
        return
    busy = blocks / sms
    estimate = evidence.profile.estimate
    latency = _latency_gain(evidence, busy)
    is_long = latency >= max(LONG_NS, PART * estimate.ns if estimate else 0)
    if busy < 1 and (_gain(evidence, busy) >= LEAST_NS or is_long):
        yield Finding(
            f"{sms - blocks} of {sms} SMs have no block",
            f"the grid has {blocks:,} block{'s' * (blocks > 1)} of"
            f" {evidence.profile.launch.threads} threads",
            f"if the real size is this small, launch at least {sms} blocks: make them smaller, or"
            " split the work of each",
            effort=0,
        )
    capacity = sms * resident
    rounds = -(-blocks // capacity)
    idle = 1 - blocks / (rounds * capacity)
    idle_ns = _gain(evidence, 0) * idle / (1 - idle)  # beyond the bounds, which ignore rounds
    if 1 < rounds <= ROUNDS and idle >= IDLE and idle_ns >= LEAST_NS:
        yield Finding(
            f"the last of {rounds} rounds has {blocks - (rounds - 1) * capacity:,} of"
            f" {capacity:,} blocks",
            f"{sms} SMs hold {resident} blocks each: {100 * idle:.0f} % of the places stay empty",
            f"launch {(rounds - 1) * capacity:,} blocks that do more each (a loop over the"
            " grid), or"
            " smaller blocks, of which more fit",
            effort=0,
        )


def _gain(evidence: Evidence, busy: float) -> float:
    """Return the gain by bounds if the work of SMs is spread over all of them."""
    bounds = evidence.profile.bounds
    after = max(b.ns * (busy if b.resource in RESOURCES else 1) for b in bounds) if bounds else 0
    return bounds[0].ns - after if bounds else 0.0


def _latency_gain(evidence: Evidence, busy: float) -> float:
    """Return the gain by the estimate if stalls or a unit of the SM take longest."""
    estimated = evidence.profile.estimate
    first = estimated.parts[0] if estimated and estimated.parts else None
    return first.ns * (1 - busy) if first and is_own(first) else 0.0
