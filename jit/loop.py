"""Loops: plain Python functions over arrays, called as machine code where there are rows enough.

Below a threshold of rows they run as they are. Either way they take the same arrays, and numbers,
and (named) tuples of these. The Python body is the definition.
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
from .value import Kind, bits_of, lower, remake, words_of


@cache
def compile_module(name: str) -> ModuleType:
    """Return a copy of a module with functions of machine code, each compiled at its first call.

    They have the signatures of the module's own, but take and return integers for booleans.
    """
    return _copy_module(name, _Loop)


@cache
def interpret_module(name: str) -> ModuleType:
    """Return a copy of a module whose functions take arrays as they do when they are compiled."""
    return _copy_module(name, _Interpreted)


class _Interpreted:
    """A function that is not compiled. It gets memoryviews, whose elements are Python's integers
    and twice as fast to reach as those of arrays.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self._function(*map(_view, arguments))


def _view(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return remake(value, map(_view, value))
    if isinstance(value, np.ndarray):
        return value.data
    return value.item() if isinstance(value, np.generic) else value


def _copy_module(name: str, call: Callable[[Callable[..., Any]], Any]) -> ModuleType:
    """Return a copy of a module with other objects for its functions."""
    module = import_module(name)
    copy = ModuleType(name, module.__doc__)
    vars(copy).update(vars(module))
    for member, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == name:
            setattr(copy, member, call(function))
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
        assert not hasattr(result, "_fields"), "a loop returns plain tuples"
        return f"{result!r}\n{text}"

    checks = os.environ.get(CHECKED, "")
    header, _, text = cached_text([function], repr(kinds), checks, make=make).partition("\n")
    with SYNTAX_LOCK:
        return text, ast.literal_eval(header)


NEAR = 64
"""Bytes of a line of the processor's cache."""

rows_asked: Counter[str] = Counter()
"""Rows so far per module of loops: they decide when compiling pays."""


def loops_of(module: ModuleType, rows: int) -> ModuleType:
    """Return the loops of a module: compiled once its rows, these `rows` included, exceed its
    WORTH, and as they are before.
    """
    rows_asked[module.__name__] += rows
    is_worth = rows_asked[module.__name__] > module.WORTH
    return (compile_module if is_worth else interpret_module)(module.__name__)


def extend(values: NDArray[Any], size: int, more: int) -> NDArray[Any]:
    """Return an array of at least `size`, padded with `more`."""
    missing = size - len(values)
    if missing <= 0:
        return values
    return np.concatenate([values, np.full(max(missing, len(values) // 2), more, values.dtype)])


def aligned(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of `size` items, aligned to a line of the processor's cache."""
    buffer = np.empty(size * dtype.itemsize + NEAR, np.uint8)
    past = -buffer.ctypes.data % NEAR
    return buffer[past : past + size * dtype.itemsize].view(dtype)
