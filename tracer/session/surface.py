"""Surfaces: arrays of texels that kernels read and write by coordinate, like CUDA arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.errors import CutraceError
from ...traces.schema import Event
from ..simt.memory import surface as engine
from ..simt.memory.memory import Allocation
from ..simt.texture.query import SURFACES
from .array import DeviceArray, describe
from .recording import Recording
from .texel import TexelForm, Texels, check_size, read_texels


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
        engine.Surface(
            label,
            texels.format,
            texels.extent,
            texels.layers,
            texels.texel_bytes,
            0,
            -(-row_bytes // engine.ROW_ALIGNMENT) * engine.ROW_ALIGNMENT,
        )
    )
    recording.arrays.append(describe(place))
    return Surface(recording, place, texels, shape, dtype.newbyteorder("<"))
