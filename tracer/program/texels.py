"""CUDA arrays, textures and surfaces of a program."""

import struct
import sys
from typing import Any, NamedTuple

import numpy as np

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ..engine.memory.memory import Allocation
from ..engine.texture.level import Mipmap
from ..host.array import DeviceArray, describe
from ..host.texture.surface import Surface, reserve_surface
from ..host.texture.texel import TexelForm
from ..host.texture.texture import Modes, make_mipmap, make_texture
from .answers import (
    INVALID_FILTER_SETTING,
    INVALID_NORM_SETTING,
    INVALID_VALUE,
    NOT_SUPPORTED,
    Answer,
    Verbs,
)
from .session import ProgramSession
from .storage import Storage

LAYERED, CUBEMAP = 1, 4
"""Flags of cudaMalloc3DArray."""

ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
FILTER_MODES = ("point", "linear")
READ_MODES = ("element", "normalized_float")
"""In the order of CUDA's enumerations."""

OVER_ARRAY, OVER_LINEAR, OVER_ROWS, OVER_LEVELS = 1, 2, 3, 4
"""What a texture lies over."""


_DESCRIPTOR = struct.Struct("<6i4fiIi3f2i")


class TextureDescriptor(NamedTuple):
    """A cudaTextureDesc."""

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
        """Those of x, y and z."""
        return self.mode_x, self.mode_y, self.mode_z

    def error(self, dimensions: int, dtype: np.dtype[Any], is_cubemap: bool) -> int:
        """What CUDA answers to fields that do not go together, 0 if they do; of an H200."""
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
        return INVALID_NORM_SETTING if self.read_mode and not is_narrow else 0

    def modes(self, dimensions: int, is_linear: bool) -> Modes:
        """How it is sampled; linear memory knows no filter and no normalized coordinates."""
        return Modes(
            [ADDRESS_MODES[mode] for mode in self.address_modes[:dimensions]],
            FILTER_MODES[0 if is_linear else self.filter_mode],
            bool(self.normalized) and not is_linear,
            READ_MODES[self.read_mode],
            self[6:10],
            bool(self.srgb),
            bool(self.seamless),
        )

    def mipmap(self, levels: int) -> Mipmap:
        """How its levels are chosen."""
        chosen = FILTER_MODES[self.level_filter]
        return Mipmap(levels, chosen, self.level_bias, self.least_level, self.most_level)


@dataclass(frozen=True, slots=True)
class _Array:
    surface: Surface
    channels: int
    flags: int


class Texels:
    """A program's CUDA arrays by number, and the textures and surfaces over them."""

    def __init__(self, session: ProgramSession, storage: Storage) -> None:
        self._recording = session.recording
        self._storage = storage
        self._arrays: list[_Array | None] = []

    @property
    def verbs(self) -> Verbs:
        """What it answers."""
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
        """Reserve texels."""
        shape = tuple(size for size in (depth, height, width) if size)
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
        """Give an array's texels back."""
        array = self._arrays[number]
        if array is None:
            return INVALID_VALUE
        self._arrays[number] = None
        self._recording.memory.surface.free(array.surface.place)
        self._recording.arrays.remove(describe(array.surface.place))
        return ()

    def make_surface(self, number: int) -> Answer:
        """The handle with which kernels reach an array's texels."""
        array = self._arrays[number]
        return INVALID_VALUE if array is None else (array.surface.handle,)

    def make_texture(
        self, over: int, where: int, x: int, y: int, z: int, w: int, kind: int, width: int,
        height: int, pitch: int, descriptor: bytes, view: bytes, levels: bytes,
    ) -> Answer:  # fmt: skip
        """Make a texture over an array, the levels of a mipmapped one, or linear memory."""
        asked = TextureDescriptor(*_DESCRIPTOR.unpack(descriptor))
        try:
            values, form = self._values(over, where, (x, y, z, w), kind, width, height, pitch)
            dimensions = _dimensions(values, form)
            if error := asked.error(dimensions, values.dtype, form.cubemap):
                return error
            _check_fields(asked, over, dimensions)
            _check_view(view, values, form)
            modes = asked.modes(dimensions, over == OVER_LINEAR)
            if over == OVER_LEVELS:
                arrays = [self._surface(number) for (number,) in struct.iter_unpack("<I", levels)]
                made = make_mipmap(self._recording, arrays, modes, form, asked.mipmap(len(arrays)))
            else:
                made = make_texture(self._recording, values, modes, form, None)
        except CutraceError as problem:
            return _refuse(problem)
        return (made.handle,)

    def release(self, handle: int) -> Answer:
        """Take note that a texture is not needed any more: its number is not given again."""
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
        """What a texture lies over, and how its axes are to be read."""
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
        part = Allocation(place.name, where, place.address + place.size - where)
        return DeviceArray(self._recording, part, rows, texel, pitch), TexelForm()


