"""CUDA arrays, textures and surfaces of a program."""

import struct
import sys
from typing import Any

import numpy as np

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ..engine.memory.memory import Allocation
from ..engine.texture.level import Mipmap
from ..host.array import DeviceArray, describe
from ..host.texture.surface import Surface, reserve_surface
from ..host.texture.texel import TexelForm
from ..host.texture.texture import Modes, make_mipmap, make_texture
from .answers import INVALID_VALUE, NOT_SUPPORTED, Answer, Verbs
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
        height: int, pitch: int, mode_x: int, mode_y: int, mode_z: int, filter_mode: int,
        read_mode: int, normalized: int, level_filter: int, clamps: bytes, levels: bytes,
    ) -> Answer:  # fmt: skip
        """Make a texture over an array, the levels of a mipmapped one, or linear memory."""
        modes = (mode_x, mode_y, mode_z)
        try:
            values, form = self._values(over, where, (x, y, z, w), kind, width, height, pitch)
            given = Modes(
                [ADDRESS_MODES[mode] for mode in modes[: _dimensions(values, form)]],
                FILTER_MODES[filter_mode if over != OVER_LINEAR else 0],
                bool(normalized) and over != OVER_LINEAR,
                READ_MODES[read_mode],
            )
            if over == OVER_LEVELS:
                arrays = [self._surface(number) for (number,) in struct.iter_unpack("<I", levels)]
                filtered, chosen = FILTER_MODES[level_filter], struct.unpack("<3f", clamps)
                mipmap = Mipmap(len(arrays), filtered, *chosen)
                made = make_mipmap(self._recording, arrays, given, form, mipmap)
            else:
                made = make_texture(self._recording, values, given, form, None)
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
