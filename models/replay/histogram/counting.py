"""Loops over rows of a trace: read, number, count and repeat them; for `jit/loop.py` to compile.

`locate` is the one place where a row gets its site and its array. The reorder buffer
(`stateful/reorder_loops.py`) reads its rows by it, too.
"""

from typing import NamedTuple

from ....jit.structure import I64, Column
from .hash_table import NONE, Table, find

SPACES, SPACE_SHIFT = 8, 56
FAR = 1 << 62
WORTH = 1 << 13
"""Rows from which on the compiled loops pay."""


class AccessRows(NamedTuple):
    """Rows of ACCESSES, each (n,)."""

    pc: Column
    space: Column
    base: Column
    pattern: Column
    block: Column


class Facts(NamedTuple):
    """The tables in which rows are looked up.

    `kind` and `width` are those of `Sites`. `shape` is the index, in `lowest` and `highest`, of
    each pattern from `first` on: the offsets of its outermost lanes. `zone_end` is the end of each
    zone; the last one has none.
    """

    kind: I64
    width: I64
    first: int
    shape: Column
    lowest: I64
    highest: I64
    zone_end: I64


class Bounds(NamedTuple):
    """The lowest and the highest base that a reader can take."""

    low: int
    high: int


ANY_BASE = Bounds(-(1 << 63), (1 << 63) - 1)


class Located(NamedTuple):
    """What the latest row has looked up, and what holds for the next ones too.

    Adjacent rows mostly share pc, space and pattern. While the base of such a row is within [low,
    high], all its lanes are inside the zone. A mixed row, whose lanes are in several zones, leaves
    an empty range. `site` is NONE where an instruction cannot reach the space.
    """

    pc: int
    space: int
    pattern: int
    site: int
    shape: int
    zone: int
    begin: int
    end: int
    mixed: int
    low: int
    high: int


NOWHERE = Located(NONE, NONE, NONE, 0, 0, 0, FAR, FAR, 0, FAR, -FAR)
"""Where no row is."""


class Runs(NamedTuple):
    """Runs of adjacent equal rows of one block: the number of the distinct row, the block, and the
    length, each (n,).
    """

    number: I64
    block: I64
    length: I64


def is_like(rows: AccessRows, row: int, last: Located) -> bool:
    """Return whether what the latest row looked up holds for this row."""
    return bool(
        rows.pc[row] == last.pc
        and rows.space[row] == last.space
        and rows.pattern[row] == last.pattern
        and last.low <= rows.base[row] <= last.high
    )


def locate(rows: AccessRows, row: int, facts: Facts, bounds: Bounds, last: Located) -> Located:
    """Look a row up. The zone is searched only if the base has left the latest row's."""
    pc, space, pattern = rows.pc[row], rows.space[row], rows.pattern[row]
    site, shape = pc * SPACES + space, facts.shape[pattern - facts.first]
    if space >= SPACES or facts.kind[site] < 0:
        return Located(pc, space, pattern, NONE, 0, 0, FAR, FAR, 0, FAR, -FAR)
    base, window = rows.base[row], space << SPACE_SHIFT
    zone, begin, end = last.zone, last.begin, last.end
    if window + base < begin or window + base >= end:
        zone = find_zone(facts.zone_end, window + base)
        begin, end = -FAR if zone == 0 else facts.zone_end[zone - 1], facts.zone_end[zone]
    before, tail = facts.lowest[shape], facts.highest[shape] + facts.width[site]
    mixed = int(base + before < begin - window or base + tail > end - window)
    low, high = FAR, -FAR
    if not mixed:
        low = max(bounds.low, begin - window - min(0, before))
        high = min(bounds.high, end - window - max(1, tail))
    return Located(pc, space, pattern, site, shape, zone, begin, end, mixed, low, high)


def mark_patterns(pattern: Column, first: int, flags: Column) -> None:
    """Mark the patterns that occur, `flags` (patterns from `first` on,)."""
    last = NONE
    for row in range(len(pattern)):
        if pattern[row] != last:
            last = pattern[row]
            flags[last - first] = True


def all_known(pattern: Column, first: int, shapes: Column) -> bool:
    """Return whether every pattern that occurs has a shape in `shapes`, which begins at `first`."""
    last = NONE
    for row in range(len(pattern)):
        if pattern[row] != last:
            last = pattern[row]
            if shapes[last - first] < 0:
                return False
    return True


