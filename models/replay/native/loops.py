"""The compiled loops of a replay, each from so many rows of a process on that they pay."""

from types import ModuleType

from ..count import counting, repeating
from ..rows import touching
from .compiled import compile_if_worth

TOUCHING_WORTH = 1 << 15
COUNTING_WORTH = 1 << 15
REPEATING_WORTH = 1 << 15
"""Rows; caches, if a device has any, load a compiler before so many have come."""


def touching_loops(rows: int) -> ModuleType | None:
    """Return the loops of `touching.py`, `rows` more being there for them, if they pay."""
    return compile_if_worth(touching.__name__, rows, TOUCHING_WORTH)


def counting_loops(rows: int) -> ModuleType | None:
    """Return the loops of `counting.py`, `rows` more being there for them, if they pay."""
    return compile_if_worth(counting.__name__, rows, COUNTING_WORTH)


def repeating_loops(rows: int) -> ModuleType | None:
    """Return the loops of `repeating.py`, `rows` more being there for them, if they pay."""
    return compile_if_worth(repeating.__name__, rows, REPEATING_WORTH)
