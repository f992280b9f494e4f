"""Addresses of lanes to rows of a trace: spaces, bases, patterns, and the parts of a row."""

import numpy as np
import numpy.typing as npt

from ...lazy_dataclass import dataclass
from ..schema import LANES, Space
from .seam import Ints, Words

Flags = npt.NDArray[np.bool_]

WINDOW = 1 << 24
"""Bytes of the windows through which generic addresses see shared and local memory (NVIDIA's
drivers, since Volta; they begin at multiples of that)."""
REACH = (1 << 31) - 1
"""How far from the base a lane of a row may lie."""


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Rows of ACCESSES of one launch, but `pattern` counts the rows of `active` and `offsets`.

    `row` (n,) is the executed instruction that made each.
    """

    row: Ints
    part: Ints
    space: Ints
    base: Words
    pattern: Ints
    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]


def lanes_of(masks: Ints) -> Flags:
    """Return (n, 32) flags: is the lane in the mask?"""
    return (masks[:, None] >> np.arange(LANES) & 1).astype(bool)


def find_spaces(addresses: Words, reach: Ints, shared: int, local: int) -> npt.NDArray[np.uint8]:
    """Return the space of each lane's address, (n, 32); `reach` (n,) has bit 1 << s for each s.

    An instruction of one space is in it; others go by the windows, and what lies in none is global.
    """
    spaces = np.full(addresses.shape, Space.GLOBAL, np.uint8)
    for space, window in ((Space.SHARED, shared), (Space.LOCAL, local)):
        only = reach == 1 << space
        spaces[only] = space
        may = (reach >> space & 1 == 1) & ~only
        inside = addresses[may] - np.uint64(window) < WINDOW
        spaces[may] = np.where(inside, np.uint8(space), spaces[may])
    return spaces


def make_accesses(
    row: Ints, addresses: Words, on: Flags, spaces: npt.NDArray[np.uint8]
) -> Accesses:
    """Return the rows of some accesses: one for each, more where lanes lie in several spaces or far
    apart. Rows without a lane are left out."""
    kept = np.flatnonzero(on.any(axis=1))
    row, addresses, on, spaces = row[kept], addresses[kept], on[kept], spaces[kept]
    windowed = np.where(spaces == Space.GLOBAL, addresses, addresses % np.uint64(WINDOW))
    part = np.zeros(len(row), np.int64)
    found: list[tuple[Ints, Ints, Words, Flags, npt.NDArray[np.uint8]]] = []
    while len(row):
        lowest = on.argmax(axis=1)
        base = np.take_along_axis(windowed, lowest[:, None], 1)
        space = np.take_along_axis(spaces, lowest[:, None], 1)
        near = np.abs((windowed - base).view(np.int64)) <= REACH
        mine = on & near & (spaces == space)
        found.append((row, part, windowed, mine, spaces))
        rest = np.flatnonzero((on & ~mine).any(axis=1))
        on = (on & ~mine)[rest]
        row, part, windowed, spaces = row[rest], part[rest] + 1, windowed[rest], spaces[rest]
    if not found:
        return _packed(row, part, windowed, on, spaces)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return _packed(*(column[order] for column in columns))


def _packed(
    row: Ints, part: Ints, addresses: Words, on: Flags, spaces: npt.NDArray[np.uint8]
) -> Accesses:
    if not len(row):
        none = np.empty(0, np.int64)
        blank = np.empty((0, LANES), np.int32)
        return Accesses(none, none, none, none.view(np.uint64), none, none.astype(np.uint32), blank)
    lowest = on.argmax(axis=1)[:, None]
    base = np.take_along_axis(addresses, lowest, 1)
    offsets = np.where(on, (addresses - base).view(np.int64), 0).astype(np.int32)
    active = np.packbits(on, axis=1, bitorder="little").view("<u4")[:, 0].astype(np.uint32)
    space = np.take_along_axis(spaces, lowest, 1)[:, 0].astype(np.int64)
    first, pattern = _distinct(active, offsets)
    return Accesses(row, part, space, base[:, 0], pattern, active[first], offsets[first])


def _distinct(active: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the first rows of equal patterns, and which of these each row has.

    Rows are told apart by 64 bits of hash; those that only look alike stay apart.
    """
    factors = np.random.default_rng(0).integers(1, 1 << 62, LANES + 1).astype(np.uint64) * 2 + 1
    mixed = offsets.astype(np.int64).view(np.uint64) * factors[:LANES]
    marks = mixed.sum(axis=1, dtype=np.uint64) + active * factors[LANES]
    _, first, which = np.unique(marks, return_index=True, return_inverse=True)
    chosen = first[which]
    wrong = (offsets != offsets[chosen]).any(axis=1) | (active != active[chosen])
    strays = np.flatnonzero(wrong)
    which[strays] = len(first) + np.arange(len(strays))
    return np.concatenate([first, strays]), which
