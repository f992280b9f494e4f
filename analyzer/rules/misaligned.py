"""Neighbouring words that begin beside a boundary: a transaction more for every request.

Both cures are tried: longer rows, so that each begins at a boundary, and another base, so that the
element with which warps begin lies at one. Where neither helps and the array is also read from
other places (a stencil), nothing would, and nothing is said.
"""

from collections.abc import Iterator

from ..advice import Evidence, Finding
from ..trial import Trial
from ..why.search import Access
from ..why.sentence import stride

EXCESS = 1.1
"""The excess from which on it is worth a word: the odd edge of an array is not."""
GAIN = 0.95
"""A cure leaves this part of the launch's loads, or stores, at most."""
HALF = 16
BOUNDARIES = (32, 64, 128)
TRANSACTIONS = ("global_load_transactions", "global_store_transactions")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at loads and stores whose lanes follow one another without a gap."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        if not follows(access):
            continue
        cost, ideal = (
            evidence.of(access.pc, kind.prefix + name)
            for name in ("transactions", "ideal_transactions")
        )
        if not ideal or cost <= EXCESS * ideal:
            continue
        cure = _cure(evidence, access)
        if cure is None and (not is_whole(access) or _is_stencil(evidence, access)):
            continue
        change, proof = cure or (_general(evidence), "")
        yield Finding(
            f"{kind.access}s begin beside a boundary: {cost} transactions where {ideal} would do",
            evidence.describe(access),
            change,
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            proof,
        )


def is_whole(access: Access) -> bool:
    """Whether all lanes follow one another without a gap."""
    return stride(access.addresses) == f"stride {access.kind.width} bytes"


def follows(access: Access) -> bool:
    """Whether the lanes of each half-warp do so: two rows of a block that is 16 threads wide."""
    runs = f"stride {access.kind.width} bytes in runs of {HALF} lanes"
    return is_whole(access) or stride(access.addresses) == runs


def _cure(evidence: Evidence, access: Access) -> tuple[str, str] | None:
    """What to change, and what its replay gave, if it helps."""
    name = evidence.array_of(access)
    if not name:
        return None
    recorded, counter = evidence.trials.as_recorded(), f"{access.kind.prefix}transactions"
    tried = [
        (word, trial)
        for word, trial in _trials(evidence, access, name)
        if trial and trial.total(*TRANSACTIONS) < recorded.total(*TRANSACTIONS)
    ]
    if not tried:
        return None
    word, best = min(tried, key=lambda pair: pair[1].total(counter))
    before, after = recorded.total(counter), best.total(counter)
    if after > GAIN * before:
        return None
    return word, f"{best.typed}: {counter} from {before} to {after}"


def _trials(evidence: Evidence, access: Access, name: str) -> Iterator[tuple[str, Trial | None]]:
    """Each cure in words, and its replay."""
    trials = evidence.trials
    array, size = trials.arrays[name], trials.element(name)
    if len(array.shape) > 1 or array.pitch:
        row = array.pitch or array.shape[-1] * size
        for boundary in BOUNDARIES:
            longer = -row % boundary
            if longer and longer % size == 0 and longer <= row:
                word = (
                    f"begin the rows of `{name}`, {row} bytes, at multiples of {boundary} bytes:"
                    " cudaMallocPitch, or padding"
                )
                yield word, trials.suppose(pad={name: longer // size})
    start = next(a for a in access.addresses if a is not None)
    beyond = (array.offset - start) % BOUNDARIES[-1]
    if beyond % size == 0:
        word = (
            f"let `{name}` begin {beyond} bytes past a multiple of {BOUNDARIES[-1]}, or shift the"
            " work so that warps begin at one"
        )
        wish = f"{BOUNDARIES[-1]}+{beyond}" if beyond else BOUNDARIES[-1]
        yield word, trials.suppose(align={name: wish})


def _is_stencil(evidence: Evidence, access: Access) -> bool:
    """Whether the array is also read or written from other places, without a gap too."""
    name, own = evidence.array_of(access), access.addresses[0]
    return any(
        evidence.array_of(other) == name and other.addresses[0] != own and follows(other)
        for other in evidence.worst
        if other.pc != access.pc and other.kind.space == "global"
    )


def _general(evidence: Evidence) -> str:
    if evidence.profile.launch.block[0] % HALF:
        return "launch blocks of a multiple of 32 threads, so that each begins at a boundary"
    return (
        "begin rows at a multiple of 128 bytes (cudaMallocPitch, padding), or shift the work so"
        " that warps begin there"
    )
