"""What loops may call beyond Python's own: functions that LLVM has, and texts that are written out.

All but `invoke` and texts do in Python what they do in machine code.
"""

from collections.abc import Callable
from typing import Any

from .structure import Struct


def prefetch(element: Any) -> None:
    """Have the place of `array[index]` brought near; only loops that are compiled need it."""


def trailing_zeros(x: int) -> int:
    """Return the place of the lowest one bit."""
    return (x & -x).bit_length() - 1


def invoke(function: int, context: Struct) -> int:
    """Call a compiled function by its address; only compiled code can."""
    raise NotImplementedError


def assembly(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function whose compiled form is written out: LLVM assembly that defines its name."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__["assembly"] = text
        return function

    return mark
