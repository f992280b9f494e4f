"""Invariants of a wave, asserted at run time if CUTRACE_INVARIANTS is set, as in tests."""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from ..ops.lanes import Array
from .stack_entry import StackEntry


def asserted() -> bool:
    """Return whether invariants are asserted."""
    return bool(os.environ.get("CUTRACE_INVARIANTS"))


def require_registers(
    frame: Sequence[Array], zeros: Sequence[Array], slots: Iterable[int], shape: tuple[int, int]
) -> None:
    """Assert that values have their register's width and a shape that broadcasts to the lanes."""
    for slot in slots:
        value, zero = frame[slot], zeros[slot]
        assert value.dtype.itemsize == zero.dtype.itemsize, f"register {slot} has another width"
        assert np.broadcast_shapes(value.shape, shape) == shape, f"register {slot} has other lanes"


def require_tree(stack: Sequence[StackEntry]) -> None:
    """Assert that masks of entries are disjoint, but for those of their ancestors."""
    above: dict[int, None] = {}  # each mask once: deep recursion has thousands of entries
    for entry in stack:
        fit = all(entry.mask & mask in (0, entry.mask) for mask in above)
        assert fit, "splits of a warp have some lanes in common"
        above[entry.mask] = None
