"""Surfaces: texel memory that kernels write, its layout and texel formats.

Surfaces have a separate address space, row after row, each row aligned to 16 bytes. The replay
models how a device arranges its texels.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ..ops.lanes import Array

ROW_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Surface:
    """A surface: `extent` x first, `layers` 0 if it has none, `pitch` the bytes between rows.

    `address` is its first byte in the surface space, `format` as in the trace (`u8x4`).
    """

    name: str
    format: str
    extent: tuple[int, ...]
    layers: int
    texel_bytes: int
    address: int
    pitch: int

    @property
    def shape(self) -> tuple[int, bool]:
        """The number of dimensions, without layers, and whether it is layered."""
        return len(self.extent), self.layers > 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, without padding."""
        return self.extent[0] * self.texel_bytes

    @property
    def rows(self) -> int:
        """Rows of a slice or layer."""
        return self.extent[1] if len(self.extent) > 1 else 1

    @property
    def slices(self) -> int:
        """Slices or layers."""
        return self.layers or (self.extent[2] if len(self.extent) > 2 else 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, with padding."""
        return self.pitch * self.rows * self.slices


_FORMAT = re.compile(r"(?P<kind>[uif])(?P<bits>\d+)(?:x(?P<channels>\d))?")


@dataclass(frozen=True, slots=True)
class Texel:
    """A texel format: `dtype` of a channel, and number of channels."""

    dtype: np.dtype[Any]
    channels: int

    @property
    def bytes(self) -> int:
        """Bytes of a texel."""
        return self.dtype.itemsize * self.channels

    def convert(self, value: Array) -> Array:
        """Return 32-bit values as a channel: floats rounded towards zero, integers clamped to
        its range.
        """
        return _CONVERT[self.dtype.kind](value, self.dtype)


@cache
def texel_of(format_: str) -> Texel:
    """Parse a trace's format: `f32`, `u8x4`."""
    match = _FORMAT.fullmatch(format_)
    assert match
    return Texel(np.dtype(f"{match['kind']}{int(match['bits']) // 8}"), int(match["channels"] or 1))


def _to_float(value: Array, dtype: np.dtype[Any]) -> Array:
    exact = value.view(np.float32)
    with np.errstate(over="ignore"):
        near = exact.astype(dtype)
    far = np.abs(near.astype(np.float32)) > np.abs(exact)
    return np.where(far, np.nextafter(near, dtype.type(0)), near)


def _to_integer(value: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    source = value.view(np.int32 if dtype.kind == "i" else np.uint32)
    return np.clip(source, limits.min, limits.max).astype(dtype)


_CONVERT: Mapping[str, Callable[[Array, np.dtype[Any]], Array]] = {
    "f": _to_float,
    "i": _to_integer,
    "u": _to_integer,
}
