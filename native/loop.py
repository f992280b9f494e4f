"""Compiled loops: plain Python functions, called as machine code."""

import ast
import ctypes
import inspect
import os
import struct
from array import array
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ..cache import keep, key_of, load
from .loop_expression import CHECKED
from .loop_text import loop_text
from .machine_code import compile_assembly
from .value import Kind, lower, words_of

TEXTS, MOST_BYTES = "loops", 1 << 26
"""What loops are kept as between runs, in LLVM assembly, and how many bytes of them: to translate
those of one replay takes a twelfth of a second."""


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
        text, result = _text(self._function, kinds)
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


def _text(function: Callable[..., Any], kinds: tuple[Kind, ...]) -> tuple[str, Kind]:
    """Translate a loop, or load what was translated from the same sources before."""
    checks = os.environ.get(CHECKED, "")
    key = key_of(
        _translator(), _source(function.__module__), function.__name__, repr(kinds), checks
    )
    if (kept := load(TEXTS, key)) is not None:
        told, _, text = kept.decode().partition("\n")
        return text, ast.literal_eval(told)
    text, result = loop_text(function, kinds, "loop")
    keep(TEXTS, key, f"{result!r}\n{text}".encode(), MOST_BYTES)
    return text, result


@cache
def _translator() -> bytes:
    """The source of what translates."""
    return b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))


@cache
def _source(name: str) -> bytes:
    """The source of a module, of those that its functions come from, and its constants."""
    reached: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        module = import_module(waiting.pop())
        assert module.__file__ is not None
        reached[module.__name__] = Path(module.__file__).read_bytes() + _constants(module)
        functions = [each for each in vars(module).values() if isinstance(each, FunctionType)]
        own = {f.__module__ for f in functions if f.__module__.startswith(_PACKAGE)}
        waiting += own - reached.keys()
    return b"".join(reached[each] for each in sorted(reached))


_PACKAGE = f"{__name__.partition('.')[0]}."


def _constants(module: ModuleType) -> bytes:
    """The numbers that a module's names stand for, its own and those that it imports."""
    told = {n: v for n, v in vars(module).items() if isinstance(v, (int, float, tuple))}
    return repr(sorted(told.items())).encode()
