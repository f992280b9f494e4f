"""Loops over rows: numbering, counting and repeating them.

Plain integers and sequences for `compiled.py`. Few rows are numbered without compiling.

- `rows`: (pc, space, base, block), each (n,), as the trace has them.
- `named`: (pattern, first, shape): the rows' patterns, (n,), and the shape of each pattern from
  `first` on. A shape is one that `low` and `high` know.
- `sites`: (kind, width), each (pcs * SPACES,), as `Sites` has them.
- `reach`: (low, high), each (shapes,): from where to where the lanes of a shape reach.
- `zones`: where each zone ends, (zones,), the last one never.
- `slots`: twice as many as rows or more, a power of two: places in `found`, or NONE.
- `found`: (FIELDS, n) at least: site, shape, phase, zone and mixed of each distinct row.
- `runs`: (3, n) at least: neighbours that are the same row and of one block: the number of the
  distinct row, the block, and how many they are.
- `made`: slots, found and runs.
"""

from typing import Any

NONE, FIELDS, SPACES, SPACE_SHIFT = -1, 5, 8, 56
SITE, SHAPE, PHASE, ZONE, MIXED = 0, 1, 2, 3, 4
NUMBER, BLOCK, LENGTH = 0, 1, 2
FAR = 1 << 62
SPREAD = 0x9E3779B1
WORTH = 1 << 14
"""Rows from which on the compiled loops pay."""


def mark_patterns(pattern: Any, first: int, flags: Any) -> None:
    """Mark the patterns that occur, `flags` (patterns from `first` on,)."""
    last = NONE
    for row in range(len(pattern)):
        if pattern[row] != last:
            last = pattern[row]
            flags[last - first] = True


def all_known(pattern: Any, first: int, shapes: Any) -> bool:
    """Whether `shapes`, of patterns from `first` on to the last, has one for each that occurs."""
    last = NONE
    for row in range(len(pattern)):
        if pattern[row] != last:
            last = pattern[row]
            if shapes[last - first] < 0:
                return False
    return True


def number_rows(
    rows: Any, named: Any, sites: Any, reach: Any, zones: Any, period: int, buffers: Any
) -> tuple[int, int]:
    """Number the rows by the distinct ones; return how many of these there are, and how many runs.

    Returns -1 - i in place of the first if row i lies in a space that its instruction cannot reach.
    """
    pcs, spaces, bases, blocks = rows
    patterns, first, shapes = named
    slots, table, runs = buffers
    kinds, widths = sites
    lows, highs = reach
    many, count, row, number = 0, 0, 0, NONE
    pc, space, pattern, phase = NONE, NONE, NONE, NONE
    zone, begin, end, lowest, highest = 0, FAR, FAR, FAR, -FAR
    is_power, mask = period & (period - 1) == 0, period - 1
    for slot in range(len(slots)):
        slots[slot] = NONE
    while row < len(pcs):
        base = bases[row]
        if not (
            pcs[row] == pc
            and spaces[row] == space
            and patterns[row] == pattern
            and base & mask == phase
            and lowest <= base <= highest
        ):
            pc, space, pattern = pcs[row], spaces[row], patterns[row]
            site, shape = pc * SPACES + space, shapes[pattern - first]
            if space >= SPACES or kinds[site] < 0:
                return -1 - row, count
            window = space << SPACE_SHIFT
            if window + base < begin or window + base >= end:
                zone = find_zone(zones, window + base)
                begin, end = -FAR if zone == 0 else zones[zone - 1], zones[zone]
            low, high = begin - window, end - window
            before, tail = lows[shape], highs[shape] + widths[site]
            mixed = int(base + before < low or base + tail > high)
            phase = base & mask if is_power else base % period
            number = find(slots, table, many, site, shape, phase, zone, mixed)
            many += int(number == many)
            if is_power and not mixed:
                lowest, highest = low - min(0, before), high - max(1, tail)
            else:
                lowest, highest = FAR, -FAR
        start, block = row, blocks[row]
        row += 1
        while (
            row < len(pcs)
            and blocks[row] == block
            and pcs[row] == pc
            and spaces[row] == space
            and patterns[row] == pattern
            and bases[row] & mask == phase
            and lowest <= bases[row] <= highest
        ):
            row += 1
        runs[NUMBER, count] = number
        runs[BLOCK, count] = block
        runs[LENGTH, count] = row - start
        count += 1
    return many, count


def find(
    slots: Any, table: Any, many: int, site: int, shape: int, phase: int, zone: int, mixed: int
) -> int:
    """Return the number of a row that may be among the `many` that are known, or the next one."""
    mask = len(slots) - 1
    slot = (((shape * 31 + site) * 4099 + phase) * SPREAD >> 7) & mask
    while slots[slot] >= 0:
        if is_same(table, slots[slot], site, shape, phase, zone, mixed):
            return slots[slot]  # type: ignore[no-any-return]
        slot = (slot + 1) & mask
    slots[slot] = many
    table[SITE, many] = site
    table[SHAPE, many] = shape
    table[PHASE, many] = phase
    table[ZONE, many] = zone
    table[MIXED, many] = mixed
    return many


def is_same(
    table: Any, number: int, site: int, shape: int, phase: int, zone: int, mixed: int
) -> bool:
    """Whether a distinct row is this one."""
    return bool(
        table[SHAPE, number] == shape
        and table[PHASE, number] == phase
        and table[SITE, number] == site
        and table[ZONE, number] == zone
        and table[MIXED, number] == mixed
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


def count_scopes(runs: Any, first: int, scope: Any, times: Any) -> None:
    """Count how often each number occurs in each scope, `times` (numbers, scopes), zeros at first.

    `runs` (3, n) as above; `scope` has that of each block from `first` on.
    """
    for run in range(runs.shape[1]):
        times[runs[NUMBER, run], scope[runs[BLOCK, run] - first]] += runs[LENGTH, run]


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
        row, owner = rows[place], group[place]
        index = number[row]
        for scope in range(times.shape[1]):
            often = times[row, scope]
            if often:
                many[scope, owner] += often
                for column in range(len(table)):
                    sums[scope, owner, column] += often * table[column, index]


def repeat(pool: Any, stride: Any, rows: Any, requests: Any) -> None:
    """Make the requests of rows, one row's after another's.

    `pool` is (first, kind, address), as `Pool` has them, and `stride` (kinds,) by how many bytes a
    request moves for each byte that its row does. `rows` are (number, shift, row), each (n,), and
    `requests` are (address, kind, row), each (requests,).
    """
    first, kinds, addresses = pool
    numbers, shifts, owners = rows
    many = 0
    for place in range(len(numbers)):
        number, shift = numbers[place], shifts[place]
        for one in range(first[number], first[number + 1]):
            requests[0][many] = addresses[one] + shift * stride[kinds[one]]
            requests[1][many] = kinds[one]
            requests[2][many] = owners[place]
            many += 1


def add_up(values: Any, group: Any, sums: Any) -> None:
    """Add each value to the sum of its group; both (n,), `sums` (groups,)."""
    for place in range(len(values)):
        sums[group[place]] += values[place]
