"""Gain: the most time that a change can save, from the bounds of the launch before and after.

The longest bound limits a launch until another resource needs longer; saving a resource that is not
the limit gains nothing. A changed access is assumed to cost the minimum for its lanes, in every
cache behind it alike, or the part that its rule states. DRAM still delivers once each byte that
loads touch.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import polars as pl

from ..counting.bounds import L1, SHARED
from ..counting.footprint import COLUMN
from ..launch_profile import LaunchProfile
from ..why.search import Access

COUNTERS: Mapping[str, Sequence[str]] = {
    "DRAM": ("dram_bytes_read", "dram_bytes_written"),
    "L2": ("l2_reads", "l2_writes"),
    "L1 data": [f"{name}_bytes_moved" for name in L1],
    "shared memory": [f"{name}_passes" for name in SHARED],
    "issue slots": ("instructions",),
    "constant cache": ("const_load_conflicts",),
}
"""Resource to the raw counters from which an access's part follows."""
DRAM, SLOTS = "DRAM", "issue slots"
"""Issue slots count as saved only where a rule says that instructions disappear."""
IDEAL = (("transactions", "ideal_transactions"), ("passes", "ideal_passes"))


class Counted(Protocol):
    """The part of the evidence that gains need: a launch's counts and its worst accesses."""

    @property
    def profile(self) -> LaunchProfile:
        """The launch's counters and bounds."""

    @property
    def worst(self) -> Sequence[Access]:
        """The worst access of each instruction."""

    def total(self, counter: str) -> int:
        """Return the sum of a raw counter over the launch."""

    def of(self, pc: int, counter: str) -> int:
        """Return the sum of a raw counter at one instruction."""


def find_gain(
    evidence: Counted, saved: Iterable[tuple[int, float | None]], only: Collection[str] = ()
) -> float:
    """Return the most nanoseconds that a change saves, by the bounds of the launch.

    `saved` lists instructions with the part of the cost that each saves, 0 to 1; None means
    the cost beyond the ideal. If `only` names resources, the others save nothing.
    """
    bounds, saved = evidence.profile.bounds, list(saved)
    if not bounds:
        return 0.0
    parts = [(pc, _waste(evidence, pc) if part is None else part) for pc, part in saved]
    left_out = [(pc, part) for pc, part in saved if part is not None]
    after = 0.0
    for bound in bounds:
        resource = bound.resource if not only or bound.resource in only else ""
        less = _fraction(evidence, resource, left_out if resource == SLOTS else parts)
        if less and resource == DRAM and bound.ns > after:
            less = min(less, max(0.0, 1 - _footprint(evidence.profile) / bound.amount))
        after = max(after, bound.ns * (1 - less))
    return bounds[0].ns - after


def _footprint(profile: LaunchProfile) -> int:
    """Return the distinct bytes of the arrays that global loads read."""
    counts, column = profile.raw.counts, "global_load_requests"
    if not profile.footprint or column not in counts.columns:
        return 0
    read = counts.filter(pl.col(column) > 0)["array"].unique()
    return int(profile.footprint().filter(pl.col("array").is_in(read.implode()))[COLUMN].sum())


def _fraction(evidence: Counted, resource: str, parts: Sequence[tuple[int, float]]) -> float:
    """Return the saved part of a resource, 0 to 1."""
    names = COUNTERS.get(resource, ())
    total = sum(evidence.total(name) for name in names)
    less = sum(part * evidence.of(pc, name) for pc, part in parts for name in names)
    return less / total if total else 0.0


def _waste(evidence: Counted, pc: int) -> float:
    """Return the part of the cost of an instruction's accesses beyond the ideal, 0 to 1."""
    prefixes = [access.kind.prefix for access in evidence.worst if access.pc == pc]
    for cost, ideal in IDEAL:
        paid, needed = (
            sum(evidence.of(pc, prefix + name) for prefix in prefixes) for name in (cost, ideal)
        )
        if paid:
            return max(0.0, 1 - max(needed / paid, _requested_share(evidence, pc, prefixes)))
    return 0.0


def _requested_share(evidence: Counted, pc: int, prefixes: Sequence[str]) -> float:
    """Return the requested part of the moved bytes; transactions may differ in size."""
    request_bytes, moved = (
        sum(evidence.of(pc, prefix + name) for prefix in prefixes)
        for name in ("bytes_asked", "bytes_moved")
    )
    return request_bytes / moved if moved else 0.0
