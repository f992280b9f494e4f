"""How a program launches its own kernel, as far as its text tells without running it.

Shapes and numbers are read where they are constants: `#define`, `const int n = 1 << 20;`,
`dim3 grid((n + 255) / 256)`. The bytes of an array come from its cudaMalloc. What depends on the
command line or on a file is not known, and then the launch as a whole is not.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from ....lazy_dataclass import dataclass

_SIZES = {
    **dict.fromkeys(("char", "bool", "uchar", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "ushort", "half", "__half", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "uint", "float"), 4),
    **dict.fromkeys(("int32_t", "uint32_t", "uchar4"), 4),
    **dict.fromkeys(("long", "unsigned long", "long long", "double", "size_t", "int64_t"), 8),
    **dict.fromkeys(("unsigned long long", "uint64_t", "float2", "int2"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_CALLS: Mapping[str, Callable[..., Any]] = {"ceil": ceil, "ceilf": ceil, "min": min, "max": max}
_DEPTH, _MOST = 12, 1 << 40
"""Names behind names, and the largest number that is a size."""
Number = int | float
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OwnLaunch:
    """Grid, block, bytes of dynamic shared memory, and each argument: a number, or None.

    `sizes` holds the bytes of each argument that is an array whose allocation is known.
    """

    grid: Shape
    block: Shape
    shared: int
    numbers: tuple[Number | None, ...]
    sizes: tuple[int | None, ...]


class _UnknownError(Exception):
    """The text does not tell."""


def read_own_launch(name: str, text: str, sizes: Mapping[str, int] = {}) -> OwnLaunch | None:
    """The first launch of a kernel in a program's text whose shape and numbers are constants.

    `sizes` are the bytes of the program's own types.
    """
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: " " * len(found[0]), text, flags=re.S)
    pattern = rf"\b{re.escape(name)}\s*(?:<[^;{{}}<>]*>)?\s*<<<"
    for found in re.finditer(pattern, plain):
        try:
            return _Reader(plain, found.start(), {**_SIZES, **sizes}).launch(found.end())
        except (_UnknownError, SyntaxError, ValueError, RecursionError):
            continue
    return None


class _Reader:
    """Constants of a text, as they are known at a place in it."""

    def __init__(self, text: str, place: int, sizes: Mapping[str, int]) -> None:
        self.text, self.place, self.sizes = text, place, sizes

    def launch(self, start: int) -> OwnLaunch:
        """The launch whose configuration begins at `start`."""
        shape, end = _split(self.text, start, ">>>")
        opening = self.text.find("(", end)
        if len(shape) < 2 or opening < 0:
            raise _UnknownError
        arguments, _ = _split(self.text, opening + 1, ")")
        shared = self.number(shape[2], 0) if len(shape) > 2 else 0
        return OwnLaunch(
            self.extent(shape[0]),
            self.extent(shape[1]),
            int(shared),
            tuple(map(self._number_or_none, arguments)),
            tuple(map(self._bytes_of, arguments)),
        )

    def extent(self, words: str) -> Shape:
        """`256`, `n / 256`, `dim3(16, 16)`, or the name of such a variable."""
        made = re.fullmatch(r"\s*(?:dim3)?\s*[({](.*)[)}]\s*", words, re.S)
        if made and words.strip().startswith(("dim3", "{")):
            parts = _split(made[1] + ")", 0, ")")[0]
            return tuple(int(self.number(part, 0)) for part in parts)
        if re.fullmatch(r"\s*\w+\s*", words):
            declared = rf"\bdim3\s+(?:[^;]*,\s*)?{words.strip()}\s*(?:=\s*dim3\s*)?[({{]"
            if found := self._last(declared):
                inner = _split(self.text, found.end(), ")}")[0]
                return tuple(int(self.number(part, 0)) for part in inner)
        return (int(self.number(words, 0)),)

    def number(self, words: str, depth: int) -> Number:
        """The value of an expression of constants."""
        value = self._value(ast.parse(_as_python(words, self.sizes), mode="eval").body, depth)
        if not -_MOST < value < _MOST:
            raise _UnknownError
        return value

    def _value(self, node: ast.AST, depth: int) -> Number:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node.id, depth + 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            call = _CALLS.get(node.func.id)
            if call:
                return _number(call(*(self._value(each, depth) for each in node.args)))
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        raise _UnknownError

    def _binary(self, node: ast.BinOp, depth: int) -> Number:
        left, right = (self._value(each, depth) for each in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            if not right:
                raise _UnknownError
            whole = isinstance(left, int) and isinstance(right, int)
            return int(left / right) if whole else left / right
        act = _BINARY.get(type(node.op))
        if act is None or (isinstance(node.op, ast.LShift) and not 0 <= right < 48):
            raise _UnknownError
        try:
            return _number(act(left, right))
        except (TypeError, ZeroDivisionError):
            raise _UnknownError from None

    def _named(self, name: str, depth: int) -> Number:
        """What the last definition before the launch gave a name."""
        if depth > _DEPTH:
            raise _UnknownError
        word = re.escape(name)
        if macro := self._last(rf"^[ \t]*#[ \t]*define[ \t]+{word}[ \t]+([^\n]+)"):
            return self.number(macro[1], depth)
        if found := self._last(rf"\b{word}\s*=(?!=)\s*([^;,={{}}]+?)\s*[;,]"):
            return self.number(found[1], depth)
        raise _UnknownError

    def _last(self, pattern: str) -> "re.Match[str] | None":
        found = [*re.finditer(pattern, self.text[: self.place], re.M)]
        return found[-1] if found else None

    def _number_or_none(self, words: str) -> Number | None:
        try:
            return self.number(words, 0)
        except (_UnknownError, SyntaxError, ValueError, RecursionError):
            return None

    def _bytes_of(self, words: str) -> int | None:
        """The bytes that a pointer was allocated with."""
        name = re.search(r"(\w+)\s*$", words)
        if not name:
            return None
        pattern = (
            rf"\bcudaMalloc(?:Managed|Host)?\s*\(\s*(?:\([^()]*\)\s*)?&\s*{re.escape(name[1])}\s*,"
        )
        found = self._last(pattern)
        if not found:
            return None
        size = self._number_or_none(_split(self.text, found.end(), ")")[0][0])
        return int(size) if size and size > 0 else None


def _number(value: object) -> Number:
    if isinstance(value, int | float):
        return value
    raise _UnknownError


def _as_python(words: str, sizes: Mapping[str, int]) -> str:
    """An expression of C as one of Python: sizes for types, no casts, no suffixes."""
    words = re.sub(
        r"\bsizeof\s*\(\s*(?:struct\s+)?([\w ]+?)\s*\)", lambda w: _size(w[1], sizes), words
    )
    types = "|".join(sorted(map(re.escape, _SIZES), key=len, reverse=True))
    words = re.sub(r"\(\s*(?:float|double)\s*\)", " 1.0 * ", words)
    words = re.sub(rf"\(\s*(?:{types})\s*\)", " ", words)
    words = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]+\b", r"\1", words)
    words = re.sub(r"\b(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[fF]\b", r"\1", words)
    return " ".join(words.replace("std::", "").split())


def _size(name: str, sizes: Mapping[str, int]) -> str:
    if name not in sizes:
        raise _UnknownError
    return str(sizes[name])


def _split(text: str, start: int, ends: str) -> tuple[list[str], int]:
    """The parts between commas up to the closing, and where it ends; `>>>` closes as a whole."""
    depth, at, parts = 0, start, [""]
    while at < len(text):
        letter = text[at]
        closes = text.startswith(ends, at) if ends == ">>>" else letter in ends
        if closes and not depth:
            return [part.strip() for part in parts], at + (3 if ends == ">>>" else 1)
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
        at += 1
    raise _UnknownError