def number_rows(rows: AccessRows, facts: Facts, period: int, table: Table, runs: Runs) -> int:
    """Number the rows by distinct row, and return the number of runs.

    The key of a distinct row is (site * zones + zone) * 2 + mixed, and shape * period + the base
    modulo the period. Returns -1 - i if row i is in a space that its instruction cannot reach.
    """
    last, count, row, number, phase = NOWHERE, 0, 0, NONE, NONE
    is_power, mask = period & (period - 1) == 0, period - 1
    while row < len(rows.pc):
        base = rows.base[row]
        if not (is_power and base & mask == phase and is_like(rows, row, last)):
            last = locate(rows, row, facts, ANY_BASE, last)
            if last.site < 0:
                return -1 - row
            phase = base & mask if is_power else base % period
            place = (last.site * len(facts.zone_end) + last.zone) * 2 + last.mixed
            number = find(table, place, last.shape * period + phase)
        start, block = row, rows.block[row]
        row += 1
        while (
            row < len(rows.pc)
            and is_power
            and rows.block[row] == block
            and rows.base[row] & mask == phase
            and is_like(rows, row, last)
        ):
            row += 1
        runs.number[count] = number
        runs.block[count] = block
        runs.length[count] = row - start
        count += 1
    return count


def find_zone(ends: I64, place: int) -> int:
    """Return the first zone that ends after a place."""
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if ends[middle] > place:
            high = middle
        else:
            low = middle + 1
    return low


def count_scopes(runs: Runs, first: int, scope: Column, times: I64) -> None:
    """Count how often each number occurs in each scope, `times` (numbers, scopes), zeros at first.

    `scope` is the scope per block from `first` on.
    """
    for run in range(len(runs.number)):
        times[runs.number[run], scope[runs.block[run] - first]] += runs.length[run]


def find_ends(offsets: Column, low: I64, high: I64) -> None:
    """Set the minimum and the maximum of each row of offsets, (n, lanes)."""
    for row in range(len(offsets)):
        least = greatest = offsets[row, 0]
        for lane in range(1, offsets.shape[1]):
            least = min(least, offsets[row, lane])
            greatest = max(greatest, offsets[row, lane])
        low[row] = least
        high[row] = greatest


def sum_groups(
    rows: I64, group: I64, table: I64, number: I64, times: I64, many: I64, sums: I64
) -> None:
    """Sum the columns of rows per group: row i adds `table[:, number[i]]`, `times[i]` times.

    `rows` and `group` (m,); `times` (n, scopes). `many` (scopes, groups) counts occurrences; it and
    `sums` (scopes, groups, columns) are zeros at first.
    """
    for place in range(len(rows)):
        row, owner = rows[place], group[place]
        index = number[row]
        for scope in range(times.shape[1]):
            often = times[row, scope]
            if often:
                many[scope, owner] += often
                for column in range(len(table)):
                    sums[scope, owner, column] += often * table[column, index]


class Pooled(NamedTuple):
    """Requests of distinct rows: row r has those from `first[r]` to `first[r + 1]`, of `kind` and
    `address`, (requests,). `stride` (kinds,) are the bytes that a request moves for each byte that
    its row moves.
    """

    first: I64
    kind: I64
    address: I64
    stride: I64


class Expanded(NamedTuple):
    """Requests with the row of each, all (requests,)."""

    address: I64
    kind: I64
    row: I64


def repeat(pool: Pooled, number: Column, shift: Column, row: Column, requests: Expanded) -> None:
    """Expand rows, (n,), to their requests, each moved by its row's `shift`."""
    many = 0
    for place in range(len(number)):
        for one in range(pool.first[number[place]], pool.first[number[place] + 1]):
            kind = pool.kind[one]
            requests.address[many] = pool.address[one] + shift[place] * pool.stride[kind]
            requests.kind[many] = kind
            requests.row[many] = row[place]
            many += 1


def add_up(values: I64, group: I64, sums: I64) -> None:
    """Add each value to the sum of its group; both (n,), `sums` (groups,)."""
    for place in range(len(values)):
        sums[group[place]] += values[place]
