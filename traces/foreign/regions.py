"""Regions: arrays for the addresses of an imported launch.

Tools record addresses, not allocations. The target of a host copy is an array; of other addresses,
adjacent pages that were accessed are one array. Its name is its first address.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...lazy_dataclass import dataclass
from ..schema import Array, Range, Space
from ..table.unique import sorted_unique
from .lanes import Accesses, lanes_of
from .seam import Head, Ints

PAGE = 1 << 9
"""The driver's allocations begin at multiples of that."""
MOST_ARRAYS = 64
"""Where touched pages lie apart in more places, they are joined across wider gaps."""
_CHUNK = 1 << 16
RESERVED = 1 << 10
"""Bytes of a block's shared memory that the system takes for itself (CUDA C++ Programming Guide,
compute capability 8.0 and later): the kernel's own begin behind them."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Accesses with addresses as a trace has them, and what they lie in."""

    accesses: Accesses
    arrays: tuple[Array, ...]
    local_bytes: int
    shared_bytes: int


def place(accesses: Accesses, width: Ints, head: Head, arrays: Sequence[Range]) -> Placed:
    """Return accesses with shared and local addresses from 0 on, and the extents of all spaces.

    `width` (n,) are the bytes of a lane; `arrays` what is known already of global memory.
    """
    low, high = _extents(accesses, width)
    base = accesses.base.astype(np.int64)
    shared, local = (accesses.space == space for space in (Space.SHARED, Space.LOCAL))
    reserved = _reserved(base[shared], int(high[shared].max(initial=0)), head)
    bottom = int(low[local].min(initial=0 if not local.any() else 1 << 62)) // 256 * 256
    moved = base - np.where(shared, reserved, 0) - np.where(local, bottom, 0)
    return Placed(
        replace(accesses, base=moved.view(np.uint64)),
        _arrays(accesses, low, high, width, arrays),
        int(high[local].max(initial=bottom)) - bottom,
        int(high[shared].max(initial=reserved)) - reserved,
    )


def _extents(accesses: Accesses, width: Ints) -> tuple[Ints, Ints]:
    """The first byte of each row's lanes, and the one behind the last."""
    base = accesses.base.astype(np.int64)
    least = accesses.offsets.min(axis=1).astype(np.int64)[accesses.pattern]
    most = accesses.offsets.max(axis=1).astype(np.int64)[accesses.pattern]
    return base + least, base + most + width


def _reserved(base: Ints, end: int, head: Head) -> int:
    """The shared memory that lies before the kernel's own, as its addresses show."""
    beyond = head.shared_bytes and end > head.shared_bytes
    return RESERVED if beyond and int(base.min(initial=0)) >= RESERVED else 0


def _arrays(
    accesses: Accesses, low: Ints, high: Ints, width: Ints, known: Sequence[Range]
) -> tuple[Array, ...]:
    """The arrays of global memory: the known ones, and other regions that are accessed."""
    ranges = _merged(known)
    starts, ends = (np.array([r[i] for r in ranges], np.int64) for i in (0, 1))
    inside = np.zeros(len(low), bool)
    if len(ranges):
        at = np.searchsorted(starts, low, "right") - 1
        inside = (at >= 0) & (high <= ends[np.maximum(at, 0)])
    rest = np.flatnonzero((accesses.space == Space.GLOBAL) & ~inside)
    pieces = _pieces(_pages(accesses, rest, low, high, width))
    found = [*ranges, *(part for piece in pieces for part in _without(piece, ranges))]
    return tuple(Array(f"{a:#x}", Space.GLOBAL, a, b - a) for a, b in sorted(found))


def _pages(accesses: Accesses, rows: Ints, low: Ints, high: Ints, width: Ints) -> Ints:
    """The pages that some rows touch, rising: by their ends, or by lanes where these lie apart."""
    near = rows[high[rows] - low[rows] <= PAGE]
    found = [sorted_unique(low[near] // PAGE), sorted_unique((high[near] - 1) // PAGE)]
    far = rows[high[rows] - low[rows] > PAGE]
    for some in np.split(far, range(_CHUNK, len(far), _CHUNK)):
        pattern = accesses.pattern[some]
        on = lanes_of(accesses.active[pattern].astype(np.int64))
        lanes = accesses.base[some].astype(np.int64)[:, None] + accesses.offsets[pattern]
        found.append(sorted_unique(lanes[on] // PAGE))
        found.append(sorted_unique((lanes + width[some, None] - 1)[on] // PAGE))
    return sorted_unique(np.concatenate(found))


def _pieces(pages: Ints) -> list[Range]:
    """Pages that lie near one another, together; the nearer the fewer pieces there are."""
    gap, apart = 1, np.flatnonzero(np.diff(pages) > 1)
    while len(apart) >= MOST_ARRAYS:
        gap *= 8
        apart = np.flatnonzero(np.diff(pages) > gap)
    if not len(pages):
        return []
    first = pages[np.append(0, apart + 1)] * PAGE
    last = (pages[np.append(apart, len(pages) - 1)] + 1) * PAGE
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _merged(ranges: Sequence[Range]) -> list[Range]:
    """Ranges that overlap as one, rising."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end > start:
            found.append((start, end))
    return found


def _without(piece: Range, ranges: Sequence[Range]) -> Iterator[Range]:
    """The parts of a piece outside of the ranges, which rise."""
    start, end = piece
    for first, last in ranges:
        if last <= start or first >= end:
            continue
        if first > start:
            yield start, first
        start = max(start, last)
    if start < end:
        yield start, end
