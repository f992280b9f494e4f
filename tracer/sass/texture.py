"""Textures and surfaces in machine code."""

import re
from collections.abc import Mapping

from ...base.dataclass import dataclass
from ..simt.texture.query import SURFACES
from .access import KINDS, SCOPES, vector_of
from .lift import Handler, Lifter
from .operand import Operand, registers

_GEOMETRIES = {
    **{f"{n}D": f"{n}d" for n in (1, 2, 3)}, **{f"ARRAY_{n}D": f"a{n}d" for n in (1, 2)},
    "CUBE": "cube", "ARRAY_CUBE": "acube",
}  # fmt: skip
_OFFSET_BITS = {"TEX": 4, "TLD": 4, "TLD4": 6}
"""Bits of an offset in texels: those of the next axis are behind, in a gather from 8 on."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The source operands of a texture read: its handle, and registers with the layer, the
    coordinates, the level and the offsets, in this order."""

    geometry: str
    handle: str
    layer: list[str]
    axes: list[str]
    level: list[str]
    offset: list[str]


def texture(lifter: Lifter) -> None:
    """TEX, TLD and TLD4: the four channels of a texel, or one channel of four texels; a mask says
    which are written."""
    texts = list(lifter.now.operands)
    at = next((n for n, text in enumerate(texts) if text in _GEOMETRIES), None)
    if at is None:
        raise lifter.refuse("cutrace does not know this kind of texture")
    mask = int(texts[at + 1], 16) if texts[at + 1 :] else 0xF
    gathers = lifter.opcode == "TLD4"
    channel = lifter.one({name: name.lower() for name in "RGBA"}) if gathers else ""
    splits, has_level = lifter.has("SCR"), lifter.has("LL")
    has_offset = lifter.has("AOFFI")
    lifter.take("LZ", "NODEP", "CL", *("B" * (not gathers)))
    lifter.refuse_if(lifter.modifiers or len(texts) > at + 2)
    operands = lifter.operands[:at]
    missing = operands.pop(0) if operands[0].kind == "P" else None
    second, first, *sources = operands
    handle, sources = _handle(lifter, sources)
    place = _place(lifter, texts[at], handle, sources, splits, (has_level, has_offset))
    verb = f"tld4.{channel}" if gathers else "tex.level" if has_level else "tex"
    _fetch(lifter, verb, place, mask, (first, second))
    if missing is not None:  # no texel is
        lifter.emit("setp.ne.u32", lifter.to(missing), "0", "0", guarded=True)


def _handle(lifter: Lifter, operands: list[Operand]) -> tuple[str, list[Operand]]:
    """Return the handle of a texture, and the operands before it; behind it are zeros."""
    number = next((n for n, o in enumerate(operands) if o.text.startswith("UR")), None)
    if number is not None:
        handle, operands, extras = (
            lifter.wide(operands[number]), operands[:number], operands[number + 1 :]
        )  # fmt: skip
    else:
        *operands, extra, index = operands
        extras, handle = [extra], lifter.constant(f"c[0x0][{4 * index.number:#x}]", 8)
    if any(o.kind != "#" or o.number for o in extras):
        raise lifter.refuse("cutrace does not know this kind of texture")
    return handle, operands


