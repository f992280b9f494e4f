"""CUDA arrays, textures and surfaces of a program.

`Texels` answers the calls that make and drop them. Descriptors are checked as CUDA checks them on
an H200: a combination that CUDA rejects returns its error code, and one that CUDA accepts but we do
not model is refused with the field's name.
"""

import struct
import sys
from typing import Any, NamedTuple

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..session.array import DeviceArray, describe
from ..session.surface import Surface, TexelForm, reserve_surface
from ..session.texture import Modes, make_mipmap, make_texture
from ..simt.memory.memory import Allocation
from ..simt.memory.texture import Mipmap
from .session import ProgramSession
from .storage import Storage
from .wire import (
    INVALID_CHANNEL_DESCRIPTOR,
    INVALID_FILTER_SETTING,
    INVALID_NORM_SETTING,
    INVALID_VALUE,
    NOT_SUPPORTED,
    Answer,
    Verbs,
)

LAYERED, CUBEMAP = 1, 4
"""Flags of cudaMalloc3DArray."""

ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
BORDER = ADDRESS_MODES.index("border")
FILTER_MODES = ("point", "linear")
READ_MODES = ("element", "normalized_float")
"""In the order of CUDA's enumerations."""

OVER_ARRAY, OVER_LINEAR, OVER_ROWS, OVER_LEVELS = 1, 2, 3, 4
"""Kinds of memory under a texture."""


_DESCRIPTOR = struct.Struct("<6i4fiIi3f2i")


class TextureDescriptor(NamedTuple):
    """The fields of a cudaTextureDesc."""

    mode_x: int
    mode_y: int
    mode_z: int
    filter_mode: int
    read_mode: int
    srgb: int
    border_x: float
    border_y: float
    border_z: float
    border_w: float
    normalized: int
    anisotropy: int
    level_filter: int
    level_bias: float
    least_level: float
    most_level: float
    exact_levels: int
    seamless: int

    @property
    def address_modes(self) -> tuple[int, int, int]:
        """Address modes of x, y and z."""
        return self.mode_x, self.mode_y, self.mode_z

    def error(self, dimensions: int, dtype: np.dtype[Any], is_cubemap: bool) -> int:
        """Return CUDA's error for an invalid combination of fields, 0 if valid; as on an H200."""
        modes = self.address_modes[:dimensions]
        if not all(0 <= mode < len(ADDRESS_MODES) for mode in modes):
            return INVALID_VALUE
        if not {self.filter_mode, self.level_filter} <= {0, 1}:
            return INVALID_VALUE
        if self.seamless and not is_cubemap:
            return INVALID_VALUE
        element = dtype[0] if dtype.names else dtype
        is_narrow = element.kind != "f" and element.itemsize < 4
        if self.filter_mode and element.kind != "f" and not (is_narrow and self.read_mode):
            return INVALID_FILTER_SETTING
        return INVALID_NORM_SETTING if self.read_mode == 1 and not is_narrow else 0

    def modes(self, dimensions: int, is_linear: bool) -> Modes:
        """Return the sampling modes; linear memory has no filter and no normalized coordinates."""
        return Modes(
            [ADDRESS_MODES[mode] for mode in self.address_modes[:dimensions]],
            FILTER_MODES[0 if is_linear else self.filter_mode],
            bool(self.normalized) and not is_linear,
            READ_MODES[self.read_mode],
            self[6:10],
            bool(self.srgb),
            bool(self.seamless),
            self.mode_y == BORDER,
        )

    def mipmap(self, levels: int) -> Mipmap:
        """Return how a mipmap level is selected."""
        filter_mode = FILTER_MODES[self.level_filter]
        return Mipmap(levels, filter_mode, self.level_bias, self.least_level, self.most_level)


@dataclass(frozen=True, slots=True)
class _Array:
    surface: Surface
    channels: int
    flags: int


