"""Repeating what distinct rows pass on, for all rows that are like them.

Plain integers and sequences for `compiled.py`, called by `pool.py`, which says the same in arrays.
"""

from typing import Any


def repeat(pool: Any, stride: Any, rows: Any, made: Any) -> None:
    """Make the requests of rows, one row's after another's.

    `pool` is (first, kind, address), as `Pool` has them, and `stride` (kinds,) by how many bytes a
    request moves for each byte that its row does. `rows` are (number, shift, row), each (n,), and
    `made` are (address, kind, row), each (requests,).
    """
    first, kinds, addresses = pool
    numbers, shifts, whose = rows
    many = 0
    for place in range(len(numbers)):
        number, shift = numbers[place], shifts[place]
        for one in range(first[number], first[number + 1]):
            made[0][many] = addresses[one] + shift * stride[kinds[one]]
            made[1][many] = kinds[one]
            made[2][many] = whose[place]
            many += 1
