"""Bank conflicts in shared memory, and the row padding that removes them.

The padding is tried: the launch is replayed with longer rows of the array. The row length is
inferred from the array's accesses, or is the number of banks in words. If the trace has no array at
the addresses, only the worst access is coalesced again.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from ..evidence.evidence import Evidence, Finding
from ..evidence.trial import Trial
from ..why.search import Access
from ..why.sentence import NO_STRIDE, Stride, stride

PADS = (1, 2, 3, 4)
CONFLICTS = tuple(f"shared_{what}_conflicts" for what in ("load", "store", "atomic", "reduction"))
OTHERWISE = "let the lanes take words of different banks: exchange or permute indices"
NARROW = "let a warp take one row: blocks 32 threads wide"
REMAINING = 0.5
"""Largest part of the conflicts that may remain for the padding to be advice."""
BANKS, WORD = 32, 4
MOST = 2
"""Strides of an access that are tried as row lengths."""
SHORTEST = 8
"""Elements of the shortest padded row: shorter ones are fields of a structure."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check every load and store of shared memory.

    Atomics are skipped, since their conflicts depend on data, and so are lanes without a stride,
    which index a table.
    """
    for access in evidence.worst:
        conflicts = evidence.of(access.pc, access.kind.prefix + "conflicts")
        if access.kind.space != "shared" or not conflicts:
            continue
        if access.kind.access in ("atomic", "reduction") or access.cost <= _at_best(access):
            continue
        name = evidence.array_of(access)
        change, proof = _change(evidence, access, name) if name else (_change_unnamed(access), "")
        if change == OTHERWISE and stride(access.addresses) == NO_STRIDE:
            continue
        wavefronts = evidence.of(access.pc, access.kind.prefix + "passes")
        yield Finding(
            f"bank conflicts: {conflicts:,} of {wavefronts:,} wavefronts are extra",
            evidence.describe(access),
            change,
            access.pc,
            evidence.share(access, "passes"),
            access.identifier,
            proof,
            effort=0,
        )


def _at_best(access: Access) -> int:
    """Return the cost with words in lane order: 1.x splits wide accesses in any case."""
    in_order = tuple(
        None if a is None else n * access.kind.width for n, a in enumerate(access.addresses)
    )
    return max(access.ideal, _passes(access, in_order))


def _change(evidence: Evidence, access: Access, name: str) -> tuple[str, str]:
    """Return the padding that helps, and the result of its replay; else general advice."""
    before = evidence.trials.as_recorded().total(*CONFLICTS)
    best: tuple[int, Trial, int, int] | None = None
    for row, pad in _candidates(evidence, access, name):
        trial = _try(evidence, name, row, pad)
        if trial and (best is None or trial.total(*CONFLICTS) < best[0]):
            best = trial.total(*CONFLICTS), trial, row, pad
        if best and not best[0]:
            break
    if best is None or best[0] > REMAINING * before:
        rows = Stride(access.kind.width, evidence.profile.launch.block[0])
        return NARROW if stride(access.addresses) == rows else OTHERWISE, ""
    after, trial, row, pad = best
    elements = "one element" if pad == 1 else f"{pad} elements"
    size = evidence.trials.element(name)
    return (
        f"make rows of `{name}`, {row // size} elements, {elements} longer",
        f"{trial.typed}: shared_conflicts from {before:,} to {after:,}",
    )


def _candidates(evidence: Evidence, access: Access, name: str) -> Iterator[tuple[int, int]]:
    """Yield rows in bytes, and paddings in elements, that may help."""
    trials = evidence.trials
    size = trials.element(name)
    step = max(1, trials.usage[name].widest // size)
    addresses = [a for a in access.addresses if a is not None]
    steps = Counter(b - a for a, b in pairwise(addresses) if b - a > size)
    strides = [step for step, _ in steps.most_common(MOST)]
    row_length = trials.usage[name].find_row(trials.arrays[name])
    banks = BANKS * max(size, WORD)
    for row in dict.fromkeys((*([row_length] if row_length else []), *strides, banks)):
        if row % size == 0 and row >= SHORTEST * size:
            yield from ((row, pad * step) for pad in PADS)


def _try(evidence: Evidence, name: str, row: int, pad: int) -> Trial | None:
    """Replay with the padding; omit the row length where the accesses imply the same one."""
    trials = evidence.trials
    size = trials.element(name)
    is_same_row = trials.usage[name].find_row(trials.arrays[name]) == row
    return trials.suppose(pad={name: pad if is_same_row else f"{row // size}+{pad}"})


def _change_unnamed(access: Access) -> str:
    """Return a padding for unnamed memory that helps the worst access; else general advice."""
    addresses = [a for a in access.addresses if a is not None]
    rows = {b - a for a, b in pairwise(addresses) if b - a > WORD and (b - a) % WORD == 0}
    for row in sorted(rows, reverse=True):
        for pad in PADS:
            moved = (None if a is None else a + a // row * pad * WORD for a in access.addresses)
            if (passes := _passes(access, tuple(moved))) <= access.ideal:
                words = "one word" if pad == 1 else f"{pad} words"
                return (
                    f"make rows of {row} bytes {words} longer: the same access then takes {passes}"
                    f" instead of {access.cost} wavefronts (tried)"
                )
    return OTHERWISE


def _passes(access: Access, addresses: tuple[int | None, ...]) -> int:
    """Return the passes of the access with other lane addresses."""
    return int(access.model.step(access.batch(addresses)).counts["passes"][0])