class Texels:
    """A program's CUDA arrays by handle, and the textures and surfaces over them."""

    def __init__(self, session: ProgramSession, storage: Storage) -> None:
        self._recording = session.recording
        self._storage = storage
        self._arrays: list[_Array | None] = []

    @property
    def verbs(self) -> Verbs:
        """The handlers of its messages."""
        return {
            "ARRAY": self.make_array,
            "DROP": self.drop,
            "TEXTURE": self.make_texture,
            "SURFACE": self.make_surface,
            "RELEASE": self.release,
        }

    def make_array(
        self, x: int, y: int, z: int, w: int, kind: int, width: int, height: int, depth: int,
        flags: int,
    ) -> Answer:  # fmt: skip
        """Allocate a CUDA array."""
        shape = tuple(size for size in (depth, height, width) if size)
        if not _is_texel((x, y, z, w), kind):
            return INVALID_CHANNEL_DESCRIPTOR
        try:
            dtype, channels = _texel((x, y, z, w), kind)
            form = TexelForm(channels, layered=bool(flags & (LAYERED | CUBEMAP)))
            whole = shape if channels == 1 else (*shape, channels)
            surface = reserve_surface(self._recording, whole, dtype, form)
        except CutraceError as problem:
            return _refuse(problem)
        self._arrays.append(_Array(surface, channels, flags))
        place = surface.place
        texel_bytes = dtype.itemsize * channels
        return (len(self._arrays) - 1, place.address, place.pitch, texel_bytes)

    def drop(self, number: int) -> Answer:
        """Free a CUDA array."""
        array = self._arrays[number]
        if array is None:
            return INVALID_VALUE
        self._arrays[number] = None
        self._recording.memory.surface.free(array.surface.place)
        self._recording.arrays.remove(describe(array.surface.place))
        return ()

    def make_surface(self, number: int) -> Answer:
        """Return the surface handle through which kernels access an array."""
        array = self._arrays[number]
        return INVALID_VALUE if array is None else (array.surface.handle,)

    def make_texture(
        self, over: int, where: int, x: int, y: int, z: int, w: int, kind: int, width: int,
        height: int, pitch: int, descriptor: bytes, view: bytes, levels: bytes,
    ) -> Answer:  # fmt: skip
        """Make a texture over an array, a mipmapped array's levels, or linear memory."""
        texture_descriptor = TextureDescriptor(*_DESCRIPTOR.unpack(descriptor))
        if not _is_texel((x, y, z, w), kind):
            return INVALID_CHANNEL_DESCRIPTOR
        if kind in _FRACTIONS and not texture_descriptor.read_mode:
            return INVALID_NORM_SETTING
        try:
            values, form = self._values(over, where, (x, y, z, w), kind, width, height, pitch)
            dimensions = _dimensions(values, form)
            if error := texture_descriptor.error(dimensions, values.dtype, form.cubemap):
                return error
            if isinstance(values, Surface) and view:
                view_descriptor = _View(*_VIEW.unpack_from(view))
                if view_descriptor.is_invalid(values, form, over == OVER_LEVELS):
                    return INVALID_VALUE
                view_descriptor.check(values, form)
            _check_fields(texture_descriptor, dimensions == 1 and form.layered)
            modes = texture_descriptor.modes(dimensions, over == OVER_LINEAR)
            if over == OVER_LEVELS:
                arrays = [self._surface(number) for (number,) in struct.iter_unpack("<I", levels)]
                texture = make_mipmap(
                    self._recording, arrays, modes, form, texture_descriptor.mipmap(len(arrays))
                )
            else:
                texture = make_texture(self._recording, values, modes, form, None)
        except CutraceError as problem:
            return _refuse(problem)
        return (texture.handle,)

    def release(self, handle: int) -> Answer:
        """Accept that a texture is destroyed; its handle is not reused, so nothing is to do."""
        return ()

    def _surface(self, number: int) -> Surface:
        array = self._arrays[number]
        if array is None:
            raise CutraceError("a texture over an array that was freed")
        return array.surface

    def _values(
        self, over: int, where: int, bits: tuple[int, ...], kind: int, width: int, height: int,
        pitch: int,
    ) -> tuple[Surface | DeviceArray, TexelForm]:  # fmt: skip
        """Return the memory under a texture, and the meaning of its axes."""
        if over in (OVER_ARRAY, OVER_LEVELS):
            surface, array = self._surface(where), self._arrays[where]
            assert array
            cubemap = bool(array.flags & CUBEMAP)
            layered = bool(array.flags & LAYERED)
            return surface, TexelForm(array.channels, layered, cubemap)
        dtype, channels = _texel(bits, kind)
        texel = dtype if channels == 1 else np.dtype([(name, dtype) for name in "xyzw"[:channels]])
        place = self._storage.find(where)
        if place is None:
            raise CutraceError("a texture over memory that is not the device's")
        there = (place.address + place.size - where) // texel.itemsize
        rows = (min(width, there),) if over == OVER_LINEAR else (height, width)
        pitch = pitch or width * texel.itemsize
        if over == OVER_ROWS and (height - 1) * pitch + width * texel.itemsize > (
            place.address + place.size - where
        ):
            raise CutraceError("cutrace leaves out textures of more rows than their memory has")
        part = Allocation(place.name, where, place.address + place.size - where)
        return DeviceArray(self._recording, part, rows, texel, pitch), TexelForm()


def _check_fields(descriptor: TextureDescriptor, is_layered_row: bool) -> None:
    """Refuse fields of a cudaTextureDesc that affect samples in a way that is not modelled."""
    problem = ""
    if descriptor.anisotropy > 1:
        problem = (
            f"maxAnisotropy is {descriptor.anisotropy}: expected 0 or 1, no anisotropic filter"
        )
    elif descriptor.seamless and descriptor.filter_mode:
        problem = "seamlessCubemap: expected 0, or a point filter: no filter across a cube's edges"
    elif descriptor.read_mode not in (0, 1):
        problem = f"readMode is {descriptor.read_mode}: expected 0 or 1"
    elif is_layered_row and descriptor.filter_mode and descriptor.mode_y == BORDER:
        problem = "addressMode[1] is border: a filter of one dimension and layers may mix it in"
    if problem:
        raise CutraceError(f"cutrace leaves out cudaTextureDesc.{problem}")


