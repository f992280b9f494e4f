"""Loops over rows: number, count and repeat them.

They work on plain integers and sequences, so that `jit/loop.py` can compile them. Few rows are
numbered without compiling.

- `rows`: (pc, space, base, block), each (n,), as the trace has them.
- `named`: (pattern, first, shape): the rows' patterns, (n,), and the shape of each pattern from
  `first` on. A shape is an index in `low` and `high`.
- `sites`: (kind, width), each (pcs * SPACES,), as in `Sites`.
- `reach`: (low, high), each (shapes,): the lowest and the highest offset of a shape's lanes.
- `zones`: the end of each zone, (zones,); the last one has none.
- `slots`: an open-addressing hash table of indices in `found`, or NONE. Its size is a power of two,
  at least twice the number of rows.
- `found`: (FIELDS, n) at least: site, shape, phase, zone and mixed of each distinct row.
- `runs`: (3, n) at least: runs of adjacent equal rows of one block: the number of the distinct row,
  the block, and the length.
- `buffers`: slots, found and runs.
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
    """Return whether every pattern that occurs has a shape in `shapes`, which begins at `first`."""
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
    """Number the rows by distinct row; return the number of distinct rows, and of runs.

    Returns -1 - i as the first number if row i is in a space that its instruction cannot reach.
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
    """Return the number of a row among the `many` known ones, or the next number if it is new."""
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
    """Return whether a distinct row has these fields."""
    return bool(
        table[SHAPE, number] == shape
        and table[PHASE, number] == phase
        and table[SITE, number] == site
        and table[ZONE, number] == zone
        and table[MIXED, number] == mixed
    )


def find_zone(zones: Any, place: int) -> int:
    """Return the first zone that ends after a place."""
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

    `runs` (3, n) as above; `scope` is the scope per block from `first` on.
    """
    for run in range(runs.shape[1]):
        times[runs[NUMBER, run], scope[runs[BLOCK, run] - first]] += runs[LENGTH, run]


def find_ends(offsets: Any, low: Any, high: Any) -> None:
    """Set the minimum and the maximum of each row of offsets, (n, lanes)."""
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


def repeat(pool: Any, stride: Any, rows: Any, requests: Any) -> None:
    """Expand rows to their requests, row by row.

    `pool` is (first, kind, address), as in `Pool`; `stride` (kinds,) are the bytes that a request
    moves for each byte that its row moves. `rows` are (number, shift, row), each (n,); `requests`
    are (address, kind, row), each (requests,).
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
