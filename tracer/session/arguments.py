"""Kernel signatures, and the conversion of Python values to parameter bytes.

A signature joins the PTX parameters with their C types; values are checked against both.

A Numba kernel takes an array as one argument for which PTX has many parameters. Its PTX name has
the arguments' types: `Array<float, 2, C, mutable, aligned>`. An array is passed as members of 64
bits each: two pointers that kernels ignore, the number of elements, the bytes of one, the data
pointer, the shape and the strides in bytes (ArrayModel in numba/core/datamodel/models.py).
"""

import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from math import isfinite
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Argument
from ..front.source import KernelSignature
from ..ptx.kernel import TYPE_BYTES, Variable
from .array import DeviceArray
from .surface import Surface
from .texture import Texture

_ARRAY = re.compile(r"Array<(.+), (\d+), [ACF], \w+, \w+>")
_DATA, _BEFORE_SHAPE = 4, 5


def array_of(c_type: str) -> tuple[str, int]:
    """Return element C type and dimensions of a Numba array; `("", 0)` for other types."""
    match = _ARRAY.fullmatch(c_type)
    return (match[1], int(match[2])) if match else ("", 0)


def count_words(c_type: str) -> int:
    """Return the PTX parameters of such an argument: 7 for a one-dimensional array."""
    _, dimensions = array_of(c_type)
    return _BEFORE_SHAPE + 2 * dimensions if dimensions else 1


def unfold(array: DeviceArray) -> bytes:
    """Return the members of an array in the form that a Numba kernel takes."""
    strides = array.elements().strides
    members = (0, 0, array.size, array.dtype.itemsize, array.address, *array.shape, *strides)
    return b"".join(member.to_bytes(8, "little") for member in members)


def data_address(members: bytes) -> int:
    """Return the address of an array's elements from its members."""
    return int.from_bytes(members[8 * _DATA : 8 * _DATA + 8], "little")


POINTER = "pointer"
INTEGER = "integer"
FLOAT = "float"
STRUCT = "struct"
WORD = "word"
TEXTURE = "texture"
SURFACE = "surface"
ARRAY = "array"

_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "signed"})
_HALVES = frozenset({"half", "__half"})
_SIGNED = frozenset({"char", "short", "int", "long", "ptrdiff_t", "ssize_t"})
_UNSIGNED = frozenset({"unsigned", "size_t", "uchar", "ushort", "uint", "ulong"})
_C_BYTES = {"char": 1, "bool": 1, "short": 2, "half": 2, "__half": 2, "int": 4, "unsigned": 4}
_C_FLOATS = {"float": 4, "double": 8, "half": 2, "__half": 2}


