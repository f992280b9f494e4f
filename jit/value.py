"""Values of a loop during translation: numbers, arrays, structures, and tuples of these.

A kind is the part that is known before the loop runs: `int`, `float`, an `ArrayKind`, or a tuple of
kinds. A value holds the LLVM names of its words at run time. The kind and the value of a named
tuple are named tuples of the same class, whose fields are the kinds and the values.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, get_args

import numpy as np

from ..base.dataclass import dataclass
from .machine_code import address
from .structure import I32, Struct

ELEMENTS = {
    **{"b1": ("i8", "zext"), "u1": ("i8", "zext"), "i1": ("i8", "sext")},
    **{"u2": ("i16", "zext"), "i2": ("i16", "sext"), "u4": ("i32", "zext"), "i4": ("i32", "sext")},
    **{"u8": ("i64", ""), "i8": ("i64", ""), "f8": ("double", "")},
}
"""For each element type of NumPy, LLVM's type and the instruction that extends it to 64 bits."""


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """An array: the type of its elements, its dimensions, and whether the elements are contiguous.

    A one-dimensional array may be a column of rows of few bytes, with `step` elements from one to
    the next. If the array is not `bounded`, only its address is known.
    """

    element: str
    dimensions: int
    is_dense: bool
    step: int = 0
    bounded: bool = True

    @property
    def lengths(self) -> int:
        """The number of words for its shape, and for its steps if these are not part of the
        kind."""
        return self.bounded * self.dimensions * (1 if self.is_dense or self.step else 2)


MOST_STEP = 8
"""Elements: columns with a step up to this one have a compiled loop of their step."""


Kind: TypeAlias = "str | ArrayKind | type[Struct] | tuple[Kind, ...]"
"""`int` and `float` by these names; a constant number by its digits."""


class Fixed(int):
    """An integer that a loop is compiled for; it should have few values, since each compiles a
    loop."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer of 64 bits, or a double: a constant or an LLVM register."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Array:
    """An array: its address, and for each dimension its length and its step in elements."""

    kind: ArrayKind
    pointer: str
    shape: tuple[str, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure: the address of its words."""

    kind: type[Struct]
    pointer: str


Value: TypeAlias = "Number | Array | Structure | tuple[Value, ...] | None"


def kind_said(annotation: Any) -> Kind:
    """Return the kind of an annotation of an argument or of a structure's field."""
    if annotation is int:
        return "int"
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    *_, item_type = get_args(
        annotation
    )  # the element's type, before NumPy 2.5 in that of the array
    element = get_args(item_type)[0] if get_args(item_type) else item_type
    return ArrayKind(np.dtype(element).str[1:], 1, True, bounded=False)


def kind_of(value: Value) -> Kind:
    """Return the kind of a value that can be passed on."""
    if isinstance(value, tuple):
        return remake(value, map(kind_of, value))
    assert value is not None
    return value.kind


def words_of(kind: Kind) -> Iterator[str]:
    """Yield LLVM's types of the words of a kind."""
    if isinstance(kind, tuple):
        for item in kind:
            yield from words_of(item)
    elif kind in ("int", "float"):
        yield "double" if kind == "float" else "i64"
    elif isinstance(kind, ArrayKind):
        yield from ("ptr", *["i64"] * kind.lengths)
    elif isinstance(kind, type):
        yield "ptr"


def texts_of(value: Value) -> Iterator[str]:
    """Yield the words of a value."""
    if isinstance(value, tuple):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, Array):
        yield from (value.pointer, *(*value.shape, *value.steps)[: value.kind.lengths])
    elif isinstance(value, Structure):
        yield value.pointer
    elif value is not None:
        yield value.text


def value_of(kind: Kind, words: Iterator[str], product: Callable[[str, str], str]) -> Value:
    """Return the value of these words; the steps between rows of a contiguous array are the
    `product` of lengths."""
    if isinstance(kind, tuple):
        return remake(kind, [value_of(item, words, product) for item in kind])
    if isinstance(kind, type):
        return Structure(kind, next(words))
    if not isinstance(kind, ArrayKind):
        return Number(kind, next(words)) if kind in ("int", "float") else Number("int", kind)
    pointer = next(words)
    if not kind.bounded:
        return Array(kind, pointer, ("",), ("1",))
    shape = tuple(next(words) for _ in range(kind.dimensions))
    if kind.step:
        return Array(kind, pointer, shape, (str(kind.step),))
    if not kind.is_dense:
        return Array(kind, pointer, shape, tuple(next(words) for _ in shape))
    steps = ["1"]
    for length in reversed(shape[1:]):
        steps.append(product(steps[-1], length))
    return Array(kind, pointer, shape, tuple(reversed(steps)))


