"""Counting over the lanes of a warp, vectorised over rows: distinct values, distinct bytes.

Arrays are (n, lanes): `addresses` int64 in bytes, `active` bool. An inactive lane counts nowhere.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from ...errors import CutraceError
from . import touching as plain
from .compiled import compile_if_worth
from .seam import Bools, Ints

Masks = NDArray[np.uint32]

WARP = 32
NONE = np.iinfo(np.int64).max
"""Stands for a lane that has no value; it sorts behind all others."""

WIDEST = 32
"""Bytes a lane that the compiled loops know."""
WORTH = 1 << 17
"""Rows from which on loading the compiled loops pays: half a second of work."""


def check_lanes(what: str, lanes: Sequence[int], sizes: int = 3) -> None:
    """Refuse numbers of lanes that cannot cut a warp into groups; there must be `sizes` of them."""
    if len(lanes) != sizes or any(lane < 1 or WARP % lane for lane in lanes):
        told = ", ".join(map(str, lanes))
        raise CutraceError(f"{what} = {told}; expected {sizes} of the divisors of {WARP}")


def unpack_masks(masks: Masks) -> Bools:
    """Return (n, 32): bit i of each mask as lane i."""
    bytes_ = np.ascontiguousarray(masks, "<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(bytes_, axis=1, bitorder="little").view(np.bool_)


def count_lanes(masks: Masks) -> Ints:
    """Return how many bits of each mask are set, (n,)."""
    return np.asarray(np.count_nonzero(unpack_masks(masks), axis=1), np.int64)


def sort_distinct(values: Ints, active: Bools) -> Ints:
    """Return each row's distinct values in rising order, duplicates and inactive as NONE.

    The NONE of a duplicate stays in its place: only the order of the values is promised.
    """
    ordered = np.sort(np.where(active, values, NONE), axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NONE
    return ordered


def count_distinct(values: Ints, active: Bools) -> Ints:
    """Return how many distinct values each row has, (n,).

    >>> count_distinct(np.array([[4, 4, 8, 12]]), np.array([[True, True, True, False]]))
    array([2])
    """
    return _count_changes(np.sort(np.where(active, values, NONE), axis=1))


def distinct_bytes(addresses: Ints, active: Bools, width: int) -> Ints:
    """Return how many different bytes each row touches with `width` bytes a lane, (n,).

    >>> distinct_bytes(np.array([[0, 2, 8, 8]]), np.full((1, 4), True), 4)
    array([10])
    """
    if (loops := touching_loops(len(addresses))) is not None and width <= WIDEST:
        distinct = np.zeros(len(addresses), np.int64)
        loops.count_bytes(addresses, active, width, *plain.make_table(), distinct)
        return distinct
    ordered = np.sort(np.where(active, addresses, NONE), axis=1)
    if not (addresses & (width - 1)).any():  # aligned: accesses are the same or apart
        return width * _count_changes(ordered)
    steps = np.minimum(np.diff(ordered, axis=1), width)
    steps[ordered[:, 1:] == NONE] = 0
    return np.asarray(steps.sum(axis=1) + width * active.any(axis=1), dtype=np.int64)


def touching_loops(rows: int) -> ModuleType | None:
    """Return the compiled loops of `touching.py`, if so many rows have come that they pay."""
    return compile_if_worth(plain.__name__, rows, WORTH)


def _count_changes(ordered: Ints) -> Ints:
    """Return how many different values before NONE each sorted row has, (n,)."""
    new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] != NONE)
    return np.asarray(np.count_nonzero(new, axis=1) + (ordered[:, 0] != NONE), np.int64)
