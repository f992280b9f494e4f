"""Compiled loops for many rows: below a threshold, plain Python or NumPy does the work."""

from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.loop import compile_module
from .model import Ints

NEAR = 64
"""Bytes of a line of the processor's cache."""

rows_asked: Counter[str] = Counter()
"""Rows so far per module of loops: they decide when compiling pays."""


def compile_if_worth(loops: ModuleType, rows: int) -> ModuleType | None:
    """Return the compiled loops of a module once its rows, these `rows` included, exceed its WORTH;
    None before.
    """
    rows_asked[loops.__name__] += rows
    return compile_module(loops.__name__) if rows_asked[loops.__name__] > loops.WORTH else None


def extend(values: Any, size: int, more: int) -> Any:
    """Return a list or an array of at least `size`, padded with `more`."""
    missing = size - len(values)
    if missing <= 0:
        return values
    missing = max(missing, len(values) // 2)
    if isinstance(values, list):
        return values + [more] * missing
    return np.concatenate([values, np.full(missing, more, np.int64)])


def as_list(values: Any) -> list[int]:
    """Return a sequence of integers as uncompiled loops take it."""
    return values if isinstance(values, list) else values.tolist()


def as_lists(values: Any) -> Any:
    """Return numbers, arrays, and tuples of these as uncompiled loops take them."""
    if isinstance(values, tuple):
        return tuple(map(as_lists, values))
    return values.tolist() if isinstance(values, np.ndarray) else values


def as_array(values: Any) -> Ints:
    """Return a sequence of integers as compiled loops take it."""
    return np.asarray(values, np.int64)


def aligned(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of `size` items, aligned to a line of the processor's cache."""
    buffer = np.empty(size * dtype.itemsize + NEAR, np.uint8)
    past = -buffer.ctypes.data % NEAR
    return buffer[past : past + size * dtype.itemsize].view(dtype)