def remake(values: Sequence[Any], items: Iterable[Any]) -> tuple[Any, ...]:
    """Return a tuple of other items, named if `values` is a named tuple."""
    make: Callable[[Iterable[Any]], tuple[Any, ...]] = getattr(values, "_make", tuple)
    return make(items)


def lower(value: Any, words: list[int], number: Callable[[float], int]) -> Kind:
    """Append the words of an argument, and return its kind; `number` encodes a double as a word."""
    if isinstance(value, (tuple, list)):
        return remake(value, [lower(item, words, number) for item in value])
    if isinstance(value, float):
        words.append(number(value))
        return "float"
    if isinstance(value, Fixed):
        return str(value)
    if isinstance(value, Struct):
        words.append(value.address)
        return type(value)
    if not isinstance(value, np.ndarray) or not value.shape:
        words.append(int(value))
        return "int"
    is_dense = value.flags.c_contiguous
    if is_dense and value.shape == (1,):  # NumPy says so whatever the stride is
        step, rest = divmod(value.strides[0], value.itemsize)
        is_dense = rest > 0 or not 1 < step <= MOST_STEP
    begin = address(value if is_dense or value.ndim > 1 else value[:1])
    kind, steps = _layout(value.dtype, value.strides, is_dense)
    words += [begin, *value.shape, *steps]
    return kind


@lru_cache(1 << 10)
def _layout(
    dtype: np.dtype[Any], strides: tuple[int, ...], is_dense: bool
) -> tuple[ArrayKind, Sequence[int]]:
    """Return the kind of an array, and the steps that are not part of it."""
    element, dimensions = dtype.str[1:], len(strides)
    if is_dense:
        return ArrayKind(element, dimensions, True), ()
    steps = _steps(strides, dtype.itemsize)
    if dimensions == 1 and 1 < steps[0] <= MOST_STEP:
        return ArrayKind(element, 1, False, steps[0]), ()
    return ArrayKind(element, dimensions, False), steps


def _steps(strides: Sequence[int], size: int) -> Sequence[int]:
    if any(stride % size for stride in strides):
        raise ValueError(f"strides {strides} of elements of {size} bytes")
    return [stride // size for stride in strides]


def prefetch(element: Any) -> None:
    """Prefetch `array[index]`; only compiled loops need it."""


def unroll(count: int) -> range:
    """Return a range whose loop is unrolled where machine code knows the count."""
    return range(count)


def trailing_zeros(x: int) -> int:
    """Return the index of the lowest one bit."""
    return (x & -x).bit_length() - 1


def invoke(function: int, context: Struct) -> int:
    """Call a compiled function by its address; only compiled code can."""
    raise NotImplementedError


Marked = TypeVar("Marked", bound=Callable[..., Any])


def assembly(text: str) -> Callable[[Marked], Marked]:
    """Mark a function as compiled from the LLVM assembly `text`, which defines its name."""

    def mark(function: Marked) -> Marked:
        function.__dict__["assembly"] = text
        return function

    return mark


@assembly("""
define internal double @double_of(i64 %bits) alwaysinline {
  %x = bitcast i64 %bits to double
  ret double %x
}
""")
def double_of(bits: int) -> float:
    """Return the double of these bits."""
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


@assembly("""
define internal i64 @bits_of(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  ret i64 %bits
}
""")
def bits_of(value: float) -> int:
    """Return the bits of a double."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


@assembly("""
declare double @llvm.trunc.f64(double)
define internal double @truncate(double %x) alwaysinline {
  %y = call double @llvm.trunc.f64(double %x)
  ret double %y
}
""")
def truncate(value: float) -> float:
    """Return a double rounded to an integer toward zero."""
    return float(np.trunc(value))


@assembly("""
declare double @llvm.fma.f64(double, double, double)
define internal double @multiply_add(double %a, double %b, double %c) alwaysinline {
  %d = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %d
}
""")
def multiply_add(a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded once; only compiled code can."""
    raise NotImplementedError


_EXTREME = """
declare i32 @llvm.vector.reduce.{order}.v32i32(<32 x i32>)
define internal i64 @{name}(ptr %p) {{
  %a = load <32 x i32>, ptr %p, align 4
  %m = call i32 @llvm.vector.reduce.{order}.v32i32(<32 x i32> %a)
  %r = sext i32 %m to i64
  ret i64 %r
}}
"""


@assembly(_EXTREME.format(name="least", order="smin"))
def least(values: I32) -> int:
    """Return the least of the first 32 elements; only compiled code can."""
    raise NotImplementedError


@assembly(_EXTREME.format(name="greatest", order="smax"))
def greatest(values: I32) -> int:
    """Return the greatest of the first 32 elements; only compiled code can."""
    raise NotImplementedError