_VIEW = struct.Struct("<i4x3Q4I")
_VIEW_FORMATS = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
"""In the order of cudaResourceViewFormat, each of 1, 2 and 4 channels."""
_BLOCKS = (8, 16, 16, 8, 8, 16, 16, 16, 16, 16)
"""Bytes per block of 4 x 4 texels of the compressed formats, which follow those."""


class _View(NamedTuple):
    """The fields of a cudaResourceViewDesc."""

    format: int
    width: int
    height: int
    depth: int
    first_level: int
    last_level: int
    first_layer: int
    last_layer: int

    @property
    def _plain_formats(self) -> int:
        return 3 * len(_VIEW_FORMATS)

    @property
    def _is_compressed(self) -> bool:
        return self.format > self._plain_formats

    @property
    def _texel_bytes(self) -> int:
        """Bytes per texel of the array; 0 if the format is invalid."""
        if not 0 < self.format <= self._plain_formats + len(_BLOCKS):
            return 0
        if self._is_compressed:
            return _BLOCKS[self.format - self._plain_formats - 1]
        element, channels = divmod(self.format - 1, 3)
        return int(_VIEW_FORMATS[element][1]) << channels

    def is_invalid(self, values: Surface, form: TexelForm, has_levels: bool) -> bool:
        """Return whether CUDA rejects the view for this array; as on an H200."""
        shape = _shape(values, form)
        is_layered = form.layered or form.cubemap
        sizes = (*(shape[:0:-1] if is_layered else shape[::-1]), 0, 0)[:3]
        wide = 4 if self._is_compressed else 1
        extent = (sizes[0] * wide, sizes[1] * wide, shape[0] if is_layered else sizes[2])
        return (
            self._texel_bytes != values.dtype.itemsize * (form.channels or 1)
            or (self.width, self.height, self.depth) != extent
            or self.first_level > self.last_level
            or self.first_layer > self.last_layer
            or bool(self.last_level and not has_levels)
            or bool(self.last_layer and not is_layered)
        )

    def check(self, values: Surface, form: TexelForm) -> None:
        """Refuse a view that reinterprets the array; the message names the field."""
        channels = form.channels or 1
        own = 1 + 3 * _VIEW_FORMATS.index(values.dtype.str[1:]) + (channels > 1) + (channels > 2)
        layers = _shape(values, form)[0] if form.layered or form.cubemap else 1
        problem = ""
        if self.format != own:
            problem = f"format is {self.format}: expected {own}, the array's own"
        elif self.first_layer:
            problem = f"firstLayer is {self.first_layer}: expected 0"
        elif self.last_layer != layers - 1:
            problem = f"lastLayer is {self.last_layer}: expected {layers - 1}, all layers"
        if problem:
            raise CutraceError(f"cutrace leaves out cudaResourceViewDesc.{problem}")


def _shape(values: Surface | DeviceArray, form: TexelForm) -> tuple[int, ...]:
    """Return the shape without the channel axis."""
    return values.shape[: len(values.shape) - (form.channels not in (None, 1))]


def _dimensions(values: Surface | DeviceArray, form: TexelForm) -> int:
    return len(_shape(values, form)) - int(form.layered or form.cubemap)


_FRACTIONS = {5 + i: ("u1", "u2", "i1", "i2")[i // 3] for i in range(12)}
"""Integer formats that are read as fractions, by cudaChannelFormatKind: 1, 2 and 4 channels."""
_LAST_KIND = 31


def _is_texel(bits: tuple[int, ...], kind: int) -> bool:
    """Return whether CUDA accepts a channel description; as on an H200, with planar and block
    kinds.
    """
    channels = sum(size > 0 for size in bits)
    if kind in _FRACTIONS:
        return channels == 1 << (kind - 5) % 3 and bits[0] == 8 * int(_FRACTIONS[kind][1])
    if kind > 2:
        return 17 <= kind < _LAST_KIND or (kind == _LAST_KIND and bits == (10, 10, 10, 2))
    widths = (16, 32) if kind == 2 else (8, 16, 32)
    return channels in (1, 2, 4) and set(bits[:channels]) <= {bits[0]} and bits[0] in widths


def _texel(bits: tuple[int, ...], kind: int) -> tuple[np.dtype[Any], int]:
    """Return the dtype of a channel and the number of channels.

    Raises CutraceError if NumPy has no such dtype.
    """
    if kind not in (0, 1, 2, *_FRACTIONS):
        raise CutraceError(f"texels of {bits} bits, of kind {kind}, are not supported")
    letter = "iuf"[kind] if kind < 3 else _FRACTIONS[kind][0]
    return np.dtype(f"<{letter}{bits[0] // 8}"), sum(size > 0 for size in bits)


def _refuse(problem: CutraceError) -> int:
    print(f"cutrace: {problem}", file=sys.stderr)
    return NOT_SUPPORTED
