"""Patterns of rows that are looked up together.

The table of patterns is larger than the caches, and a look-up goes from its places to its patterns:
one after the other, each row waits for memory twice. Of some rows at a time all that will be read
is asked for first.
"""

import numpy as np

from ..array import LANES
from .language import I32, I64, Struct
from .pattern_table import Table, find_hashed, hash_offsets, prefetch

AT_ONCE = 64
"""Rows that wait at most: their patterns fit into the nearest cache."""


class Questions(Struct):
    """`count` patterns: `hashed`, `active` (AT_ONCE,) and `offsets` (AT_ONCE * 32,); the number of
    each goes to two places, into the rows at `row` and the last patterns at `last`."""

    count: int
    hashed: I64
    active: I64
    offsets: I32
    row: I64
    last: I64


def no_questions() -> Questions:
    """Return room for AT_ONCE patterns."""
    q = Questions()
    q.hashed, q.active, q.row, q.last = np.empty((4, AT_ONCE), dtype=np.int64)
    q.offsets = np.empty(AT_ONCE * LANES, dtype=np.int32)
    return q


def ask(q: Questions, t: Table, active: int, row: int, last: int) -> None:
    """Add the pattern that lies in `offsets` already, behind those that wait."""
    hashed = hash_offsets(q.offsets[32 * q.count :], active)
    prefetch(t.places[hashed & t.mask :])
    q.hashed[q.count] = hashed
    q.active[q.count] = active
    q.row[q.count] = row
    q.last[q.count] = last
    q.count += 1


def answer(q: Questions, t: Table, rows: I32, lasts: I32) -> None:
    """Look up all that wait."""
    for number in range(q.count):
        found = t.places[q.hashed[number] & t.mask]
        if found:
            prefetch(t.offsets[32 * found - 32 :])
            prefetch(t.offsets[32 * found - 16 :])
    for number in range(q.count):
        offsets = q.offsets[32 * number :]
        found = find_hashed(t, q.hashed[number], q.active[number], offsets)
        rows[q.row[number]] = found
        lasts[q.last[number]] = found
    q.count = 0