def _check_fields(asked: TextureDescriptor, over: int, dimensions: int) -> None:
    """Refuse fields of a cudaTextureDesc that would change samples in a way that is not known."""
    problem = ""
    if asked.anisotropy > 1:
        problem = f"maxAnisotropy is {asked.anisotropy}: expected 0 or 1, no anisotropic filter"
    elif asked.seamless and asked.filter_mode:
        problem = "seamlessCubemap: expected 0, or a point filter: no filter across a cube's edges"
    elif asked.read_mode not in (0, 1):
        problem = f"readMode is {asked.read_mode}: expected 0 or 1"
    elif dimensions == 1 and over != OVER_LINEAR and asked.filter_mode and asked.mode_y == 3:
        problem = "addressMode[1] is border: a filter of one dimension would mix it in on a chip"
    if problem:
        raise CutraceError(f"cutrace leaves out cudaTextureDesc.{problem}")


_VIEW = struct.Struct("<i4x3Q4I")
_VIEW_FORMATS = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
"""In the order of cudaResourceViewFormat, each of 1, 2 and 4 channels."""


def _check_view(view: bytes, values: Surface | DeviceArray, form: TexelForm) -> None:
    """Refuse a cudaResourceViewDesc that reads an array as another than it is, by the field."""
    if not view:
        return
    format_, width, height, depth, _, _, first_layer, last_layer = _VIEW.unpack_from(view)
    if not isinstance(values, Surface):
        raise CutraceError("a cudaResourceViewDesc over linear memory: expected none")
    channels = form.channels or 1
    own = 1 + 3 * _VIEW_FORMATS.index(values.dtype.str[1:]) + (channels > 1) + (channels > 2)
    shape = values.shape[: len(values.shape) - (channels > 1)]
    is_layered = form.layered or form.cubemap
    sizes = (*(shape[:0:-1] if is_layered else shape[::-1]), 0, 0)[:3]
    layers = shape[0] if is_layered else 0
    fields = {
        "format": (format_, (0, own)),
        "width": (width, (0, sizes[0])),
        "height": (height, (0, sizes[1])),
        "depth": (depth, (0, layers or sizes[2])),
        "firstLayer": (first_layer, (0,)),
        "lastLayer": (last_layer, (0, max(layers - 1, 0))),
    }
    for name, (value, known) in fields.items():
        if value not in known:
            expected = " or ".join(map(str, sorted(set(known))))
            raise CutraceError(
                f"cudaResourceViewDesc.{name} is {value}: cutrace reads an array as it is; "
                f"expected {expected}"
            )


def _dimensions(values: Surface | DeviceArray, form: TexelForm) -> int:
    channels = 1 if form.channels in (None, 1) else 2
    return len(values.shape) - (channels - 1) - int(form.layered or form.cubemap)


def _texel(bits: tuple[int, ...], kind: int) -> tuple[np.dtype[Any], int]:
    """The type of a channel, and how many there are; CutraceError for what NumPy has not."""
    channels = sum(size > 0 for size in bits)
    if kind > 2 or len(set(bits[:channels])) != 1 or bits[0] not in (8, 16, 32):
        raise CutraceError(f"texels of {bits} bits, of kind {kind}, are not supported")
    return np.dtype(f"<{'iuf'[kind]}{bits[0] // 8}"), channels


def _refuse(problem: CutraceError) -> int:
    print(f"cutrace: {problem}", file=sys.stderr)
    return NOT_SUPPORTED
