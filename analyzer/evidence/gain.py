"""Gain: the most time that a change can save, from the bounds of the launch before and after.

The longest bound limits a launch until another resource needs longer; to save on a resource that
does not limit gains nothing. A changed access is assumed to cost the minimum for its lanes, in
every cache behind it alike, or the part that its rule states. DRAM still delivers each byte that
loads touch once.
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
"""The raw counters of which an access has its part, by resource."""
DRAM, SLOTS = "DRAM", "issue slots"
"""Issue slots are saved only where a rule says that instructions are left out."""
IDEAL = (("transactions", "ideal_transactions"), ("passes", "ideal_passes"))


class Counted(Protocol):
    """The part of the evidence that gains need: counts of a launch, and its worst accesses."""

    @property
    def profile(self) -> LaunchProfile:
        """The launch's counters and bounds."""

    @property
    def worst(self) -> Sequence[Access]:
        """The worst access of each instruction."""

    def total(self, counter: str) -> int:
        """The sum of a raw counter over the launch."""

    def of(self, pc: int, counter: str) -> int:
        """The sum of a raw counter at one instruction."""


def find_gain(
    evidence: Counted, saved: Iterable[tuple[int, float | None]], only: Collection[str] = ()
) -> float:
    """The nanoseconds that a launch is shorter at most, by its bounds, after a change.

    `saved` are instructions, each with the part of its cost that it saves, 0 to 1; None stands for
    what lies beyond the ideal. Where resources are named, `only` of these anything is saved.
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
    """The distinct bytes of the arrays that global loads read."""
    counts, column = profile.raw.counts, "global_load_requests"
    if not profile.footprint or column not in counts.columns:
        return 0
    read = counts.filter(pl.col(column) > 0)["array"].unique()
    return int(profile.footprint().filter(pl.col("array").is_in(read.implode()))[COLUMN].sum())


def _fraction(evidence: Counted, resource: str, parts: Sequence[tuple[int, float]]) -> float:
    """The part of a resource that is saved, 0 to 1."""
    names = COUNTERS.get(resource, ())
    total = sum(evidence.total(name) for name in names)
    less = sum(part * evidence.of(pc, name) for pc, part in parts for name in names)
    return less / total if total else 0.0


def _waste(evidence: Counted, pc: int) -> float:
    """The part of the cost of an instruction's accesses that lies beyond the ideal, 0 to 1."""
    prefixes = [access.kind.prefix for access in evidence.worst if access.pc == pc]
    for cost, ideal in IDEAL:
        paid, needed = (
            sum(evidence.of(pc, prefix + name) for prefix in prefixes) for name in (cost, ideal)
        )
        if paid:
            return max(0.0, 1 - max(needed / paid, _requested_share(evidence, pc, prefixes)))
    return 0.0


def _requested_share(evidence: Counted, pc: int, prefixes: Sequence[str]) -> float:
    """The part of the bytes moved that lanes asked for: transactions may differ in size."""
    request_bytes, moved = (
        sum(evidence.of(pc, prefix + name) for prefix in prefixes)
        for name in ("bytes_asked", "bytes_moved")
    )
    return request_bytes / moved if moved else 0.0
