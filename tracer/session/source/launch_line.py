"""Parse and run launch lines: CUDA's launch syntax with arrays spelled out.

    reverseArrayBlock<<<1024, 256>>>(out:i32[262144], in:i32[262144]=arange)
    productTiled<16><<<(4, 4), dim3(16, 16), 0>>>(c:f32[64,64], a:f32[64,64]=random:1, c, 64)

Sizes are integers, their products, and sums of those (`64*4 + 64*8`). An array has a name, a type,
a shape and optional initial values; its name alone refers to an existing array. Numbers take the
type of the kernel's parameter; `nullptr` is a null pointer. The file also finds launch lines in a
source's comments, and fills arrays with initial values.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest
from ..arguments import ArgumentError
from ..array import DeviceArray
from ..destination import missing_file
from ..module import Module
from ..session import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """`out:i32[262144]=arange`; `type` is empty and `shape` () for a name alone.

    Columns count from 1, in the line as written.
    """

    name: str
    column: int
    type: str = ""
    shape: tuple[int, ...] = ()
    initial: str = ""


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """A number, `64`, `-1.5f`, `0xff`, `true`; None for `nullptr`."""

    value: int | float | None
    column: int


LineArgument: TypeAlias = ArrayArgument | NumberArgument


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """A launch as written: `shared` is the dynamic shared memory in bytes per block.

    `opening` is the column of the parenthesis before the arguments; `place` is the file and line of
    the comment that contains it, if any.
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
        """Return an error that points at a column of this line."""
        where = f"{self.place}: " if self.place else ""
        return CutraceError(f"{where}{line_error(self.text, column, problem)}")


def parse_launch(text: str) -> LaunchLine:
    """Parse a launch line; CutraceError points at the column of the error."""
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
    """Return an error with the line and a caret under the column, which counts from 1."""
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
    """A position in the text after spaces."""

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
        is_match = self.text.startswith(word, self.at)
        if is_match:
            self.at += len(word)
            self._skip()
        return is_match

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.fail(f"`{word}`")

    def expect_end(self) -> None:
        if self.at < len(self.text):
            raise self.fail("nothing more")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
            self._skip()
        return match

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        match = self.match(pattern)
        if not match:
            raise self.fail(expected)
        return match[0]


def _list(cursor: _Cursor, item: Callable[[_Cursor], T], end: str) -> tuple[T, ...]:
    items = [item(cursor)]
    while not cursor.accept(end):
        if not cursor.accept(","):
            raise cursor.fail(f"`,` or `{end}`")
        items.append(item(cursor))
    return tuple(items)


def _size(cursor: _Cursor, least: int = 1) -> int:
    """Parse `256`, `4*1024` or `64*4 + 64*8`."""
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


def _read_number(match: re.Match[str]) -> int | float:
    return int(match["integer"], 0) if match["integer"] else float(match["float"])


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


_COMMENT = re.compile(
    r"\s*(?://|/\*)\s*cutrace(?::|\s+(?=[\w:]+(?:<[^;]*>)?<<<))\s*(?P<launch>.*?)\s*(?:\*/.*)?$"
)
_NEXT = re.compile(r"\s*//\s*(?P<more>.*?)\s*$")


@dataclass(frozen=True, slots=True)
class LaunchComment:
    """The launch line of a comment, and the source line on which it starts, from 1."""

    line: int
    text: str


def find_launch_comments(source: str) -> tuple[LaunchComment, ...]:
    """Return the source's launch comments in order.

    `// cutrace: f<<<...` or `/* cutrace: f<<<... */`; the colon may be left out before a launch. A
    comment with an open last parenthesis continues in the comment on the next line.
    """
    lines = source.splitlines()
    comments = []
    for number, line in enumerate(lines):
        if start := _COMMENT.match(line):
            comments.append(LaunchComment(number + 1, _join(start["launch"], lines[number + 1 :])))
    return tuple(comments)


def _join(text: str, following: list[str]) -> str:
    for line in following:
        more = _NEXT.match(line)
        if not more or text.count("(") <= text.count(")"):
            break
        text = f"{text} {more['more']}"
    return text


