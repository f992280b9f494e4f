"""Misaligned accesses: contiguous words that start off a boundary cost an extra transaction.

Two changes are tried: longer rows, so that each starts at a boundary, and another base, so that the
first element of a warp is at one. An array of one dimension may have rows too: their length is an
argument of the kernel, or follows from the addresses at which its blocks start. If neither helps a
stencil on 1.0 and 1.1, a texture is tried. If nothing helps (rows that start anywhere), there is no
finding.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product

from ...traces.schema import LANES, Array
from ..evidence.evidence import Evidence, Finding
from ..evidence.trial import Trial
from ..why.search import Access
from ..why.sentence import Stride, stride
from . import texture

EXCESS = 1.1
"""Transactions per ideal one from which an access is reported; an array's edge is below."""
GAIN = 0.95
"""Largest part of the launch's loads, or stores, that a change may leave."""
HALF, LONGEST, FITTING = 16, 1 << 16, 3
WIDTHS, ANY_WIDTH = (4, 8, 16), (1, 2)
"""Bytes per lane that 1.0 and 1.1 coalesce, and the first capability that coalesces others."""
BLOCKS = "launch blocks of a multiple of 32 threads, so that each begins at a boundary"
GENERAL = (
    "begin rows at a multiple of 128 bytes (cudaMallocPitch, padding), or shift the work so that"
    " warps begin there"
)
BOUNDARIES = (32, 64, 128)
TRANSACTIONS = ("global_load_transactions", "global_store_transactions")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check loads and stores with contiguous lanes."""
    for access in evidence.worst:
        kind = access.kind
        if kind.space != "global" or kind.access not in ("load", "store"):
            continue
        if not follows(evidence, access):
            continue
        cost, ideal = (
            evidence.of(access.pc, kind.prefix + name)
            for name in ("transactions", "ideal_transactions")
        )
        if not ideal or cost <= EXCESS * ideal:
            continue
        if evidence.profile.launch.threads % LANES:
            change, proof = BLOCKS, ""
        elif cure := _cure(evidence, access) or _texture(evidence, access):
            change, proof = cure
        elif not evidence.array_of(access) and is_whole(access):
            change, proof = GENERAL, ""
        else:
            continue
        yield Finding(
            f"misaligned {kind.access}s: {cost:,} transactions, {ideal:,} needed",
            evidence.describe(access),
            change,
            access.pc,
            evidence.share(access, "bytes_moved"),
            access.identifier,
            proof,
            effort=0,
        )


def is_whole(access: Access) -> bool:
    """Return whether all lanes are contiguous."""
    return stride(access.addresses) == Stride(access.kind.width)


def follows(evidence: Evidence, access: Access) -> bool:
    """Return whether the lanes of each half-warp are contiguous: two rows of a block 16 threads
    wide.

    False for lanes of one or two bytes on devices that coalesce only words.
    """
    if evidence.device.capability < ANY_WIDTH and access.kind.width not in WIDTHS:
        return False
    return is_whole(access) or stride(access.addresses) == Stride(access.kind.width, HALF)


def _cure(evidence: Evidence, access: Access) -> tuple[str, str] | None:
    """Return the change, and the result of its replay, if it helps."""
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
    return word, f"{best.typed}: {counter} from {before:,} to {after:,}"


def _texture(evidence: Evidence, access: Access) -> tuple[str, str] | None:
    """Try a texture for a stencil, on devices where a shift by a word costs sixteen times."""
    if evidence.device.capability >= ANY_WIDTH or not (costs := texture.measure(evidence, access)):
        return None
    change = texture.THROUGH.format(evidence.array_of(access))
    return f"{change}, or pass a block's stretch through shared memory", texture.TRIED.format(
        *costs
    )


def _trials(evidence: Evidence, access: Access, name: str) -> Iterator[tuple[str, Trial | None]]:
    """Yield each change in words, and its replay."""
    trials = evidence.trials
    array, size = trials.arrays[name], trials.element(name)
    for row, boundary in product(_rows(evidence, access, array, size), BOUNDARIES):
        longer = -row % boundary
        if longer and longer % size == 0 and longer <= row:
            word = (
                f"begin the rows of `{name}`, {row} bytes, at multiples of {boundary} bytes:"
                " cudaMallocPitch, or padding"
            )
            own = _shape_row(array, size) == row
            wish = longer // size if own else f"{row // size}+{longer // size}"
            yield word, trials.suppose(pad={name: wish})
    start = next(a for a in access.addresses if a is not None)
    beyond = (array.offset - start) % BOUNDARIES[-1]
    if beyond % size == 0:
        word = (
            f"let `{name}` begin {beyond} bytes past a multiple of {BOUNDARIES[-1]}, or shift the"
            " work so that warps begin at one"
        )
        wish = f"{BOUNDARIES[-1]}+{beyond}" if beyond else BOUNDARIES[-1]
        yield word, trials.suppose(align={name: wish})


def _rows(evidence: Evidence, access: Access, array: Array, size: int) -> Sequence[int]:
    """Return the candidate lengths of the array's rows in bytes."""
    if row := _shape_row(array, size):
        return [row]
    launch, words = evidence.profile.launch, array.bytes // size
    numbers = [a.value for a in launch.arguments if isinstance(a.value, int)]
    widths = [n for n in numbers if HALF < n < words and words % n == 0]
    starts = evidence.trials.starts(access.pc, array) // size
    step = min(launch.block[0], LANES)
    shown = (n for n in range(step + 1, min(words, LONGEST)) if words % n == 0)
    fitting = (n for n in shown if not (starts % n % step).any())
    return [n * size for n in dict.fromkeys((*widths, *islice(fitting, FITTING)))]


def _shape_row(array: Array, size: int) -> int:
    """Return the bytes of a row of the array's shape; 0 if it has one dimension."""
    return array.pitch or (array.shape[-1] * size if len(array.shape) > 1 else 0)
