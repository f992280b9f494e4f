"""What lanes touch of memory, a loop over one group of lanes after another.

Plain integers and sequences for `compiled.py`; `lanes.py` and `transactions.py` say the same in
arrays, which is quick where groups are few.

- `ordered`: (n, lanes), the active lanes' addresses in rising order, NONE behind.
- `width`: bytes a lane.
"""

from typing import Any

NONE = (1 << 63) - (1 << 12)


def count_bytes(ordered: Any, width: int, distinct: Any) -> None:
    """Set how many different bytes each group touches, `distinct` (n,)."""
    for group in range(len(ordered)):
        total, end = 0, ordered[group, 0]
        for lane in range(ordered.shape[1]):
            address = ordered[group, lane]
            if address == NONE:
                break
            total += width - max(0, end - address)
            end = address + width
        distinct[group] = total


def count_units(ordered: Any, width: int, shift: int, per_line: int, together: Any) -> None:
    """Count the aligned units of 1 << `shift` bytes that each group touches.

    `together` (n, units of a line), zeros at first, is how many lines have 1, 2, ... of them; the
    units of a line are 1 << `per_line`.
    """
    for group in range(len(ordered)):
        unit, line, many = -NONE, -NONE, 0
        for lane in range(ordered.shape[1]):
            address = ordered[group, lane]
            if address == NONE:
                break
            last = (address + width - 1) >> shift
            if last > unit:
                unit = max(unit + 1, address >> shift)
                while unit <= last:
                    if unit >> per_line != line:
                        if many:
                            together[group, many - 1] += 1
                        line, many = unit >> per_line, 0
                    many += 1
                    unit += 1
                unit = last
        if many:
            together[group, many - 1] += 1
