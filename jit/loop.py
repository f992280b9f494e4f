"""Compiled loops: call plain Python functions as machine code, where there are rows enough.

Below a threshold of rows, plain Python or NumPy does the work.
"""

import ast
import ctypes
import inspect
import os
from array import array
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .codegen_cache import cached_text
from .loop_codegen import loop_text
from .loop_expression import CHECKED, SYNTAX_LOCK
from .machine_code import compile_assembly
from .value import Kind, bits_of, lower, words_of


@cache
def compile_module(name: str) -> ModuleType:
    """Return a copy of a module with functions of machine code, each compiled at its first call.

    They have the signatures of the module's own, but take and return integers for booleans.
    """
    module = import_module(name)
    copy = ModuleType(name, module.__doc__)
    vars(copy).update(vars(module))
    for member, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == name:
            setattr(copy, member, _Loop(function))
    return copy


class _Loop:
    """A function, compiled once per tuple of argument kinds."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._made: dict[tuple[Kind, ...], tuple[Callable[[int], None], Kind]] = {}
        self._latest: tuple[tuple[Kind, ...], Callable[[int], None], Kind] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        words: list[int] = []
        kinds = tuple([lower(value, words, bits_of) for value in arguments])
        latest = self._latest
        if latest is None or kinds != latest[0]:  # several times faster than a hash
            latest = self._latest = kinds, *(self._made.get(kinds) or self._make(kinds))
        _, run, result = latest
        buffer = array("q", (*words, *(0 for _ in words_of(result))))
        run(buffer.buffer_info()[0])
        return _result(result, iter(buffer))

    def _make(self, kinds: tuple[Kind, ...]) -> tuple[Callable[[int], None], Kind]:
        text, result = _text(self._function, kinds)
        code = compile_assembly(text)("loop")
        self._made[kinds] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code), result
        return self._made[kinds]


def _result(kind: Kind, words: Any) -> Any:
    if isinstance(kind, tuple):
        return tuple(_result(item, words) for item in kind) if kind else None
    return next(words)


def _text(function: Callable[..., Any], kinds: tuple[Kind, ...]) -> tuple[str, Kind]:
    """Translate a loop, or load its text from the cache."""

    def make() -> str:
        text, result = loop_text(function, kinds, "loop")
        return f"{result!r}\n{text}"

    checks = os.environ.get(CHECKED, "")
    header, _, text = cached_text([function], repr(kinds), checks, make=make).partition("\n")
    with SYNTAX_LOCK:
        return text, ast.literal_eval(header)


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


def as_array(values: Any) -> NDArray[np.int64]:
    """Return a sequence of integers as compiled loops take it."""
    return np.asarray(values, np.int64)


def aligned(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of `size` items, aligned to a line of the processor's cache."""
    buffer = np.empty(size * dtype.itemsize + NEAR, np.uint8)
    past = -buffer.ctypes.data % NEAR
    return buffer[past : past + size * dtype.itemsize].view(dtype)
