"""Recent rows: filter accesses that repeat a recent one; a loop for `jit/loop.py` to compile.

Kernels repeat the same loads. A reader that needs the set of rows, but not their frequencies, skips
nearly all of them.
"""

from ....jit.structure import Column

WORTH = 1 << 13
"""Rows from which on the compiled loop pays."""
SLOT_BITS = 16
_LOW = (1 << 40) - 1


def choose_new(
    pc: Column,
    space: Column,
    base: Column,
    pattern: Column,
    bases: Column,
    others: Column,
    rows: Column,
) -> int:
    """Set the first of `rows` to the rows (n,) that differ from the last row in their slot of a
    direct-mapped table, and return their number.

    `bases` and `others` have 1 << SLOT_BITS slots with the last rows; `others` are -1 at first.
    """
    many = 0
    for row in range(len(pc)):
        here, other = base[row], (pattern[row] << 31 | pc[row]) << 3 | space[row]
        slot = ((here & _LOW) * 40503 + other * 25033) >> 7 & (1 << SLOT_BITS) - 1
        if bases[slot] != here or others[slot] != other:
            bases[slot], others[slot] = here, other
            rows[many] = row
            many += 1
    return many
