"""Counting over the lanes of a warp, vectorised over rows: distinct values, distinct bytes.

Arrays are (n, lanes): `addresses` int64 in bytes, `active` bool. Inactive lanes do not count.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ....base.errors import CutraceError
from ....jit.loop import loops_of
from ..interface.model import Batch, Bools, Ints
from . import touching

Masks = NDArray[np.uint32]

WARP = 32
NONE = touching.NONE
"""The value of a lane without one: it sorts last, and is aligned to every access width."""

_BYTES = 8
_EACH_BYTE = np.uint64(0x0101010101010101)
_WIDEST = 255
"""The most lanes that a byte can count."""


def check_lanes(what: str, lanes: Sequence[int], sizes: int = 3) -> None:
    """Refuse lane counts that cannot cut a warp into groups; there must be `sizes` of them."""
    if len(lanes) != sizes or any(lane < 1 or WARP % lane for lane in lanes):
        lane_text = ", ".join(map(str, lanes))
        raise CutraceError(f"{what} = {lane_text}; expected {sizes} of the divisors of {WARP}")


def unpack_masks(masks: Masks) -> Bools:
    """Return (n, 32): bit i of each mask as lane i."""
    bytes_ = np.ascontiguousarray(masks, "<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(bytes_, axis=1, bitorder="little").view(np.bool_)


def count_lanes(masks: Masks) -> Ints:
    """Return the number of set bits of each mask, (n,)."""
    return count_true(unpack_masks(masks))


def count_true(flags: Bools) -> Ints:
    """Return the number of true lanes of each row, (n,); eight are added at a time."""
    rows, lanes = flags.shape
    if lanes % _BYTES or lanes > _WIDEST or not flags.flags.c_contiguous:
        return np.asarray(np.count_nonzero(flags, axis=1), np.int64)
    words = flags.view(np.uint64).reshape(rows, -1)
    return np.asarray((reduce(np.add, words.T) * _EACH_BYTE) >> np.uint64(56), np.int64)


def sum_parts(parts: Ints | Bools, rows: int) -> Ints:
    """Return the sum of each row's parts, (rows,); every row has equally many, contiguous."""
    sums = parts if parts.shape == (rows,) else parts.reshape(rows, -1).sum(axis=1)
    return np.asarray(sums, np.int64)


def order_lanes(addresses: Ints, active: Bools) -> Ints:
    """Return the active lanes' addresses of each row in rising order, (n, lanes), then NONE."""
    return np.sort(addresses if active.all() else np.where(active, addresses, NONE), axis=1)


def ordered_lanes(batch: Batch) -> Ints:
    """Return `order_lanes` of a batch; mostly precomputed in the batch."""
    if batch.ordered is None:
        return order_lanes(batch.addresses, batch.active)
    return batch.ordered


def mark_new(ordered: Ints, none: int = NONE) -> Bools:
    """Return whether each value of a sorted row is its first occurrence, and not `none`."""
    new = np.empty(ordered.shape, np.bool_)
    flat = np.ascontiguousarray(ordered).reshape(-1)
    np.not_equal(flat[1:], flat[:-1], out=new.reshape(-1)[1:])
    new[:, 0] = True
    if (ordered[:, -1] == none).any():
        new &= ordered != none
    return new


def sort_distinct(values: Ints, active: Bools) -> Ints:
    """Return each row's distinct values in rising order; duplicates and inactive lanes are NONE.

    The NONE of a duplicate stays in its place: only the order of the values is guaranteed.
    """
    ordered = order_lanes(values, active)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NONE
    return ordered


def count_distinct(values: Ints, active: Bools) -> Ints:
    """Return the number of distinct values of each row, (n,).

    >>> count_distinct(np.array([[4, 4, 8, 12]]), np.array([[True, True, True, False]]))
    array([2])
    """
    return count_true(mark_new(order_lanes(values, active)))


def distinct_bytes(ordered: Ints, width: int) -> Ints:
    """Return the number of distinct bytes of each row with `width` bytes per lane, (n,).

    >>> distinct_bytes(np.array([[0, 2, 8, 8, NONE]]), 4)
    array([10])
    """
    distinct = np.empty(len(ordered), np.int64)
    loops_of(touching, len(ordered)).count_bytes(ordered, width, distinct)
    return distinct


def is_aligned(addresses: Ints, width: int) -> bool:
    """Return whether all addresses are multiples of `width`, a power of two."""
    together = int(np.bitwise_or.reduce(addresses, axis=None))
    return width.bit_count() == 1 and not together & (width - 1)
