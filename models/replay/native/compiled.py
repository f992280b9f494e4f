"""Compiling plain loops where there is much to do: with Numba if it is there, else not at all.

Importing Numba and loading what it compiled takes about a second, so little work is done without.
What it compiles is kept on disk, beside the source or in the user's cache.
"""

import importlib.util
import inspect
import warnings
from collections import Counter
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ..seam import Ints

rows_asked: Counter[str] = Counter()
"""Rows that have come for each module's loops: what tells a small trace from a large one."""


def compile_if_worth(name: str, rows: int, worth: int) -> ModuleType | None:
    """Return `compile_module(name)` once more than `worth` rows have come, these `rows` included;
    None before."""
    rows_asked[name] += rows
    return compile_module(name) if rows_asked[name] > worth else None


@cache
def compile_module(name: str) -> ModuleType | None:
    """Return a copy of a module whose functions are compiled, or None without Numba."""
    try:
        import numba
    except ImportError:
        warnings.warn("without Numba, caches take about a hundred times as long", stacklevel=2)
        return None
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    # what is compiled here makes no arrays: counting who has them takes half of a loop's time
    # and is put into one function: an array is seven arguments, and calls cost as much as the work
    options: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
    options["forceinline"] = True
    decorate = numba.njit(**options)
    for member, function in inspect.getmembers(copy, inspect.isfunction):
        setattr(copy, member, decorate(function))
    return copy


def extend(values: Any, size: int, more: int) -> Any:
    """Return a list or an array with `more` repeated behind it, `size` long or longer."""
    missing = size - len(values)
    if missing <= 0:
        return values
    missing = max(missing, len(values) // 2)
    if isinstance(values, list):
        return values + [more] * missing
    return np.concatenate([values, np.full(missing, more, np.int64)])


def as_list(values: Any) -> list[int]:
    """Return a sequence of integers as loops that are not compiled want it."""
    return values if isinstance(values, list) else values.tolist()


def as_array(values: Any) -> Ints:
    """Return a sequence of integers as compiled loops want it."""
    return np.asarray(values, np.int64)