@dataclass(frozen=True)
class Parameter:
    """One parameter: `number` counts from 1, `element` and `size` are PTX's, `c_type` may be `""`.

    Pointers have `pointer_bytes`. `kind` determines the accepted arguments: a pointer takes device
    arrays; a word (of that many bytes and unknown C type) an array, a texture, a surface or an
    integer; a struct its bytes; a Numba array, which is several PTX parameters, a device array.
    """

    number: int
    name: str
    c_type: str
    element: str
    size: int
    pointer_bytes: int = 8

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of the C type without qualifiers: `{"unsigned", "int"}`."""
        return frozenset(_words(self.c_type))

    @cached_property
    def kind(self) -> str:
        """Return POINTER, INTEGER, FLOAT, STRUCT, WORD, TEXTURE, SURFACE or ARRAY."""
        if array_of(self.c_type)[1]:
            return ARRAY
        if "cudaTextureObject_t" in self.words:
            return TEXTURE
        if "cudaSurfaceObject_t" in self.words:
            return SURFACE
        if "*" in self.c_type.rpartition(">")[2]:
            return POINTER
        if self.element in ("f16", "f32", "f64") or (self.size == 2 and self.words & _HALVES):
            return FLOAT
        if self.element == "b8" or self.size > 8:
            return STRUCT
        return INTEGER if self.c_type or self.size != self.pointer_bytes else WORD

    @cached_property
    def integer_range(self) -> tuple[int, int]:
        """Return the least and largest integer; of both ranges if the signedness is unknown."""
        bits = 8 * self.size
        if self.words & {"bool"}:
            return 0, 1
        if self.words & _UNSIGNED or any(re.fullmatch(r"uint\d+_t", w) for w in self.words):
            return 0, (1 << bits) - 1
        if self.words & _SIGNED or any(re.fullmatch(r"int\d+_t", w) for w in self.words):
            return -(1 << bits - 1), (1 << bits - 1) - 1
        return -(1 << bits - 1), (1 << bits) - 1

    @cached_property
    def pointee(self) -> tuple[str, int] | None:
        """Return NumPy kind (`i`: any integer, `f`) and bytes of the pointee; None if unknown."""
        if self.kind != POINTER or self.c_type.count("*") != 1 or "<" in self.c_type:
            return None
        words = _words(self.c_type)
        fixed = [int(m[1]) // 8 for w in words if (m := re.fullmatch(r"u?int(\d+)_t", w))]
        if fixed:
            return "i", fixed[0]
        if words.count("long") == 2:
            return "i", 8
        floats = [_C_FLOATS[w] for w in words if w in _C_FLOATS]
        integers = [_C_BYTES[w] for w in words if w in _C_BYTES]
        if floats:
            return "f", floats[0]
        return ("i", min(integers)) if integers and "long" not in words else None

    def __str__(self) -> str:
        return f"argument {self.number} `{self.name}`"

    @property
    def type(self) -> str:
        """Return the C type, or PTX's if C's is unknown."""
        return self.c_type or f".{self.element}"


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name in the source, its PTX name and its parameters."""

    name: str
    mangled: str
    parameters: tuple[Parameter, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def read_signature(
    kernel_signature: KernelSignature, declared: tuple[Variable, ...], address_size: int = 64
) -> Signature:
    """Join the front end's signature of a kernel with the parameters that its PTX declares.

    PTX without `.address_size` may use either size: pointers have 64 bits if any parameter has.
    """
    narrow = address_size == 32 and all(variable.size <= 4 for variable in declared)
    sizes = [count_words(c_type) for c_type, _ in kernel_signature.parameters]
    if sum(sizes) > len(declared):
        sizes = []
    sizes += [1] * (len(declared) - sum(sizes))
    first = [declared[start] for start in (0, *accumulate(sizes))[:-1]]
    unnamed = (("", ""),) * len(declared)
    pairs = zip(first, (*kernel_signature.parameters, *unnamed), strict=False)
    parameters = (
        _parameter(number, variable, *pair, 4 if narrow else 8)
        for number, (variable, pair) in enumerate(pairs, 1)
    )
    return Signature(
        kernel_signature.name, kernel_signature.mangled, tuple(parameters), str(kernel_signature)
    )


def _parameter(
    number: int, variable: Variable, c_type: str, name: str, pointer_bytes: int
) -> Parameter:
    """Return a parameter; a PTX type in place of the C type adds nothing to the declaration."""
    structure = "" if c_type in TYPE_BYTES else c_type
    plain = name.partition("[")[0] or f"p{number}"
    return Parameter(number, plain, structure, variable.element, variable.size, pointer_bytes)


def _words(c_type: str) -> list[str]:
    return [word for word in re.findall(r"\w+", c_type) if word not in _QUALIFIERS]


_FLOAT_FORMS = {2: "<e", 4: "<f", 8: "<d"}


class ArgumentError(CutraceError):
    """An argument does not fit its parameter; `number` counts from 1, 0 is the whole list."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def pack_arguments(
    signature: Signature, values: Sequence[object]
) -> tuple[tuple[bytes, ...], tuple[Argument, ...]]:
    """Return the bytes of each PTX parameter, and the arguments' description in the trace.

    Bytes are little-endian, as many as the parameter has; a Numba array takes several parameters of
    8 bytes. Raises ArgumentError for a wrong count, type or range.
    """
    expected = len(signature.parameters)
    if len(values) != expected:
        raise ArgumentError(f"{signature}: expected {expected} arguments, got {len(values)}", 0)
    packed, described = [], []
    for parameter, value in zip(signature.parameters, values, strict=True):
        try:
            data, shown = _PACK[parameter.kind](parameter, _plain(value))
        except ValueError as problem:
            message = f"{signature}: {parameter} {problem}"
            raise ArgumentError(message, parameter.number) from None
        members = range(0, len(data), 8) if parameter.kind == ARRAY else ()
        packed += [data[at : at + 8] for at in members] or [data]
        described.append(Argument(parameter.name, parameter.type, shown))
    return tuple(packed), tuple(described)


def _plain(value: Any) -> Any:
    """Return the scalar of a zero-dimensional array; anything else unchanged."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    return bool(value) if isinstance(value, np.bool_) else value


def _pack_pointer(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    if value is None:
        return bytes(parameter.size), 0
    if not isinstance(value, DeviceArray):
        advice = "; copy it with gpu.to_device(...)" if isinstance(value, np.ndarray) else ""
        raise ValueError(
            f"is {parameter.type}: expected a device array or None, got {_show(value)}{advice}"
        )
    if parameter.pointee and parameter.pointee != (_kind(value.dtype), value.dtype.itemsize):
        raise ValueError(
            f"is {parameter.type}: got `{value.name}` of {value.dtype}; "
            "an array's view(dtype) is the same memory as another type"
        )
    if parameter.size != parameter.pointer_bytes:
        raise ValueError(f"is {parameter.type}, but PTX gives it {parameter.size} bytes, not 8")
    return value.address.to_bytes(8, "little")[: parameter.size], value.name


def _pack_array(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    """Return the concatenated members of a Numba array."""
    element, dimensions = array_of(parameter.c_type)
    _, name = _pack_pointer(replace(parameter, c_type=f"{element} *"), value)
    if value is None or value.ndim != dimensions:
        argument = "None" if value is None else f"`{value.name}` of {value.ndim}"
        raise ValueError(
            f"is {parameter.type}: expected an array of {dimensions} dimensions, got {argument}"
        )
    return unfold(value), name


def _kind(dtype: np.dtype[Any]) -> str:
    return "i" if dtype.kind in "iub" else dtype.kind


def _pack_word(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    if value is None or isinstance(value, DeviceArray):
        return _pack_pointer(parameter, value)
    return _pack_integer(parameter, value)


def _pack_handle(
    parameter: Parameter, value: Any, kind: type[Texture | Surface], word: str
) -> tuple[bytes, str | int]:
    if value is None:
        return bytes(parameter.size), 0
    if not isinstance(value, kind):
        raise ValueError(
            f"is {parameter.type}: expected a {word}, made with gpu.{word}(...), or None, "
            f"got {_show(value)}"
        )
    if parameter.size != 8:
        raise ValueError(f"is {parameter.type} of {parameter.size} bytes: a {word} takes 8")
    return value.handle.to_bytes(parameter.size, "little"), value.name


def _pack_integer(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    if isinstance(value, Texture | Surface) and parameter.size == 8:
        return value.handle.to_bytes(8, "little"), value.name
    try:
        number = int(operator.index(value))
    except TypeError:
        raise ValueError(f"is {parameter.type}: expected an integer, got {_show(value)}") from None
    least, most = parameter.integer_range
    if not least <= number <= most:
        raise ValueError(f"is {parameter.type}: {number} is not in {least} to {most}")
    bits = number & ((1 << 8 * parameter.size) - 1)
    return bits.to_bytes(parameter.size, "little"), number


def _pack_float(parameter: Parameter, value: Any) -> tuple[bytes, str | float]:
    if not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"is {parameter.type}: expected a number, got {_show(value)}")
    try:
        number = float(value)
        data = struct.pack(_FLOAT_FORMS[parameter.size], number)
    except OverflowError:
        raise ValueError(
            f"is {parameter.type}: {value} is out of the range of {8 * parameter.size}-bit floats"
        ) from None
    return data, number if isfinite(number) else str(number)


def _pack_struct(parameter: Parameter, value: Any) -> tuple[bytes, str]:
    is_bytes = isinstance(value, bytes | np.generic | np.ndarray)
    data = bytes(value) if isinstance(value, bytes) else value.tobytes() if is_bytes else b""
    if not is_bytes or len(data) != parameter.size:
        got = f"{len(data)} bytes" if is_bytes else _show(value)
        raise ValueError(
            f"is {parameter.type} of {parameter.size} bytes: expected a NumPy scalar of that size "
            f"(structured: np.dtype([...], align=True)), got {got}"
        )
    return data, data.hex()


def _show(value: object) -> str:
    if isinstance(value, DeviceArray):
        return f"the device array `{value.name}`"
    if isinstance(value, Texture):
        return f"the texture `{value.name}`"
    if isinstance(value, Surface):
        return f"the surface `{value.name}`"
    if isinstance(value, np.ndarray):
        return f"a host array of {value.dtype} and shape {value.shape}"
    return f"{type(value).__name__} {value!r}"


_PACK: Mapping[str, Callable[[Parameter, Any], tuple[bytes, str | int | float]]] = {
    POINTER: _pack_pointer,
    WORD: _pack_word,
    INTEGER: _pack_integer,
    FLOAT: _pack_float,
    STRUCT: _pack_struct,
    TEXTURE: partial(_pack_handle, kind=Texture, word="texture"),
    SURFACE: partial(_pack_handle, kind=Surface, word="surface"),
    ARRAY: _pack_array,
}
