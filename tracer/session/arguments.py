"""Convert Python values to kernel parameter bytes, checked against PTX's and C's types."""

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from ...base.errors import CutraceError
from ...traces.schema import Argument
from .array import DeviceArray
from .signature import (
    ARRAY,
    FLOAT,
    INTEGER,
    POINTER,
    STRUCT,
    SURFACE,
    TEXTURE,
    WORD,
    Parameter,
    Signature,
    array_of,
    unfold,
)
from .surface import Surface
from .texture import Texture

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


def _pack_texture(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    return _pack_handle(parameter, value, Texture, "texture")


def _pack_surface(parameter: Parameter, value: Any) -> tuple[bytes, str | int]:
    return _pack_handle(parameter, value, Surface, "surface")


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
    TEXTURE: _pack_texture,
    SURFACE: _pack_surface,
    ARRAY: _pack_array,
}
