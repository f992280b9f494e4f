"""Interpret an array as texels: channel type, channel count, and the role of each axis."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

FORMATS = {
    **{f"{kind}{size}": f"{kind}{8 * size}" for kind in "ui" for size in (1, 2, 4)},
    **{"f2": "f16", "f4": "f32"},
}
"""Channel types: NumPy's name and the trace's."""

CHANNELS = (1, 2, 4)
FACES = 6

_ARRAY_LIMITS = {1: (131072,), 2: (131072, 65536), 3: (16384, 16384, 16384)}
_LAYERED_LIMITS = {1: (32768,), 2: (32768, 32768)}
_LINEAR_LIMITS = {1: (1 << 28,), 2: (131072, 65000)}
_MOST_LAYERS = 2048
"""Largest texture size of any device (CUDA C++ Programming Guide, "Technical Specifications")."""


@dataclass(frozen=True, slots=True)
class Texels:
    """Shape of texels: `extent` is x first, without layers; `layers` 0 means not layered.

    The layers of a cubemap are the faces of its cubes.
    """

    element: np.dtype[Any]
    channels: int
    extent: tuple[int, ...]
    layers: int
    is_cubemap: bool = False

    @property
    def format(self) -> str:
        """Return type and channels in the trace's form: `f32`, `u8x4`."""
        name = FORMATS[self.element.str[1:]]
        return name if self.channels == 1 else f"{name}x{self.channels}"

    @property
    def texel_bytes(self) -> int:
        """Return the bytes of a texel, all channels."""
        return self.channels * self.element.itemsize

    def arrange(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a view (layers, depth, height, width, channels) of the array."""
        plain = values.view(self.element) if values.dtype.names else values
        width, height, depth = (*self.extent, 1, 1)[:3]
        return plain.reshape(max(self.layers, 1), depth, height, width, self.channels)


@dataclass(frozen=True, slots=True)
class TexelForm:
    """The user's description of an array's axes: channels last, layers first, six per cube."""

    channels: int | None = None
    layered: bool = False
    cubemap: bool = False


def read_texels(shape: tuple[int, ...], dtype: np.dtype[Any], form: TexelForm, what: str) -> Texels:
    """Read an array's axes: layers, depth, height, width, channels, as far as it has them.

    Channels are the equal fields of a structured `dtype`, or a last axis if `channels` is 2 or 4.
    CutraceError, starting with `what`, for arrays that textures do not support.
    """
    element, fields = _channel(dtype, what)
    channels = form.channels
    count = fields or channels or 1
    if count not in CHANNELS or channels not in (None, count):
        channel_count = channels if count in CHANNELS else count
        raise CutraceError(
            f"{what} of {dtype} with {channel_count} channels: textures have 1, 2 or 4"
        )
    if not fields and count > 1:
        if shape[-1:] != (count,):
            raise CutraceError(f"{what} of shape {shape}: expected {count} channels as last axis")
        shape = shape[:-1]
    if form.cubemap:
        _check_cubes(shape, form.layered, what)
    extent, layers = _extent(shape, form.layered or form.cubemap, what)
    return Texels(element, count, extent, layers, form.cubemap)


def _check_cubes(shape: tuple[int, ...], layered: bool, what: str) -> None:
    """Check for six squares, or with `layered` a multiple of six."""
    faces = shape[0] if len(shape) == 3 else 0
    whole = faces % FACES == 0 and faces > 0 if layered else faces == FACES
    if not whole or shape[1] != shape[2]:
        face_count = "6, 12, 18..." if layered else "6"
        raise CutraceError(f"{what} of shape {shape}: a cubemap is {face_count} square faces")


def _channel(dtype: np.dtype[Any], what: str) -> tuple[np.dtype[Any], int]:
    """Return the type of a channel, and the number of its fields; 0 for a plain type."""
    kinds = {dtype[name] for name in dtype.names or ()} or {dtype}
    element = kinds.pop()
    is_supported = element.newbyteorder("<").str[1:] in FORMATS
    if kinds or not is_supported or dtype.itemsize != len(dtype.names or "_") * element.itemsize:
        listed = ", ".join(FORMATS.values())
        raise CutraceError(
            f"{what} of {dtype}: expected {listed}, or a structure of 2 or 4 of one of them"
            f"{_advice(element)}"
        )
    return element.newbyteorder("<"), len(dtype.names or ())


def _advice(element: np.dtype[Any]) -> str:
    if element.kind == "b":
        return "; view(np.uint8) is the same values"
    if element.kind in "iuf" and element.itemsize == 8:
        return f"; astype(np.{'float32' if element.kind == 'f' else 'int32'}) makes them narrower"
    return ""


def _extent(shape: tuple[int, ...], layered: bool, what: str) -> tuple[tuple[int, ...], int]:
    """Return (extent, layers)."""
    most = 3
    if not 1 + layered <= len(shape) <= most or not prod(shape):
        kind = "layers of one or two dimensions" if layered else "one to three dimensions"
        raise CutraceError(f"{what} of shape {shape}: expected {kind}, each of 1 or more")
    if layered:
        return shape[:0:-1], shape[0]
    return shape[::-1], 0


def check_size(texels: Texels, is_linear: bool, what: str) -> None:
    """Refuse sizes that no device supports."""
    count = len(texels.extent)
    limits = _LINEAR_LIMITS if is_linear else _LAYERED_LIMITS if texels.layers else _ARRAY_LIMITS
    most = limits.get(count, texels.extent)
    if texels.layers > _MOST_LAYERS or any(
        size > limit for size, limit in zip(texels.extent, most, strict=True)
    ):
        layers = f" of at most {_MOST_LAYERS} layers" if texels.layers else ""
        widest = " x ".join(map(str, most))
        raise CutraceError(
            f"{what} of {' x '.join(map(str, texels.extent))} texels: no device has one over "
            f"{widest}{layers}"
        )
