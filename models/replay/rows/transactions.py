"""Transactions: each rule of the coalescer, applied to groups of lanes.

`models/coalescer.py` documents the rules, and the devices that have them.
"""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ..interface.model import Bools, Ints, Touched
from . import touching
from .lanes import NONE, count_true, distinct_bytes, is_aligned, mark_new, order_lanes

SECTOR = 32
LINE = 128
SIZES = (32, 64, 96, 128)
SECTORS = LINE // SECTOR
_LINE_BITS = LINE.bit_length() - 1


@dataclass(frozen=True, eq=False)
class Lanes:
    """Groups of lanes that share transactions: `addresses` (n, lanes) in bytes, valid where
    `active` (n, lanes); and bytes per lane. `footprint` is the precomputed footprint, and
    `order` the sorted addresses (`ordered`), where these are known.
    """

    addresses: Ints
    active: Bools
    width: int
    footprint: Touched | None = None
    order: Ints | None = None

    @cached_property
    def ordered(self) -> Ints:
        """The active lanes' addresses in rising order, then NONE, (n, lanes)."""
        return order_lanes(self.addresses, self.active) if self.order is None else self.order

    def count_active(self) -> Ints:
        """Return the number of active lanes of each group, (n,)."""
        return count_true(self.active) if self.footprint is None else self.footprint.lanes

    def distinct_bytes(self) -> Ints:
        """Return the number of distinct bytes of each group, (n,)."""
        if self.footprint is not None:
            return self.footprint.bytes
        return distinct_bytes(self.ordered, self.width)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.addresses)


@dataclass(frozen=True, slots=True, eq=False)
class Transactions:
    """The transactions of n groups of lanes by a rule.

    `address` and `size` (n, k) are bytes, size 0 where there is no transaction. `leaving` (n,
    len(SIZES)) counts them by their size on the way to memory.
    """

    address: Ints
    size: Ints
    leaving: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """The number of transactions of n groups of lanes, and their bytes, (n,), and `leaving`."""

    transactions: Ints
    bytes_moved: Ints
    leaving: Ints


Rule = Callable[[Lanes], Transactions]


