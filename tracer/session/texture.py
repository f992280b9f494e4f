"""Textures: arrays that kernels sample, with the modes of CUDA's texture descriptors.

`make_texture` builds one from a host array, a device array (linear memory) or a surface,
`make_mipmap` from several surfaces. Both check that modes and texels go together.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces import schema
from ..simt.memory import texture as engine
from ..simt.memory.texture import Mipmap
from ..simt.memory.texture_border import border_texel, colors_of
from .array import DeviceArray
from .recording import Recording
from .surface import Surface
from .texel import TexelForm, Texels, check_size, read_texels

PITCH = 32
"""Row alignment in bytes of a texture over linear memory (texturePitchAlignment)."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Sampling modes; `address_mode` is for all dimensions or for each, x first.

    `border` is the color outside the texture, one number per channel. `srgb` texels are linearized,
    and a `seamless` cubemap is filtered across the edges of its faces. A filter of one dimension
    blends `bordered_rows` with the border.
    """

    address_mode: str | Sequence[str]
    filter_mode: str
    normalized_coords: bool
    read_mode: str
    border: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    srgb: bool = False
    seamless: bool = False
    bordered_rows: bool = False


class Texture:
    """A texture of a session: pass it to a kernel's `cudaTextureObject_t` parameter.

    `handle` is the 64-bit number that the kernel sees, `description` its description in the trace.
    """

    def __init__(self, recording: Recording, handle: int, description: schema.Texture) -> None:
        self._recording = recording
        self.handle = handle
        self.description = description

    @property
    def name(self) -> str:
        """Return its name in tables."""
        return self.description.name

    def __repr__(self) -> str:
        described = self.description
        extent = " x ".join(map(str, described.extent))
        return f"<texture {self.name}: {described.format}, {extent}, {described.filter_mode}>"

    def belongs_to(self, recording: Recording) -> bool:
        """Return True if it is a texture of this session."""
        return self._recording is recording


def make_texture(
    recording: Recording,
    array: DeviceArray | Surface | ArrayLike,
    modes: Modes,
    form: TexelForm,
    name: str | None,
) -> Texture:
    """Create a texture: from a copy of a host array, or over a surface or device array itself.

    CutraceError for an array that no texture supports, an unknown mode, and modes that do not go
    together.
    """
    recording.check_open()
    what = f"texture `{name}`" if name else "a texture"
    values = array if isinstance(array, DeviceArray | Surface) else np.asarray(array)
    if isinstance(values, Surface):
        texels = values.shared_texels(recording, form, what)
    else:
        texels = read_texels(values.shape, values.dtype, form, what)
    address_modes = _check_modes(modes, texels, what)
    check_size(texels, isinstance(values, DeviceArray), what)
    over = ""
    if isinstance(values, DeviceArray):
        read, over = _linear(recording, values, texels, modes, what), values.name
    elif isinstance(values, Surface):
        read = values.texels
    else:
        read = _copied(values, texels)
    label = recording.new_name(name, "texture")
    if isinstance(values, np.ndarray):
        recording.note(schema.Event("copy", values.nbytes, "HtoD", label))
    description = schema.Texture(
        label,
        texels.format,
        texels.extent,
        address_modes,
        modes.filter_mode,
        bool(modes.normalized_coords),
        modes.read_mode,
        over,
        texels.layers,
    )
    is_normalized = modes.read_mode == "normalized_float"
    is_byte = is_normalized and texels.element.str[1:] == "u1"
    colors = colors_of(texels.channels) if modes.srgb and is_byte else 0
    border = border_texel(modes.border, texels.element, is_normalized, colors)
    handle = recording.memory.add_texture(
        engine.Texture(
            description,
            read,
            is_cubemap=texels.is_cubemap,
            border=border[: texels.channels],
            colors=colors,
            is_seamless=modes.seamless and texels.is_cubemap,
            bordered_rows=modes.bordered_rows and len(texels.extent) == 1,
        )
    )
    return Texture(recording, handle, description)


def make_mipmap(
    recording: Recording, levels: Sequence[Surface], modes: Modes, form: TexelForm, mipmap: Mipmap
) -> Texture:
    """Create a texture over surfaces as mipmap levels, each half as large as the one before.

    CutraceError as for `make_texture`, and for modes that mipmaps do not support.
    """
    if not modes.normalized_coords:
        raise CutraceError("a mipmapped texture is sampled by normalised coordinates only")
    texture = make_texture(recording, levels[0], modes, form, None)
    for number, level in enumerate(levels[1:], 1):
        make_texture(recording, level, modes, form, f"{texture.name}_level{number}")
    textures = recording.memory.textures
    if mipmap.filter_mode == "linear" and not textures[texture.handle - 1].gives_floats:
        raise CutraceError(f"`{texture.name}`: linear filtering between levels gives no integers")
    textures[texture.handle - 1] = replace(textures[texture.handle - 1], mipmap=mipmap)
    return texture


def _copied(values: NDArray[Any], texels: Texels) -> Callable[[], NDArray[Any]]:
    little = values.astype(values.dtype.newbyteorder("<"), order="C")
    arrangement = texels.arrange(little)
    return lambda: arrangement


def _linear(
    recording: Recording, array: DeviceArray, texels: Texels, modes: Modes, what: str
) -> Callable[[], NDArray[Any]]:
    """Check linear memory's rules; return a function that reads the device array when called."""
    if not array.belongs_to(recording):
        raise CutraceError(f"{what} over `{array.name}`: an array of another session")
    if texels.layers or len(texels.extent) > 2:
        raise CutraceError(
            f"{what} over device array `{array.name}`: linear memory holds one or two dimensions, "
            "without layers; a copy does not mind: texture(array.copy_to_host())"
        )
    if len(texels.extent) == 1 and (modes.filter_mode != "point" or modes.normalized_coords):
        raise CutraceError(
            f"{what} over device array `{array.name}` of one dimension: tex1Dfetch names texels by "
            "integers, without filter and normalised coordinates; a copy has both: "
            "texture(array.copy_to_host())"
        )
    strides = array.elements().strides[: len(texels.extent)]
    if strides[-1] != texels.texel_bytes:
        raise CutraceError(
            f"{what} over pitched array `{array.name}`: its texels are not side by side; pitch an "
            'array of structures, np.dtype([("x", ...), ("y", ...)])'
        )
    if strides[0] % PITCH and len(strides) == 2:
        raise CutraceError(
            f"{what} over device array `{array.name}`: its rows are {strides[0]} bytes apart, "
            f"expected a multiple of {PITCH}: make it with pitched_array"
        )
    return lambda: texels.arrange(array.elements())


