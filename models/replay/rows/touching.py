"""Footprints: the bytes, sectors and lines that groups of lanes touch.

`jit/loop.py` compiles the loops.

- `ordered`: (n, lanes), the active lanes' addresses in rising order, then NONE.
- `width`: bytes per lane.
"""

from ....jit.structure import Column

NONE = (1 << 63) - (1 << 12)
LAST = (1 << 31) - 1
WORTH = 1 << 10
"""Rows from which on the compiled loops pay."""
SECTOR_BITS, SECTORS_BITS = 5, 2
"""The bits of a byte's place in its sector, and of a sector's place in its line."""
LINE_BITS = SECTOR_BITS + SECTORS_BITS
WITHIN = (1 << LINE_BITS) - 1
"""The mask of an address within its line."""


def lie_apart(base: int, ordered: Column, row: int, many: int, width: int) -> bool:
    """Return whether each of the first `many` lanes of a row is within one sector, and any two are
    equal or disjoint.
    """
    bits = 0
    for lane in range(ordered.shape[1]):
        bits |= (base + ordered[row, lane]) * int(lane < many)
    return width <= 1 << SECTOR_BITS and width & (width - 1) == 0 and bits & (width - 1) == 0


def count_apart(first: int, ordered: Column, row: int, many: int) -> tuple[int, int, int]:
    """Return the number of distinct offsets among the first `many` of a row, which rise, and of
    their sectors and lines; `first` is the place of offset 0 in its line.
    """
    different, sectors, lines = 1, 1, 1
    for lane in range(1, ordered.shape[1]):
        here, before = first + ordered[row, lane], first + ordered[row, lane - 1]
        on = int(lane < many)
        different += on & int(here != before)
        sectors += on & int(here >> SECTOR_BITS != before >> SECTOR_BITS)
        lines += on & int(here >> LINE_BITS != before >> LINE_BITS)
    return different, sectors, lines


def count_touched(
    base: Column, ordered: Column, lanes: Column, width: Column, distinct: Column, lines: Column
) -> None:
    """Count the footprint of rows: `distinct` bytes (n,), and `lines` (n, 4), zeros at first, with
    1, 2, 3 or 4 touched sectors.

    The first `lanes` (n,) of `ordered` are offsets from `base` (n,), rising; each lane touches
    `width` (n,) bytes.
    """
    for row in range(len(base)):
        if lanes[row] and lie_apart(base[row], ordered, row, lanes[row], width[row]):
            places, sectors, many = count_apart(base[row] & WITHIN, ordered, row, lanes[row])
            if sectors == many or sectors == many << SECTORS_BITS:
                distinct[row] = places * width[row]
                lines[row, sectors // many - 1] = many
                continue
        total, end, sector, line, many = 0, base[row] - 2 * LAST, -NONE, -NONE, 0
        for lane in range(lanes[row]):
            address = base[row] + ordered[row, lane]
            total += width[row] - max(0, end - address)
            end = address + width[row]
            first, last = max(sector + 1, address >> SECTOR_BITS), (end - 1) >> SECTOR_BITS
            line, many = add_units(first, last, SECTORS_BITS, line, many, lines, row)
            sector = max(sector, last)
        if many:
            lines[row, many - 1] += 1
        distinct[row] = total


def add_units(
    first: int, last: int, per_line: int, line: int, many: int, lines: Column, row: int
) -> tuple[int, int]:
    """Add the units from `first` to `last` to the `many` of a line; return the last one's line, and
    its units so far. A line that has all its units is counted in `lines[row]`.
    """
    for unit in range(first, last + 1):
        if unit >> per_line != line:
            if many:
                lines[row, many - 1] += 1
            line, many = unit >> per_line, 0
        many += 1
    return line, many


def count_bytes(ordered: Column, width: int, distinct: Column) -> None:
    """Set the number of distinct bytes of each group, `distinct` (n,)."""
    for group in range(len(ordered)):
        total, end = 0, ordered[group, 0]
        for lane in range(ordered.shape[1]):
            address = ordered[group, lane]
            if address == NONE:
                break
            total += width - max(0, end - address)
            end = address + width
        distinct[group] = total


def count_units(ordered: Column, width: int, shift: int, per_line: int, together: Column) -> None:
    """Count the aligned units of 1 << `shift` bytes that each group touches.

    `together` (n, units per line), zeros at first, is the number of lines with 1, 2, ... touched
    units; a line has 1 << `per_line` units.
    """
    for group in range(len(ordered)):
        unit, line, many = -NONE, -NONE, 0
        for lane in range(ordered.shape[1]):
            address = ordered[group, lane]
            if address == NONE:
                break
            first, last = max(unit + 1, address >> shift), (address + width - 1) >> shift
            line, many = add_units(first, last, per_line, line, many, together, group)
            unit = max(unit, last)
        if many:
            together[group, many - 1] += 1
