"""The launch line, CUDA's own syntax with the arrays spelled out.

    reverseArrayBlock<<<1024, 256>>>(out:i32[262144], in:i32[262144]=arange)
    productTiled<16><<<(4, 4), dim3(16, 16), 0>>>(c:f32[64,64], a:f32[64,64]=random:1, c, 64)

Sizes are integers, their products and sums of those (`64*4 + 64*8`). An array has a name, a type,
a shape and perhaps what it holds at first; its name alone means the array already made. Numbers
take the type of the kernel's parameter; `nullptr` is a pointer to nothing.
"""

import re
from collections.abc import Callable
from math import prod
from typing import TypeAlias, TypeVar

from ....errors import CutraceError, nearest
from ....lazy_dataclass import dataclass
from .initial import DTYPES, check_initial

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """`out:i32[262144]=arange`; `type` is empty and `shape` () where only the name is given.

    Columns count from 1, in the line as written.
    """

    name: str
    column: int
    type: str = ""
    shape: tuple[int, ...] = ()
    initial: str = ""


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """`64`, `-1.5f`, `0xff`, `true`; None for `nullptr`."""

    value: int | float | None
    column: int


LineArgument: TypeAlias = ArrayArgument | NumberArgument


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """A launch as written: `shared` is the dynamic shared memory in bytes a block.

    `opening` is the column of the parenthesis before the arguments; `place` is the comment's file
    and line, if it stands in one.
    """

    text: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    arguments: tuple[LineArgument, ...]
    opening: int
    place: str = ""

    def error(self, column: int, problem: str) -> CutraceError:
        """An error that points at a column of this line."""
        where = f"{self.place}: " if self.place else ""
        return CutraceError(f"{where}{line_error(self.text, column, problem)}")


def parse_launch(text: str) -> LaunchLine:
    """Read a launch line; CutraceError points at the column where it goes wrong."""
    cursor = _Cursor(text)
    kernel = cursor.take(_KERNEL, "a kernel and `<<<`, as in `scale<<<4, 256>>>(...)`").strip()
    cursor.expect("<<<")
    grid = _dimensions(cursor)
    cursor.expect(",")
    block = _dimensions(cursor)
    shared = _size(cursor, least=0) if cursor.accept(",") else 0
    if cursor.accept(","):
        cursor.take(_INTEGER, "a stream's number")
    cursor.expect(">>>")
    opening = cursor.column
    cursor.expect("(")
    arguments = () if cursor.accept(")") else _list(cursor, _argument, ")")
    cursor.accept(";")
    cursor.expect_end()
    return LaunchLine(text, kernel, grid, block, shared, arguments, opening)


def line_error(text: str, column: int, problem: str) -> CutraceError:
    """An error with the line and a caret below the column, which counts from 1."""
    return CutraceError(
        f"launch line, column {column}: {problem}\n  {text}\n  {' ' * (column - 1)}^"
    )


_KERNEL = re.compile(r"[A-Za-z_$][\w$:]*\s*(?:<.*?>\s*)?(?=<<<)")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_INITIAL = re.compile(r'"[^"]*"|[^,()"]+')
_NUMBER = re.compile(
    r"(?P<integer>[-+]?(?:0[xX][0-9a-fA-F]+|\d+(?![\d.eEfF])))[uUlL]*(?![\w.])"
    r"|(?P<float>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?(?![\w.])"
)
_IN_C = {
    **{"char": "i8", "uchar": "u8", "bool": "u8", "short": "i16", "ushort": "u16", "int": "i32"},
    **{"uint": "u32", "unsigned": "u32", "long": "i64", "ulong": "u64", "size_t": "u64"},
    **{"half": "f16", "float": "f32", "double": "f64"},
}
_WORDS = {"true": True, "false": False, "nullptr": None, "NULL": None}


class _Cursor:
    """A place in the text, past spaces."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._skip()

    @property
    def column(self) -> int:
        return self.at + 1

    def _skip(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def fail(self, expected: str) -> CutraceError:
        got = self.text[self.at :].strip()[:20] or "the end of the line"
        return line_error(self.text, self.column, f"expected {expected}, got `{got}`")

    def accept(self, word: str) -> bool:
        found = self.text.startswith(word, self.at)
        if found:
            self.at += len(word)
            self._skip()
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.fail(f"`{word}`")

    def expect_end(self) -> None:
        if self.at < len(self.text):
            raise self.fail("nothing more")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
            self._skip()
        return found

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        found = self.match(pattern)
        if not found:
            raise self.fail(expected)
        return found[0]


def _list(cursor: _Cursor, item: Callable[[_Cursor], T], end: str) -> tuple[T, ...]:
    items = [item(cursor)]
    while not cursor.accept(end):
        if not cursor.accept(","):
            raise cursor.fail(f"`,` or `{end}`")
        items.append(item(cursor))
    return tuple(items)


def _size(cursor: _Cursor, least: int = 1) -> int:
    """`256`, `4*1024`, `64*4 + 64*8`."""
    start = cursor.column
    size = _product(cursor)
    while cursor.accept("+"):
        size += _product(cursor)
    if size < least:
        raise line_error(cursor.text, start, f"expected {least} or more")
    return size


def _product(cursor: _Cursor) -> int:
    factors = [int(cursor.take(_INTEGER, "an integer"), 0)]
    while cursor.accept("*"):
        factors.append(int(cursor.take(_INTEGER, "an integer"), 0))
    return prod(factors)


def _dimensions(cursor: _Cursor) -> tuple[int, ...]:
    start = cursor.column
    cursor.accept("dim3")
    sizes = _list(cursor, _size, ")") if cursor.accept("(") else (_size(cursor),)
    if len(sizes) > 3:
        raise line_error(cursor.text, start, f"expected one to three sizes, got {len(sizes)}")
    return sizes


def _argument(cursor: _Cursor) -> LineArgument:
    column = cursor.column
    if number := cursor.match(_NUMBER):
        return NumberArgument(_read_number(number), column)
    name = cursor.take(_NAME, "a number, or an array such as `out:i32[1024]`")
    if name in _WORDS:
        return NumberArgument(_WORDS[name], column)
    return _array(cursor, name, column) if cursor.accept(":") else ArrayArgument(name, column)


def _read_number(found: re.Match[str]) -> int | float:
    return int(found["integer"], 0) if found["integer"] else float(found["float"])


def _array(cursor: _Cursor, name: str, column: int) -> ArrayArgument:
    type_ = _type(cursor)
    if not cursor.accept("["):
        example = f"`[`, as in {name}:{type_}[1024]; a number stands alone, without name and type"
        raise cursor.fail(example)
    shape = _list(cursor, _size, "]")
    start = cursor.column + 1
    initial = cursor.take(_INITIAL, "what it holds").strip() if cursor.accept("=") else ""
    if problem := check_initial(initial):
        raise line_error(cursor.text, start, problem)
    return ArrayArgument(name, column, type_, shape, initial.strip('"'))


def _type(cursor: _Cursor) -> str:
    start = cursor.column
    type_ = cursor.take(_NAME, f"a type ({' '.join(DTYPES)})")
    if type_ not in DTYPES:
        near = f"; nearest: {_IN_C[type_]}" if type_ in _IN_C else nearest(type_, DTYPES)
        expected = f"expected a type ({' '.join(DTYPES)}), got `{type_}`{near}"
        raise line_error(cursor.text, start, expected)
    return type_
