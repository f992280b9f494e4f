"""Stack distances in one pass: plain integers, so that `native` can compile the loop.

The distance of an access is how many other lines were accessed since the last access to its own. A
Fenwick tree over the turns of accesses holds a one at the last access of each line (Olken 1981),
so an access costs the logarithm of their number.

- `lines`: (n,), each line as a number from 0 on, in order of access.
- `last`: (room,), the turn of each line's last access, from 1 on; 0 for none.
- `tree`: (turns + 1,), with room for n turns behind `turn`, the last one; `live` lines have one.
- `distances`: (n,), is written: the distance, or -1 for the first access of a line.
"""

from typing import Any


def measure(lines: Any, last: Any, tree: Any, distances: Any, turn: int, live: int) -> None:
    """Write the distance of each access."""
    for place in range(len(lines)):
        line, now = lines[place], turn + place + 1
        earlier = last[line]
        if earlier == 0:
            distances[place] = -1
            live += 1
        else:
            distances[place] = live - count(tree, earlier)
            add(tree, earlier, -1)
        add(tree, now, 1)
        last[line] = now


def add(tree: Any, turn: int, amount: int) -> None:
    """Add to what is counted at a turn."""
    while turn < len(tree):
        tree[turn] += amount
        turn += turn & (0 - turn)


def count(tree: Any, turn: int) -> int:
    """Return what is counted up to a turn, itself included."""
    total = 0
    while turn > 0:
        total += tree[turn]
        turn -= turn & (0 - turn)
    return total