def _check_modes(modes: Modes, texels: Texels, what: str) -> tuple[str, ...]:
    """Return the address mode of each dimension; CutraceError for invalid combinations."""
    address_mode = modes.address_mode
    count = len(texels.extent)
    each = (
        (str(address_mode),) * count
        if not isinstance(address_mode, tuple | list)
        else tuple(address_mode)
    )
    for mode in each:
        _check_known(mode, schema.ADDRESS_MODES, "address_mode", what)
    _check_known(modes.filter_mode, schema.FILTER_MODES, "filter_mode", what)
    _check_known(modes.read_mode, schema.READ_MODES, "read_mode", what)
    if len(each) != count:
        raise CutraceError(f"{what}: {len(each)} address modes, expected one or {count}, x first")
    is_float = texels.element.kind == "f"
    if modes.read_mode == "normalized_float" and (is_float or texels.element.itemsize > 2):
        raise CutraceError(
            f'{what} of {texels.format}: read_mode="normalized_float" is for integers of 8 and '
            '16 bits; expected read_mode="element"'
        )
    if texels.is_cubemap and not modes.normalized_coords:
        raise CutraceError(f"{what}: a cubemap is sampled by directions: normalized_coords=True")
    if modes.filter_mode == "linear" and modes.read_mode == "element" and not is_float:
        raise CutraceError(
            f"{what} of {texels.format}: linear filtering gives no integers; expected floats, "
            'integers of 8 or 16 bits with read_mode="normalized_float", or filter_mode="point"'
        )
    return each


def _check_known(mode: object, mode_names: tuple[str, ...], what_mode: str, what: str) -> None:
    if mode not in mode_names:
        raise CutraceError(
            f"{what}: {what_mode}={mode!r}{nearest(str(mode), mode_names)}; there are"
            f" {', '.join(mode_names)}"
        )
