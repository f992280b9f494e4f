"""Surfaces: arrays of texels that kernels read and write by coordinate, like CUDA arrays.

`read_texels` interprets an array as texels: channel type, channel count, and the role of each axis.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Event
from ..simt.memory.memory import Allocation
from ..simt.memory.surface import ROW_ALIGNMENT
from ..simt.memory.surface import Surface as DeviceSurface
from ..simt.texture.query import SURFACES
from .array import DeviceArray, describe
from .recording import Recording

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


class Surface:
    """A surface of a session: pass it to a kernel's `cudaSurfaceObject_t` parameter.

    `handle` is the 64-bit number that the kernel sees. `texture(surface, ...)` samples the same
    texels.
    """

    def __init__(
        self,
        recording: Recording,
        place: Allocation,
        texels: Texels,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._recording = recording
        self._place = place
        self._texels = texels
        self.handle = SURFACES + len(recording.memory.surfaces)
        self.shape = shape
        self.dtype = dtype

    @property
    def name(self) -> str:
        """Return its name in tables."""
        return self._place.name

    @property
    def place(self) -> Allocation:
        """Return its allocation in surface memory."""
        return self._place

    @property
    def nbytes(self) -> int:
        """Return the bytes of its texels, without the padding of rows."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __repr__(self) -> str:
        extent = " x ".join(map(str, self._texels.extent))
        return f"<surface {self.name}: {self._texels.format}, {extent}>"

    def belongs_to(self, recording: Recording) -> bool:
        """Return True if it is a surface of this session."""
        return self._recording is recording

    def copy_to_host(self) -> NDArray[Any]:
        """Return a host copy: a new array of its original shape and dtype."""
        self._recording.note(Event("copy", self.nbytes, "DtoH", self.name))
        return self._elements().copy()

    def copy_to_device(self, values: ArrayLike) -> None:
        """Write all texels from a host array of its shape."""
        host = np.asarray(values)
        if host.shape != self.shape or host.dtype.newbyteorder("<") != self.dtype:
            raise CutraceError(
                f"`{self.name}` is {self.dtype} of shape {self.shape}, "
                f"got {host.dtype} of shape {host.shape}"
            )
        self._recording.note(Event("copy", self.nbytes, "HtoD", self.name))
        self._elements()[...] = host

    def texels(self) -> NDArray[Any]:
        """Return a view of its current texels (layers, depth, height, width, channels)."""
        texels = self._texels
        width, height, depth = (*texels.extent, 1, 1)[:3]
        elements = self._rows().view(texels.element)
        return elements.reshape(max(texels.layers, 1), depth, height, width, texels.channels)

    def shared_texels(self, recording: Recording, form: TexelForm, what: str) -> Texels:
        """Return its texels' form for a texture; CutraceError for another session's surface."""
        if not self.belongs_to(recording):
            raise CutraceError(f"{what} over `{self.name}`: a surface of another session")
        own = self._texels
        layered = form.layered or (own.layers > 0 and not form.cubemap)
        request_form = TexelForm(form.channels or own.channels, layered, form.cubemap)
        return read_texels(self.shape, self.dtype, request_form, what)

    def _rows(self) -> NDArray[np.uint8]:
        memory = self._recording.memory.view(self._place)
        row_bytes = self._texels.extent[0] * self._texels.texel_bytes
        return memory.reshape(-1, self._place.pitch)[:, :row_bytes]

    def _elements(self) -> NDArray[Any]:
        return self._rows().view(self.dtype).reshape(self.shape)


def make_surface(
    recording: Recording, array: ArrayLike, form: TexelForm, name: str | None
) -> Surface:
    """Create a surface from a copy of a host array; CutraceError for unsupported arrays."""
    recording.check_open()
    what = f"surface `{name}`" if name else "a surface"
    if isinstance(array, DeviceArray):
        raise CutraceError(
            f"{what} over device array `{array.name}`: a surface is no linear memory; a copy is "
            "one: surface(array.copy_to_host())"
        )
    values = np.asarray(array)
    surface = reserve_surface(recording, values.shape, values.dtype, form, name)
    surface.copy_to_device(values)
    return surface


def reserve_surface(
    recording: Recording, shape: tuple[int, ...], dtype: np.dtype[Any], form: TexelForm,
    name: str | None = None,
) -> Surface:  # fmt: skip
    """Create a surface of zeros; CutraceError for unsupported shapes."""
    what = f"surface `{name}`" if name else "a surface"
    texels = read_texels(shape, dtype, form, what)
    check_size(texels, False, what)
    label = recording.new_name(name, "surface")
    row_bytes = texels.extent[0] * texels.texel_bytes
    place = recording.memory.add_surface(
        DeviceSurface(
            label,
            texels.format,
            texels.extent,
            texels.layers,
            texels.texel_bytes,
            0,
            -(-row_bytes // ROW_ALIGNMENT) * ROW_ALIGNMENT,
        )
    )
    recording.arrays.append(describe(place))
    return Surface(recording, place, texels, shape, dtype.newbyteorder("<"))
