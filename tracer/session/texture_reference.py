"""File-scope texture and surface references that the host binds.

The front end turns a CUDA C++ reference into a variable that holds a texture's handle. PTX of old
compilers declares `.global .texref name` (or `.tex .u32 name`) and samples by name.
"""

import re
from collections.abc import Mapping

import numpy as np

from ...base.errors import CutraceError, nearest
from ...traces import schema
from ..front.source import Compiled, TextureReference
from ..front.texture_reference import surface_name
from ..ptx.kernel import Variable
from ..simt.memory.memory import LoadedModule
from ..simt.memory.texture import shape_words
from .recording import Recording
from .surface import Surface
from .symbol import plain_name
from .texture import Texture

_SHAPES = {1: (1, False), 2: (2, False), 3: (3, False), 0xF1: (1, True), 0xF2: (2, True)}
"""Dimensions and layering by CUDA's number of a texture type."""

_TEXEL = re.compile(r"(?P<kind>u?)(?P<word>char|short|int|float)(?P<channels>[124]?)")
_BITS = {"char": 8, "short": 16, "int": 32, "float": 32}


def bind(
    recording: Recording, compiled: Compiled, loaded: LoadedModule, name: str, texture: object
) -> None:
    """Bind a texture to the reference `name`; CutraceError if it does not exist or does not fit."""
    recording.check_open()
    if not isinstance(texture, Texture):
        got = type(texture).__name__
        raise CutraceError(
            f"bind_texture: expected a texture, made with gpu.texture(...), got {got}"
        )
    if not texture.belongs_to(recording):
        raise CutraceError(f"bind_texture: `{texture.name}` is a texture of another session")
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
    recording.check_open()
    if not isinstance(surface, Surface):
        got = type(surface).__name__
        raise CutraceError(
            f"bind_surface: expected a surface, made with gpu.surface(...), got {got}"
        )
    if not surface.belongs_to(recording):
        raise CutraceError(f"bind_surface: `{surface.name}` is a surface of another session")
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