class LineLauncher:
    """Runs the launch lines of one source; `arrays` are the existing ones by name.

    Files of `=file.npy` are relative to `folder`. `inputs` gets the fills of each array, if given.
    """

    def __init__(
        self,
        gpu: Session,
        module: Module,
        folder: Path,
        inputs: dict[str, list[str]] | None = None,
    ) -> None:
        self.arrays: dict[str, DeviceArray] = {}
        self._gpu = gpu
        self._module = module
        self._folder = folder
        self._inputs = inputs

    def launch(self, line: LaunchLine) -> None:
        """Create new arrays, fill those with initial values, and launch."""
        function = self._module.get_function(line.kernel)
        configured = function[line.grid, line.block, 0, line.shared]
        values = [self._value(line, argument) for argument in line.arguments]
        try:
            configured(*values)
        except ArgumentError as problem:
            at = line.arguments[problem.number - 1].column if problem.number else line.opening
            raise line.error(at, str(problem)) from None

    def _value(self, line: LaunchLine, argument: LineArgument) -> object:
        if not isinstance(argument, ArrayArgument):
            return argument.value
        array = self.arrays.get(argument.name)
        if array is None:
            array = self.arrays[argument.name] = self._make(line, argument)
        self._check_same(line, argument, array)
        self._write(array, argument.initial)
        if self._inputs is not None and (argument.initial or argument.name not in self._inputs):
            fill = describe_fill(array.elements(), argument.initial)
            self._inputs.setdefault(argument.name, []).append(fill)
        return array

    def _check_same(self, line: LaunchLine, argument: ArrayArgument, array: DeviceArray) -> None:
        if not argument.type:
            return
        if (DTYPES[argument.type], argument.shape) != (array.dtype, array.shape):
            already = f"{array.dtype} of shape {array.shape}"
            problem = f"`{argument.name}` is an array already, {already}"
            raise line.error(argument.column, problem)

    def _make(self, line: LaunchLine, argument: ArrayArgument) -> DeviceArray:
        if not argument.type:
            example = f"expected its type and shape, as in {argument.name}:i32[1024]"
            close = nearest(argument.name, self.arrays)
            problem = f"there is no array `{argument.name}` yet{close}; {example}"
            raise line.error(argument.column, problem)
        return self._gpu.device_array(argument.shape, DTYPES[argument.type], argument.name)

    def _write(self, array: DeviceArray, initial: str) -> None:
        if initial == "zeros":
            array.fill(0)
        elif initial:
            values = initial_values(initial, array.shape, array.dtype, self._folder)
            array.copy_to_device(values)


DTYPES: Mapping[str, np.dtype[Any]] = {
    **{
        f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for bits in (8, 16, 32, 64) for sign in "iu"
    },
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
"""Element types of a launch line: kind and bits."""

RANGE = "random floats are in [0, 1), integers from 0 to below the number of elements"
_FORMS = ("zeros", "arange", "random:SEED", "file.npy")


def check_initial(initial: str) -> str:
    """Return the error in the initial values, or `""`. No values mean zeros without a copy."""
    if initial in ("", "zeros", "arange") or initial.strip('"').endswith(".npy"):
        return ""
    word, _, seed = initial.partition(":")
    if word == "random" and seed.isascii() and seed.isdigit():
        return ""
    expected = f"expected one of {', '.join(_FORMS)}, got `{initial}`{nearest(initial, _FORMS)}"
    return f"{expected}; {RANGE}" if word == "random" else expected


def describe_fill(values: NDArray[Any], initial: str) -> str:
    """Return the number of elements and a hash of their values, whatever the width of their type.

    >>> ones = np.ones(4, np.float32)
    >>> describe_fill(ones, "a.npy") == describe_fill(ones.astype(np.float64), "b.npy")
    True
    >>> describe_fill(0 * ones, "a.npy"), describe_fill(0 * ones, "")
    ('4 zeros', '4 zeros')
    """
    if initial in ("", "zeros") or not values.any():
        return f"{values.size} zeros"
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    return f"{values.size} {sha256(values.astype(wide).tobytes()).hexdigest()}"


def initial_values(
    initial: str, shape: tuple[int, ...], dtype: np.dtype[Any], folder: Path
) -> NDArray[Any]:
    """Return the values: counting from 0 in row-major order, random, or a file's (in `folder`).

    Random numbers are the same on every machine. Integers range from 0 to below the number of
    elements (or the type's maximum), so that they can be indices; floats are multiples of 1/256 in
    [0, 1), so that sums of their products are exact.
    """
    count = prod(shape)
    if initial == "arange":
        return _counting(count, dtype).reshape(shape)
    if initial.startswith("random:"):
        return _random(int(initial.partition(":")[2]), count, dtype).reshape(shape)
    if initial.endswith(".npy"):
        return _load(folder, initial, shape, dtype)
    return np.zeros(shape, dtype)


def _counting(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.arange(count).astype(dtype)


def _random(seed: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    words = np.random.PCG64(seed).random_raw(count)
    if dtype.kind == "f":
        return ((words >> np.uint64(56)) / 256.0).astype(dtype)
    below = min(count, int(np.iinfo(dtype).max) + 1)
    return ((words >> np.uint64(11)) % np.uint64(below)).astype(dtype)


def _load(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    path = folder / name
    if not path.is_file():
        raise missing_file(path)
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise CutraceError(f"{name}: expected an array saved by numpy.save: {problem}") from None
    if values.dtype != dtype or values.shape != shape:
        raise CutraceError(
            f"{name} holds {values.dtype} of shape {values.shape}, expected {dtype} of {shape}"
        )
    return np.asarray(values)
