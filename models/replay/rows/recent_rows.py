"""Recent rows: accesses that repeat one that came shortly before; a loop for `compiled.py`.

Kernels load the same again and again. Whoever asks only which rows there are, and not how often,
is spared nearly all of them.
"""

from typing import Any

WORTH = 1 << 15
"""Rows from which on the compiled loop pays."""
SLOT_BITS = 16
_LOW = (1 << 40) - 1


def choose_new(
    pc: Any, space: Any, base: Any, pattern: Any, bases: Any, others: Any, rows: Any
) -> int:
    """Set the first of `rows` to the rows (n,) that are not the last seen in their slots, and
    return how many they are.

    `bases` and `others`, with 1 << SLOT_BITS slots of which the latter are -1 at first, hold what
    was seen last.
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
