"""Patterns of rows that are looked up together, some time after the rows were made."""

import numpy as np

from ....native.structure import I32, I64, U32, Struct
from ..lanes import LANES
from .pattern_table import AT_ONCE, Table, find_together, hash_ahead


class Questions(Struct):
    """`count` patterns: `active` (AT_ONCE,) and `offsets` (AT_ONCE * 32,), and their hashes in
    `numbers`; the number of each goes into the rows at `row` and the last patterns at `last`."""

    count: int
    active: U32
    offsets: I32
    numbers: I64
    row: I64
    last: I64


def no_questions() -> Questions:
    """Return room for AT_ONCE patterns."""
    q = Questions()
    q.numbers, q.row, q.last = np.empty((3, AT_ONCE), dtype=np.int64)
    q.active = np.empty(AT_ONCE, dtype=np.uint32)
    q.offsets = np.empty(AT_ONCE * LANES, dtype=np.int32)
    return q


def ask(q: Questions, t: Table, active: int, row: int, last: int) -> None:
    """Add the pattern that lies in `offsets` already, behind those that wait."""
    q.numbers[q.count] = hash_ahead(t, active, q.offsets[32 * q.count :])
    q.active[q.count] = active
    q.row[q.count] = row
    q.last[q.count] = last
    q.count += 1


def answer(q: Questions, t: Table, rows: I32, lasts: I32) -> None:
    """Look up all that wait."""
    find_together(t, q.count, q.active, q.offsets, q.numbers)
    for place in range(q.count):
        rows[q.row[place]] = q.numbers[place]
        lasts[q.last[place]] = q.numbers[place]
    q.count = 0
