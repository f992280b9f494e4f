"""The parts of memory that lanes touch, a loop over one group of lanes after another.

Plain integers and sequences, so that `compiled.py` can compile the functions as they stand;
`lanes.py` and `coalescer.py` say the same in arrays, which is quick where rows are few.

- `addresses`, `active`: (n, lanes), bytes, and whether the lane counts. `width`: bytes a lane, 32
  at most.
- `keys`, `masks`, `order`: (SLOTS,), a table of what one group has touched: aligned blocks of
  memory by number, EMPTY where there is none, a bit for each part of them, and the slots in use.
"""

from typing import Any

import numpy as np

SLOTS = 128
"""Twice as many as a group has lanes, and twice again: the two ends of an access may lie apart."""

EMPTY = -(1 << 62)
SHIFT = 5
"""A block of which each byte has a bit has 32 bytes."""


def make_table() -> Any:
    """Return `keys`, `masks` and `order` of nothing touched."""
    empty = np.full(SLOTS, EMPTY, np.int64)
    return empty, np.zeros_like(empty), np.zeros_like(empty)


def count_bytes(
    addresses: Any, active: Any, width: int, keys: Any, masks: Any, order: Any, distinct: Any
) -> None:
    """Set how many different bytes each group touches, `distinct` (n,)."""
    lanes = addresses.shape[1]
    for group in range(len(addresses)):
        used = 0
        for lane in range(lanes):
            if active[group, lane]:
                first = addresses[group, lane]
                wanted = ((1 << width) - 1) << (first & 31)
                block = first >> SHIFT
                used = touch(keys, masks, order, used, block, wanted & 0xFFFFFFFF)
                if wanted >> 32:
                    used = touch(keys, masks, order, used, block + 1, wanted >> 32)
        total = 0
        for number in range(used):
            slot = order[number]
            total += count_ones(masks[slot])
            keys[slot] = EMPTY
        distinct[group] = total


def count_units(
    addresses: Any,
    active: Any,
    width: int,
    shifts: Any,
    keys: Any,
    masks: Any,
    order: Any,
    touched: Any,
    together: Any,
) -> None:
    """Count the aligned units that each group touches, `touched` (n,), all zeros at first.

    `together` (n, units of a line) is how many lines have 1, 2, ... of them. `shifts` are the
    binary logarithms of the bytes of a unit, and of the units of a line.
    """
    unit, line = shifts
    low, lanes = (1 << line) - 1, addresses.shape[1]
    for group in range(len(addresses)):
        used = 0
        for lane in range(lanes):
            if active[group, lane]:
                first = addresses[group, lane] >> unit
                last = (addresses[group, lane] + width - 1) >> unit
                used = touch(keys, masks, order, used, first >> line, 1 << (first & low))
                if last != first:
                    used = touch(keys, masks, order, used, last >> line, 1 << (last & low))
        for number in range(used):
            slot = order[number]
            many = count_ones(masks[slot])
            touched[group] += many
            together[group, many - 1] += 1
            keys[slot] = EMPTY


def touch(keys: Any, masks: Any, order: Any, used: int, key: int, wanted: int) -> int:
    """Set bits of a block, entered if it is not there yet; return how many there are."""
    slot = key & (SLOTS - 1)
    while keys[slot] != key:
        if keys[slot] == EMPTY:
            keys[slot] = key
            masks[slot] = wanted
            order[used] = slot
            return used + 1
        slot = (slot + 1) & (SLOTS - 1)
    masks[slot] |= wanted
    return used


def count_ones(mask: int) -> int:
    """Return how many of 32 bits are set."""
    mask -= (mask >> 1) & 0x55555555
    mask = (mask & 0x33333333) + ((mask >> 2) & 0x33333333)
    mask = (mask + (mask >> 4)) & 0x0F0F0F0F
    return (mask * 0x01010101 & 0xFFFFFFFF) >> 24
