"""What values are computed from, without regard to the order of instructions."""

from collections.abc import Hashable, Iterable, Set
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)


def spread(steps: Iterable[tuple[Iterable[Value], Iterable[Value], bool]]) -> Set[Value]:
    """Return the values that have a property, or are computed from values that have it.

    A step is what an instruction writes, what it reads, and whether the property begins there.
    """
    known = [(set(written), set(read), begins) for written, read, begins in steps]
    found: set[Value] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for written, read, begins in known:
            if begins or not found.isdisjoint(read):
                found |= written
    return found
