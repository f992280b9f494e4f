"""Textures: arrays that kernels sample, with the modes of CUDA's texture descriptors.

`make_texture` builds one from a host array, a device array (linear memory) or a surface,
`make_mipmap` from several surfaces. Both check that modes and texels go together.

`bind` and `bind_surface` bind file-scope references. The front end turns a CUDA C++ reference into
a variable that holds a texture's handle. PTX of old compilers declares `.global .texref name` (or
`.tex .u32 name`) and samples by name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces import schema
from ..front.source import Compiled, TextureReference
from ..front.texture_reference import surface_name
from ..ptx.kernel import Variable
from ..simt.decode.load_module import LoadedModule
from ..simt.memory.texture import Mipmap, border_texel, colors_of, shape_words
from ..simt.memory.texture import Texture as DeviceTexture
from .array import DeviceArray
from .recording import Recording
from .surface import Surface, TexelForm, Texels, check_size, read_texels
from .symbol import plain_name

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
        DeviceTexture(
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


_SHAPES = {1: (1, False), 2: (2, False), 3: (3, False), 0xF1: (1, True), 0xF2: (2, True)}
"""Dimensions and layering by CUDA's number of a texture type."""

_TEXEL = re.compile(r"(?P<kind>u?)(?P<word>char|short|int|float)(?P<channels>[124]?)")
_BITS = {"char": 8, "short": 16, "int": 32, "float": 32}


_Bound = TypeVar("_Bound", Texture, Surface)


def _require(recording: Recording, bound: object, kind: type[_Bound], word: str) -> _Bound:
    """Return what is to be bound, a texture or a surface of this session."""
    recording.check_open()
    if not isinstance(bound, kind):
        got = type(bound).__name__
        raise CutraceError(f"bind_{word}: expected a {word}, made with gpu.{word}(...), got {got}")
    if not bound.belongs_to(recording):
        raise CutraceError(f"bind_{word}: `{bound.name}` is a {word} of another session")
    return bound


def bind(
    recording: Recording, compiled: Compiled, loaded: LoadedModule, name: str, texture: object
) -> None:
    """Bind a texture to the reference `name`; CutraceError if it does not exist or does not fit."""
    texture = _require(recording, texture, Texture, "texture")
    handles = {each.name: each for each in compiled.textures}
    old = {plain_name(v.name): v for v in loaded.module.variables.values() if is_reference(v)}
    if name in handles:
        if problem := _misfit(handles[name], texture.description):
            raise CutraceError(f"bind_texture: reference `{name}` {problem}")
        _write_handle(recording, loaded, handles[name].symbol, texture.handle)
    elif name in old:
        loaded.handles[old[name].name] = texture.handle
    else:
        raise _missing(name, {**handles, **old})


def bind_surface(recording: Recording, loaded: LoadedModule, name: str, surface: object) -> None:
    """Bind a surface to the reference `name`; CutraceError if there is none."""
    surface = _require(recording, surface, Surface, "surface")
    variables = loaded.module.variables.values()
    handles = {surface_name(symbol): symbol for symbol in loaded.symbols if surface_name(symbol)}
    old = {plain_name(v.name): v.name for v in variables if v.element == "surfref"}
    if name in handles:
        _write_handle(recording, loaded, handles[name], surface.handle)
    elif name in old:
        loaded.handles[old[name]] = surface.handle
    else:
        raise _missing(name, {**handles, **old}, "surface")


def _write_handle(recording: Recording, loaded: LoadedModule, symbol: str, handle: int) -> None:
    """Write a handle into the variable that represents a reference."""
    value = np.array([handle], dtype="<u8")
    recording.memory.view(loaded.symbols[symbol])[:] = value.view(np.uint8)


def is_reference(variable: Variable) -> bool:
    """Return True if a PTX variable is a texture reference."""
    return variable.element == "texref" or variable.space == "tex"


def _missing(name: str, references: Mapping[str, object], kind: str = "texture") -> CutraceError:
    listed = ", ".join(references) or "none"
    return CutraceError(
        f"bind_{kind}: no {kind} reference `{name}`{nearest(name, references)}; the module"
        f" has {listed}"
    )


def _misfit(reference: TextureReference, texture: schema.Texture) -> str:
    """Return why a texture does not fit a reference, or `""`; PTX references check less."""
    if not reference.texel:
        return ""
    is_said = f"is texture<{reference.texel}, {reference.kind}>"
    if reference.kind not in _SHAPES:
        return f"{is_said}, a cubemap: cutrace does not sample those"
    count, layered = _SHAPES[reference.kind]
    if (count, layered) != (len(texture.extent), texture.layers > 0):
        return (
            f"is of {shape_words(count, layered)}, `{texture.name}` of "
            f"{shape_words(len(texture.extent), texture.layers > 0)}"
        )
    expected = _format(reference.texel)
    if expected and texture.format not in (expected, expected.replace("f32", "f16")):
        return f"{is_said}: expected texels {expected}, `{texture.name}` has {texture.format}"
    if reference.read_mode != texture.read_mode:
        return (
            f'is declared for read_mode="{reference.read_mode}", `{texture.name}` has '
            f'read_mode="{texture.read_mode}"'
        )
    return ""


def _format(texel: str) -> str:
    """Return the trace's format of a C type, `u8x4` for uchar4; `""` for non-CUDA types."""
    words = re.sub(r"\b(const|signed)\b", "", texel).split()
    word = "".join(words).replace("unsigned", "u")
    match = _TEXEL.fullmatch("uint" if word == "u" else word)
    if not match:
        return ""
    kind = "f" if match["word"] == "float" else "u" if match["kind"] else "i"
    count = match["channels"] or "1"
    return f"{kind}{_BITS[match['word']]}" + (f"x{count}" if count != "1" else "")
