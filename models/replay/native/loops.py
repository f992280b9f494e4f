"""The compiled loops of a replay, each from so many rows of a process on that they pay."""

from types import ModuleType

from ..count import counting, repeating
from ..ordered import held_rows
from ..rows import touching
from ..schedule import turns
from .compiled import compile_if_worth

TOUCHING_WORTH = 1 << 15
COUNTING_WORTH = 1 << 15
REPEATING_WORTH = 1 << 15
HOLDING_WORTH = ORDERING_WORTH = 1 << 12
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


def holding_loops(rows: int) -> ModuleType | None:
    """Return the loops of `held_rows.py`, `rows` more being there for them, if they pay."""
    return compile_if_worth(held_rows.__name__, rows, HOLDING_WORTH)


def ordering_loops(rows: int) -> ModuleType | None:
    """Return the loops of `turns.py`, `rows` more being there for them, if they pay."""
    return compile_if_worth(turns.__name__, rows, ORDERING_WORTH)