def _place(
    lifter: Lifter, name: str, handle: str, sources: list[Operand], splits: bool,
    more: tuple[bool, bool],
) -> _Place:  # fmt: skip
    """Read the registers of coordinates. The second operand has the values after them, or with
    `splits` the second half of all values."""
    geometry = _GEOMETRIES[name]
    layers = int(geometry[0] == "a")
    axes = 3 if "cube" in geometry else int(geometry.strip("ad"))
    total = layers + axes + sum(more)
    first = -(-total // 2) if splits else layers + axes
    counts = [first, total - first] if total > first else [first]
    lifter.refuse_if(
        len(sources) != len(counts) or any(o.kind != "R" or o.negative for o in sources)
    )
    words = [
        word
        for operand, count in zip(sources, counts, strict=True)
        for word in (["0"] * count if operand.is_zero else registers(operand, count))
    ]
    level = words[layers + axes :][: more[0]]
    offset = words[total - more[1] :]
    return _Place(geometry, handle, words[:layers], words[layers:][:axes], level, offset)


def _fetch(
    lifter: Lifter, verb: str, place: _Place, mask: int, results: tuple[Operand, Operand]
) -> None:
    by_element = lifter.opcode == "TLD"
    kind = "s32" if by_element else "f32"
    words = place.layer + [_coordinate(word, by_element) for word in place.axes]
    words += words[-1:] * (len(words) == 3)  # a vector has 1, 2 or 4
    texels = [lifter.new() for _ in range(4)]
    operands = [
        vector_of(texels, always=True),
        f"[{place.handle}, {vector_of(words, always=True)}]",
    ]
    operands += [_coordinate(word, by_element) for word in place.level]
    if place.offset:
        bits = _OFFSET_BITS[lifter.opcode]
        apart = 8 if lifter.opcode == "TLD4" else bits
        steps = [
            lifter.compute("bfe.s32", place.offset[0], str(number * apart), str(bits))
            for number in range(len(place.axes))
        ]
        operands.append(vector_of(steps + steps[-1:] * (len(steps) == 3), always=True))
    lifter.emit(f"{verb}.{place.geometry}.v4.b32.{kind}", *operands, guarded=True)
    written_texels = [texel for number, texel in enumerate(texels) if mask >> number & 1]
    places: list[str] = []
    for each in results:
        if each.number >= 0:
            places += registers(each, 2)
    for to, texel in zip(places, written_texels, strict=False):
        lifter.emit("mov.b32", to, texel)


def _coordinate(word: str, by_element: bool) -> str:
    return "0f00000000" if word == "0" and not by_element else word


_ELEMENTS = {
    **{name: (f"b{name[1:]}", 1) for name in ("U8", "S8", "U16", "S16")},
    **{"64": ("b32", 2), "128": ("b32", 4)},
}
_SURFACES = {
    **{f"{n}D": f"{n}d" for n in (1, 2, 3)}, **{f"{n}D_ARRAY": f"a{n}d" for n in (1, 2)}
}  # fmt: skip
_OUTSIDE = {"TRAP": "trap", "IGN": "zero"}
_CHANNELS = {"R": "1", "RG": "2", "RGBA": "4"}


def _surface(lifter: Lifter) -> tuple[str, str, list[Operand]]:
    """Return the geometry, the place, and the operands besides of an access of a surface."""
    geometry = lifter.one(_SURFACES)
    lifter.take("STRONG", *SCOPES)
    *operands, place = _surface_operands(lifter)
    inner = re.fullmatch(r"\[R(\d+|Z)\]", place.text)
    if inner is None:
        raise lifter.refuse(f"cutrace does not know the address `{place.text}`")
    axes, layers = int(geometry.strip("ad")), int(geometry[0] == "a")
    words = ["0"] * (axes + layers)
    if inner[1] != "Z":
        words = [f"%R{int(inner[1]) + n}" for n in range(axes + layers)]
    words = words[axes:] + words[:axes]  # the layer is behind the coordinates
    words += words[-1:] * (len(words) == 3)
    return geometry, vector_of(words, always=True), operands


def _surface_operands(lifter: Lifter) -> list[Operand]:
    """Return the operands of an access: its value, its handle, and its place at the end."""
    places = [o for o in lifter.operands if o.kind == "["]
    value, *handle = (o for o in lifter.operands if o.kind != "[")
    lifter.refuse_if(len(places) != 1 or not handle or value.kind != "R" or value.suffix)
    return [value, *handle, *places]


def surface(lifter: Lifter) -> None:
    """SULD, SUST and SURED: a load, a store, an update at a byte of a surface (`.BA`), or at a
    texel of it."""
    mode = lifter.one(_OUTSIDE, "clamp")
    by_texel = lifter.has("P") or not lifter.has("BA")
    lifter.take("D")
    geometry, words, (value, *handles) = _surface(lifter)
    handle = _surface_handle(lifter, handles)
    place = f"[{handle}, {words}]"
    form = f"{'p' if by_texel else 'b'}.{geometry}"
    if lifter.opcode == "SURED":
        _update_surface(lifter, by_texel, geometry, mode, (place, value))
        return
    if by_texel:
        lifter.refuse_if(lifter.opcode == "SULD")
        kind, count = "b32", int(lifter.one(_CHANNELS, "4"))
    else:
        kind, count = _ELEMENTS[forms[0]] if (forms := lifter.take(*_ELEMENTS)) else ("b32", 1)
    if lifter.modifiers:
        raise lifter.refuse(f"cutrace does not know the modifier `.{lifter.modifiers[0]}`")
    vector = f".v{count}" if count > 1 else ""
    names = ["0"] * count if value.is_zero else registers(value, count)
    if kind != "b32":
        half = lifter.new("h")
        if lifter.opcode == "SUST":
            lifter.emit("cvt.u16.u32", half, names[0])
        names, wide = [half], names
    if lifter.opcode == "SUST":
        lifter.emit(f"sust.{form}{vector}.{kind}.{mode}", place, vector_of(names, always=True),
                    guarded=True)  # fmt: skip
        return
    if value.is_zero:
        names = [lifter.new("h" if kind != "b32" else "r") for _ in names]
    lifter.emit(f"suld.{form}{vector}.{kind}.{mode}", vector_of(names, always=True), place,
                guarded=True)  # fmt: skip
    if kind != "b32" and not value.is_zero:
        lifter.emit(f"cvt.u32.u{kind[1:]}", wide[0], half, guarded=True)


def _surface_handle(lifter: Lifter, operands: list[Operand]) -> str:
    """Return the handle of a surface. Code for 8.0 and newer reads only its lower word."""
    if operands[0].text.startswith("UR"):
        if any(o.kind != "#" or o.number for o in operands[1:]):
            raise lifter.refuse("cutrace does not know this kind of surface")
        output = lifter.new("d")
        upper = lifter.compute("mov.b32", str(SURFACES >> 32))
        lifter.emit("mov.b64", output, f"{{%{operands[0].text}, {upper}}}")
        return output
    extra, index = operands
    if extra.kind != "#" or extra.number:
        raise lifter.refuse("cutrace does not know this kind of surface")
    return lifter.constant(f"c[0x0][{4 * index.number:#x}]", 8)


def _update_surface(
    lifter: Lifter, by_texel: bool, geometry: str, mode: str, operands: tuple[str, Operand]
) -> None:
    place, value = operands
    names = ("ADD", "MIN", "MAX", "AND", "OR")
    operation = lifter.one({name: name.lower() for name in names})
    kind = lifter.one(KINDS, "u32")
    if operation in ("and", "or"):
        kind = f"b{kind[1:]}"
    lifter.refuse_if(lifter.modifiers or (by_texel and kind[0] != "b" and operation != "add"))
    kind = f"b{kind[1:]}" if by_texel else kind
    word = lifter.wide(value) if kind.endswith("64") else lifter.word(value)
    form = f"sured.{'p' if by_texel else 'b'}.{operation}.{geometry}.{kind}.{mode}"
    lifter.emit(form, place, word, guarded=True)


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("TEX", "TLD", "TLD4"), texture),
    **dict.fromkeys(("SULD", "SUST", "SURED"), surface),
}
