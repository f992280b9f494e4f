"""Vector loads and stores: neighbouring words of one thread that fit one access of 8 or 16 bytes.

Reported if issue slots or L1 limit the launch. Lanes with overlapping words, as in a stencil, are
skipped.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ...models.replay.interface.model import Batch
from ..evidence.evidence import Evidence, Finding
from ..why.search import Access

WIDEST, NEAR = 16, 64
"""Bytes of the widest access of a lane, and the instruction distance of merged accesses."""
LIMITS = ("issue slots", "L1 data")
"""Resources that are saved; L2 and DRAM bytes are not."""
TYPES = {8: "a type of 8 bytes (float2)", 16: "a type of 16 bytes (float4)"}


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find runs of accesses of one array, each one word after the last."""
    if evidence.profile.limited_by not in LIMITS:
        return
    plain = [
        a
        for a in evidence.worst
        if a.kind.space == "global" and a.kind.access in ("load", "store") and a.kind.width < WIDEST
    ]
    for run in _runs(evidence, sorted(plain, key=lambda access: access.pc)):
        count = _fitting(evidence, run)
        if count < 2:
            continue
        first, kind = run[0], run[0].kind
        name = evidence.array_of(first)
        saved = 1 - 1 / count
        for access in run[:count]:
            yield Finding(
                f"{count} {kind.access}s of {kind.width} bytes by each thread are neighbours",
                f"`{name}`: {evidence.describe(first)}" if name else evidence.describe(first),
                f"{kind.access} them at once by {TYPES[count * kind.width]}; addresses have to be"
                f" multiples of {count * kind.width}, and here they are",
                access.pc,
                evidence.share(access, "bytes_moved"),
                access.identifier,
                saved=saved,
                only=LIMITS,
            )


def _runs(evidence: Evidence, accesses: Sequence[Access]) -> Iterator[list[Access]]:
    """Yield the longest runs of at least two accesses."""
    run = list(accesses[:1])
    for one, other in pairwise(accesses):
        if not _is_next(evidence, one, other):
            yield run
            run = []
        run.append(other)
    yield run


def _is_next(evidence: Evidence, one: Access, other: Access) -> bool:
    """Return whether the same lanes access the next word, equally often."""
    mine, its = one.kind, other.kind
    if (mine.access, mine.width) != (its.access, its.width) or other.pc - one.pc > NEAR:
        return False
    if evidence.of(one.pc, "instructions") != evidence.of(other.pc, "instructions"):
        return False
    a, b = _first(evidence, one), _first(evidence, other)
    if a is None or b is None or len(a) != len(b) or (a.active != b.active).any():
        return False
    step = (b.addresses - a.addresses)[a.active]
    return bool(step.size and (step == mine.width).all())


def _first(evidence: Evidence, access: Access) -> Batch | None:
    return next((batch for batch, _ in evidence.trials.rows(access.pc)), None)


def _fitting(evidence: Evidence, run: Sequence[Access]) -> int:
    """Return how many of a run, 4 or 2, fit one aligned access, without words shared by lanes."""
    width = run[0].kind.width if run else WIDEST
    batch = _first(evidence, run[0]) if len(run) > 1 else None
    for count in (4, 2):
        size = count * width
        if batch is None or count > len(run) or size not in TYPES:
            continue
        apart = np.sort(np.where(batch.active, batch.addresses, np.iinfo(np.int64).max), axis=1)
        gaps = np.diff(apart, axis=1)
        if (batch.addresses[batch.active] % size).any() or ((gaps > 0) & (gaps < size)).any():
            continue
        return count
    return 0
