"""Compiled loops: plain Python functions, called as machine code."""

import ctypes
import inspect
import struct
from array import array
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from .control_flow import SYNTAX_LOCK
from .loop_text import loop_text
from .machine_code import compile_assembly
from .value import Kind, lower, words_of


@cache
def compile_module(name: str) -> ModuleType:
    """Return a copy of a module whose functions are machine code, each compiled when first called.

    They take and return what the module's own do, but integers for booleans.
    """
    module = import_module(name)
    copy = ModuleType(name, module.__doc__)
    vars(copy).update(vars(module))
    for member, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == name:
            setattr(copy, member, _Loop(function))
    return copy


class _Loop:
    """A function, compiled for each kinds of arguments that it was called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._made: dict[tuple[Kind, ...], tuple[Callable[[int], None], Kind]] = {}

    def __call__(self, *given: Any) -> Any:
        """Call it."""
        words: list[int] = []
        kinds = tuple([lower(value, words, _bits) for value in given])
        run, result = self._made.get(kinds) or self._make(kinds)
        room = array("q", (*words, *(0 for _ in words_of(result))))
        run(room.buffer_info()[0])
        return _result(result, iter(room))

    def _make(self, kinds: tuple[Kind, ...]) -> tuple[Callable[[int], None], Kind]:
        with SYNTAX_LOCK:
            text, result = loop_text(self._function, kinds, "loop")
        code = compile_assembly(text)("loop")
        self._made[kinds] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code), result
        return self._made[kinds]


def _bits(value: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


def _result(kind: Kind, words: Any) -> Any:
    if isinstance(kind, tuple):
        return tuple(_result(item, words) for item in kind) if kind else None
    return next(words)
