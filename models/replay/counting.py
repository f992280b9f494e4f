"""Numbering rows, a loop over one after another.

Plain integers and sequences for `compiled.py`, called by `compiled_tally.py`; `tally.py` says the
same in arrays, which is quick where rows are few.

- `rows`: (pc, space, base, shape), each (n,); a shape is one of those that `low` and `high` know.
- `sites`: (kind, width), each (pcs * SPACES,), as `Sites` has them.
- `reach`: (low, high), each (shapes,): from where to where the lanes of a shape reach.
- `zones`: where each zone ends, (zones,), the last one never.
- `slots`: twice as many as rows or more, a power of two: places in `found`, or NONE.
- `found`: (FIELDS, n) at least: site, shape, phase, zone and mixed of each distinct row.
"""

from typing import Any

NONE, FIELDS, SPACES, SPACE_SHIFT = -1, 5, 8, 56
SITE, SHAPE, PHASE, ZONE, MIXED = 0, 1, 2, 3, 4
FAR = 1 << 62
SPREAD = 0x9E3779B1


def number_rows(
    rows: Any, sites: Any, reach: Any, zones: Any, period: int, slots: Any, found: Any, number: Any
) -> int:
    """Set the `number` of each row among the distinct ones, (n,), and return how many there are.

    Returns -1 - i if row i lies in a space that its instruction cannot reach.
    """
    pcs, spaces, bases, shapes = rows
    kinds, widths = sites
    lows, highs = reach
    many, last, zone, begin, end = 0, NONE, 0, FAR, FAR
    is_power = period & (period - 1) == 0
    for slot in range(len(slots)):
        slots[slot] = NONE
    for row in range(len(pcs)):
        space, shape, base = spaces[row], shapes[row], bases[row]
        site = pcs[row] * SPACES + space
        if space >= SPACES or kinds[site] < 0:
            many = -1 - row
            break
        place = (space << SPACE_SHIFT) + base
        if place < begin or place >= end:
            zone = find_zone(zones, place)
            begin, end = -FAR if zone == 0 else zones[zone - 1], zones[zone]
        over = place + lows[shape] < begin or place + highs[shape] + widths[site] > end
        mixed, phase = int(over), base & (period - 1) if is_power else base % period
        if last < 0 or not is_same(found, last, site, shape, phase, zone, mixed):
            last = find(slots, found, many, site, shape, phase, zone, mixed)
            many += int(last == many)
        number[row] = last
    return many


def find(
    slots: Any, found: Any, many: int, site: int, shape: int, phase: int, zone: int, mixed: int
) -> int:
    """Return the number of a row that may be among the `many` that are known, or the next one."""
    mask = len(slots) - 1
    slot = (((shape * 31 + site) * 4099 + phase) * SPREAD >> 7) & mask
    while slots[slot] >= 0:
        if is_same(found, slots[slot], site, shape, phase, zone, mixed):
            return slots[slot]  # type: ignore[no-any-return]
        slot = (slot + 1) & mask
    slots[slot] = many
    found[SITE, many] = site
    found[SHAPE, many] = shape
    found[PHASE, many] = phase
    found[ZONE, many] = zone
    found[MIXED, many] = mixed
    return many


def is_same(
    found: Any, number: int, site: int, shape: int, phase: int, zone: int, mixed: int
) -> bool:
    """Whether a distinct row is this one."""
    return bool(
        found[SHAPE, number] == shape
        and found[PHASE, number] == phase
        and found[SITE, number] == site
        and found[ZONE, number] == zone
        and found[MIXED, number] == mixed
    )


def find_zone(zones: Any, place: int) -> int:
    """Return the first zone that ends behind a place."""
    low, high = 0, len(zones) - 1
    while low < high:
        middle = (low + high) // 2
        if zones[middle] > place:
            high = middle
        else:
            low = middle + 1
    return low


def count_scopes(number: Any, block: Any, first: int, scope: Any, times: Any) -> None:
    """Count how often each number occurs in each scope, `times` (numbers, scopes), zeros at first.

    `scope` has that of each block from `first` on.
    """
    for row in range(len(number)):
        times[number[row], scope[block[row] - first]] += 1


def find_ends(offsets: Any, low: Any, high: Any) -> None:
    """Set the smallest and the greatest of each row of offsets, (n, lanes)."""
    for row in range(len(offsets)):
        least = greatest = offsets[row, 0]
        for lane in range(1, offsets.shape[1]):
            least = min(least, offsets[row, lane])
            greatest = max(greatest, offsets[row, lane])
        low[row] = least
        high[row] = greatest


def sum_groups(
    rows: Any, group: Any, table: Any, number: Any, times: Any, many: Any, sums: Any
) -> None:
    """Add up what rows of each group have, row i `table[:, number[i]]`, `times[i]` times.

    `rows` and `group` (m,); `times` (n, scopes); `many` (scopes, groups), how often they occurred,
    and `sums` (scopes, groups, columns) are zeros at first.
    """
    for place in range(len(rows)):
        row, whose = rows[place], group[place]
        asked = number[row]
        for scope in range(times.shape[1]):
            often = times[row, scope]
            if often:
                many[scope, whose] += often
                for column in range(len(table)):
                    sums[scope, whose, column] += often * table[column, asked]


def add_up(values: Any, group: Any, sums: Any) -> None:
    """Add each value to the sum of its group; both (n,), `sums` (groups,)."""
    for place in range(len(values)):
        sums[group[place]] += values[place]
