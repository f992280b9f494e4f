"""A hash table that numbers keys in the order of their first appearance, for `jit/loop.py`.

A key is two integers. The table uses open addressing, with at least twice as many slots as keys.
`find` does not enlarge it: its callers make room before.
"""

import sys
from typing import NamedTuple

import numpy as np

from ....jit.loop import loops_of
from ....jit.structure import I32, I64, Struct

NONE = -1
SPREAD, HIGH = 0x9E3779B1, 31
"""The multiplier of the hash, and the bits of a key whose multiples fit into 63 bits; the higher
bits are mixed in.
"""
WORTH = 1 << 12
"""Keys from which on it pays to compile their insertion."""


class Size(Struct):
    """The number of keys."""

    keys: int


class Table(NamedTuple):
    """`slots` are numbers of keys, or NONE; key i is `first[i]` and `second[i]`."""

    size: Size
    slots: I32
    first: I64
    second: I64


def new_table(capacity: int) -> Table:
    """Return a table with room for `capacity` keys; pages that are not touched take no memory."""
    slots = np.full(2 << (capacity - 1).bit_length(), NONE, np.int32)
    return Table(Size(), slots, np.empty(capacity, np.int64), np.empty(capacity, np.int64))


def enlarge(table: Table, capacity: int) -> Table:
    """Return the table with room for `capacity` keys; a new one has twice the room at least."""
    if capacity <= len(table.first):
        return table
    larger, keys = new_table(max(capacity, 2 * len(table.first))), table.size.keys
    loops = loops_of(sys.modules[__name__], keys)
    loops.insert(larger, table.first[:keys], table.second[:keys])
    return larger


def insert(table: Table, first: I64, second: I64) -> None:
    """Insert different keys into an empty table."""
    for number in range(len(first)):
        find(table, first[number], second[number])


def find(table: Table, first: int, second: int) -> int:
    """Return the number of a key; append a new one."""
    mask, mixed = len(table.slots) - 1, first * 31 + second
    slot = ((mixed ^ mixed >> HIGH) & (1 << HIGH) - 1) * SPREAD >> 7 & mask
    while table.slots[slot] >= 0:
        number: int = table.slots[slot]
        if table.first[number] == first and table.second[number] == second:
            return number
        slot = (slot + 1) & mask
    size = table.size.keys
    table.slots[slot] = size
    table.first[size] = first
    table.second[size] = second
    table.size.keys = size + 1
    return size