def _half_warp(group: Lanes) -> Transactions:
    """Compute capability 1.0 and 1.1."""
    addresses, active, width = group.addresses, group.active, group.width
    lanes = addresses.shape[1]
    start = addresses - np.arange(lanes) * width
    first = np.take_along_axis(start, active.argmax(axis=1)[:, None], axis=1)
    in_order = np.all((start == first) | ~active, axis=1, keepdims=True)
    aligned = first % (64 if width == 4 else 128) == 0
    coalesced = in_order & aligned if width in (4, 8, 16) else np.zeros_like(in_order)
    is_live = coalesced & active.any(axis=1, keepdims=True)
    segment = 64 if width == 4 else 128
    number = np.arange(lanes)
    size = np.where(active, SECTOR, 0)
    size = np.where(coalesced, 0, size) + np.where(
        is_live & (number < lanes * width // segment), segment, 0
    )
    address = np.where(coalesced, first + number * segment, addresses // SECTOR * SECTOR)
    return Transactions(address, size, _by_size(size))


def _segment(group: Lanes) -> Transactions:
    """Compute capability 1.2 and 1.3."""
    addresses, active, width = group.addresses, group.active, group.width
    segment = {1: 32, 2: 64}.get(width, 128)
    address, size = np.zeros_like(addresses), np.zeros_like(addresses)
    pending = active.copy()
    for number in range(addresses.shape[1]):
        if not pending.any():
            break
        lowest = np.take_along_axis(addresses, pending.argmax(axis=1)[:, None], axis=1)
        served = pending & (addresses // segment == lowest // segment)
        start, bytes_ = _shrink(lowest // segment * segment, segment, addresses, served, width)
        address[:, number] = start
        size[:, number] = np.where(served.any(axis=1), bytes_, 0)
        pending &= ~served
    return Transactions(address, size, _by_size(size))


def _shrink(
    start: Ints, segment: int, addresses: Ints, served: Bools, width: int
) -> tuple[Ints, Ints]:
    """Halve each segment while its lanes touch one half of it only."""
    low = np.where(served, addresses, NONE).min(axis=1)
    high = np.where(served, addresses + width - 1, -1).max(axis=1)
    start, size = start[:, 0].copy(), np.full(len(start), segment)
    while segment > SECTOR:
        segment //= 2
        whole = size == 2 * segment
        upper = whole & (low >= start + segment)
        size[upper | (whole & (high < start + segment))] = segment
        start[upper] += segment
    return start, size


def _line(group: Lanes) -> Transactions:
    """Whole 128-byte lines."""
    number, new = _touched_units(group, LINE)
    return Transactions(number * LINE, new * LINE, _together(number, new, LINE))


def _sector(group: Lanes) -> Transactions:
    """32-byte sectors; the sectors of one 128-byte line leave together."""
    number, new = _touched_units(group, SECTOR)
    return Transactions(number * SECTOR, new * SECTOR, _together(number, new, SECTOR))


def _collide(group: Lanes) -> Transactions:
    """32-byte sectors, and once more for each further lane on the same address."""
    ordered = group.ordered
    place = np.arange(ordered.shape[1])
    opens = np.where(mark_new(ordered), place, 0)
    rank = place - np.maximum.accumulate(opens, axis=1)
    key = np.sort(np.where(ordered == NONE, NONE, ordered // SECTOR * LINE + rank), axis=1)
    size = mark_new(key) * SECTOR
    leaving = _together(*_touched_units(group, SECTOR), SECTOR)
    return Transactions(key // LINE * SECTOR, size, leaving)


def _each(group: Lanes) -> Transactions:
    """One transaction for each active lane."""
    size = np.where(group.active, SECTOR, 0)
    return Transactions(group.addresses // SECTOR * SECTOR, size, _by_size(size))


UNITS: Mapping[str, int] = {"line": LINE, "sector": SECTOR}
"""Rules with one transaction per touched aligned unit, and the bytes of that."""

RULES: Mapping[str, Rule] = {
    "half_warp": _half_warp,
    "segment": _segment,
    "line": _line,
    "sector": _sector,
    "collide": _collide,
    "each": _each,
}


def add_up(transactions: Transactions) -> Totals:
    """Sum the transactions of groups."""
    many = count_true(transactions.size > 0)
    return Totals(many, transactions.size.sum(axis=1), transactions.leaving)


def count_units(group: Lanes, unit: int) -> Totals:
    """Sum the transactions of a rule of UNITS over groups, without a list of them."""
    leaving = np.zeros((len(group), len(SIZES)), np.int64)
    if group.footprint is not None:
        by_sectors = group.footprint.lines
        if unit == SECTOR:
            leaving = by_sectors
        else:
            leaving[:, -1] = by_sectors.sum(axis=1)
    else:
        lines, shift = leaving[:, unit // SECTOR - 1 :], unit.bit_length() - 1
        loops_of(touching, len(group)).count_units(
            group.ordered, group.width, shift, _LINE_BITS - shift, lines
        )
    unit_totals = leaving[:, -1] if unit == LINE else leaving @ np.arange(1, SECTORS + 1)
    return Totals(unit_totals, unit_totals * unit, leaving)


def largest_size(rule: str, width: int) -> int:
    """Return the size of the largest transaction of a rule, for `width` bytes per lane."""
    if rule == "half_warp":
        return 64 if width <= 4 else 128
    if rule == "segment":
        return {1: 32, 2: 64}.get(width, 128)
    return LINE if rule == "line" else SECTOR


def _touched_units(group: Lanes, unit: int) -> tuple[Ints, Bools]:
    """Return the units that each group touches, rising, and whether each is new."""
    shift = unit.bit_length() - 1
    number = group.ordered >> shift
    if group.width > unit or not is_aligned(group.ordered, group.width):
        last = (group.ordered + (group.width - 1)) >> shift
        if not np.array_equal(number, last):
            number = np.sort(np.concatenate([number, last], axis=1), axis=1)
    return number, mark_new(number, NONE >> shift)


def _together(number: Ints, new: Bools, unit: int) -> Ints:
    """Return (n, len(SIZES)): per group, the lines by their number of units marked `new`."""
    leaving = np.zeros((len(number), len(SIZES)), np.int64)
    unit_totals = count_true(new)
    if unit == LINE:
        leaving[:, -1] = unit_totals
        return leaving
    opens = mark_new(number // SECTORS, NONE // LINE)
    leaving[:, 0] = unit_totals
    several = np.flatnonzero(count_true(opens) != unit_totals)
    at = np.flatnonzero(new[several])
    first = np.flatnonzero(opens[several].ravel()[at])
    sectors = np.diff(first, append=len(at))
    leaving[several] = _count_sizes(at[first] // number.shape[1], sectors * SECTOR, len(several))
    return leaving


def _by_size(size: Ints) -> Ints:
    """Count the transactions of each group by size, (n, len(SIZES))."""
    group, number = np.nonzero(size)
    return _count_sizes(group, size[group, number], len(size))


def _count_sizes(group: Ints, size: Ints, groups: int) -> Ints:
    """Return (groups, len(SIZES)): the transactions of each group by size."""
    number = group * len(SIZES) + size // SECTOR - 1
    times = np.bincount(number, minlength=groups * len(SIZES))
    return times.reshape(groups, len(SIZES))
