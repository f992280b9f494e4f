"""Asking for memory before it is needed: a processor waits for many places at once."""

from typing import Any


def prefetch(element: Any) -> None:
    """Have the place of `array[index]` brought near; only loops that are compiled need it."""
