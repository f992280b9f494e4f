"""Surface instructions: `suld`, `sust`, `sured` (PTX ISA 9.7.11).

A place is a byte of a row (`.b`) or a texel (`.p`), a row, and a slice or layer. Outside of the
surface `.zero` loads zeros and drops stores, `.clamp` uses the nearest place, and `.trap` stops the
kernel.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ....traces.schema import Space
from ....traces.unique import sorted_unique
from ...ptx.kernel import Instruction, Operand, TextureAddress
from ..access.access import Access, read, write
from ..access.bounds import name_lane
from ..decode.address import elements
from ..decode.atomic import update_lanes
from ..decode.decoder import Decoder, Fetch, StepTable
from ..memory.surface import Surface, Texel, texel_of
from ..memory.texture import shape_words
from ..ops.lanes import DTYPES, Array, Mask, scalar
from ..ops.update import update
from ..warp.program import Group, Step
from .query import decode_handle, find_surface

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_MODES = ("trap", "clamp", "zero")
_VERBS = {"suld": "loads from", "sust": "stores to", "sured": "updates"}
_REDUCTIONS = ("add", "min", "max", "and", "or")


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers of an instruction, and the operands that address the surface."""

    pc: int
    position: int
    opcode: str
    geometry: str
    mode: str
    is_formatted: bool
    handle: Fetch
    layer: Fetch | None
    axes: tuple[Fetch, ...]
    guard: Fetch | None

    @property
    def shape(self) -> tuple[int, bool]:
        return _DIMENSIONS[self.geometry], self.geometry[0] == "a"


@dataclass(frozen=True, slots=True)
class _Part:
    """The lanes at one surface: `lanes` is the mask of those that reach it, `addresses` are of all
    lanes."""

    surface: Surface
    lanes: Mask
    addresses: Array


def _form(decoder: Decoder, instruction: Instruction, place: Operand) -> _Form:
    modifiers = instruction.modifiers
    geometry = next((m for m in modifiers if m in _DIMENSIONS), None)
    mode = next((m for m in modifiers if m in _MODES), None)
    is_known = modifiers[:1] == ("b",) or (modifiers[:1] == ("p",) and instruction.opcode != "suld")
    if geometry is None or mode is None or not is_known or not isinstance(place, TextureAddress):
        raise decoder.refuse("cutrace does not know this kind of surface access")
    layered = geometry[0] == "a"
    operands = place.coordinates
    count = _DIMENSIONS[geometry]
    if len(operands) < count + layered:
        raise decoder.refuse(f"expected {count + layered} coordinates")
    return _Form(
        decoder.pc,
        decoder.position,
        instruction.opcode,
        geometry,
        mode,
        modifiers[0] == "p",
        decode_handle(decoder, place.texture),
        decoder.fetch(operands[0], "u32") if layered else None,
        tuple(decoder.fetch(o, "s32") for o in operands[layered : count + layered]),
        decoder.guard(),
    )


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    to, place = instruction.operands
    form, kind = _form(decoder, instruction, place), instruction.type
    stores = [decoder.store(e, kind) for e in elements(to)]
    dtype, count = DTYPES[kind], instruction.vector
    if len(stores) != count:
        raise decoder.refuse(f"expected {count} registers")

    def load(group: Group) -> None:
        shape = group.shape
        outputs: list[Array] = [np.zeros(shape, dtype) for _ in stores]
        for part in _parts(group, form, dtype.itemsize * count):
            access = _access(form, dtype, count, part.addresses)
            texels = read(group, part.lanes, access, part.addresses)
            for output, values in zip(outputs, texels, strict=True):
                np.copyto(output, values, where=part.lanes)
        for store, output in zip(stores, outputs, strict=True):
            store(group.frame, output)

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    place, source = instruction.operands
    form, kind = _form(decoder, instruction, place), instruction.type
    fetches = [decoder.fetch(e, kind) for e in elements(source)]
    dtype, count = DTYPES[kind], instruction.vector
    if len(fetches) != count or (form.is_formatted and kind != "b32"):
        raise decoder.refuse(f"expected {count} registers of a type that surfaces take")

    def store(group: Group) -> None:
        values = [fetch(group.frame) for fetch in fetches]
        for part in _parts(group, form, dtype.itemsize * count):
            written, element_type = values, dtype
            if form.is_formatted:
                texel = texel_of(part.surface.format)
                written, element_type = _formatted(texel, values), texel.dtype
            access = _access(form, element_type, len(written), part.addresses)
            write(group, part.lanes, access, part.addresses, written)

    return store


def _formatted(texel: Texel, values: list[Array]) -> list[Array]:
    """Return a texel's channels from 32-bit values; missing channels are 0."""
    missing = [scalar(0, DTYPES["b32"])] * (texel.channels - len(values))
    return [texel.convert(value) for value in (*values, *missing)[: texel.channels]]


def _reduce(decoder: Decoder, instruction: Instruction) -> Step:
    place, source = instruction.operands
    form, kind = _form(decoder, instruction, place), instruction.type
    operation = next((m for m in instruction.modifiers if m in _REDUCTIONS), "")
    if update(operation, kind, True) is None:
        raise decoder.refuse("cutrace does not know this instruction")
    value, dtype = decoder.fetch(source, kind), DTYPES[kind]

    def reduce(group: Group) -> None:
        operand = value(group.frame)
        for part in _parts(group, form, dtype.itemsize):
            sign = part.surface.format[0].replace("i", "s") if form.is_formatted else kind[0]
            run = _reduction(operation, sign + kind[1:])
            run(group, part.lanes, _access(form, dtype, 1, part.addresses), [operand])

    return reduce


def _reduction(operation: str, kind: str) -> Callable[..., Array]:
    update_code = update(operation, kind, True)
    assert update_code is not None
    return update_lanes(f"surface_{operation}_{kind}", update_code)


def _access(form: _Form, dtype: np.dtype[Any], count: int, addresses: Array) -> Access:
    """Return the access of `count` channels or elements at known addresses."""
    at, position = form.pc, form.position
    return Access(at, position, Space.SURFACE, dtype, count, lambda frame: addresses, 0, None)


def _parts(group: Group, form: _Form, width: int) -> list[_Part]:
    """Return a part per surface of the group's lanes, with their places in it."""
    frame, shape = group.frame, group.shape
    mask = group.guarded_lanes(form.guard)
    handles = np.broadcast_to(form.handle(frame), shape)
    axes = [np.broadcast_to(axis(frame), shape).astype(np.int64) for axis in form.axes]
    layer = None if form.layer is None else np.broadcast_to(form.layer(frame), shape)
    parts = []
    for number in sorted_unique(handles[mask]):
        here = mask & (handles == number)
        surface = find_surface(group, form.pc, int(number), _VERBS[form.opcode])
        if form.shape != surface.shape:
            raise _misshapen(group, form, surface)
        spans = _spans(form, surface, width)
        places = [*axes, *([layer.astype(np.int64)] if layer is not None else [])]
        lanes, places = _bounded(group, form, surface, here, places, spans)
        parts.append(_Part(surface, lanes, _addresses(form, surface, places)))
    return parts


def _spans(form: _Form, surface: Surface, width: int) -> list[int]:
    """Return the last place along each axis, layers at the end."""
    first = surface.extent[0] - 1 if form.is_formatted else surface.row_bytes - width
    layers = [surface.layers - 1] if surface.layers else []
    return [first, *(size - 1 for size in surface.extent[1:]), *layers]


def _bounded(
    group: Group, form: _Form, surface: Surface, here: Mask, places: list[Array],
    spans: list[int],
) -> tuple[Mask, list[Array]]:  # fmt: skip
    """Return the mask of the lanes inside the surface, and their places in it."""
    inside = here.copy()
    for place, last in zip(places, spans, strict=True):
        inside &= (place >= 0) & (place <= last)
    if form.mode == "trap" and (here & ~inside).any():
        lane = int(np.flatnonzero(here & ~inside)[0])
        where = tuple(int(place.reshape(-1)[lane]) for place in places)
        raise group.wave.program.fault(
            form.pc,
            f"{_VERBS[form.opcode]} surface `{surface.name}` outside at {where} "
            f"in {name_lane(group, lane)}: places are (0, ...) to {tuple(spans)}",
        )
    if form.mode == "clamp":
        clamped = [np.clip(p, 0, last) for p, last in zip(places, spans, strict=True)]
        return (here if min(spans) >= 0 else np.zeros_like(here)), clamped
    return inside, places


def _addresses(form: _Form, surface: Surface, places: list[Array]) -> Array:
    column, *other_axes = places
    row: Array = np.zeros_like(column)
    for place, rows in zip(other_axes, (1, surface.rows), strict=False):
        row = row + place * rows
    unit = surface.texel_bytes if form.is_formatted else 1
    addresses: Array = surface.address + column * unit + row * surface.pitch
    return addresses


def _misshapen(group: Group, form: _Form, surface: Surface) -> KernelFault:
    return group.wave.program.fault(
        form.pc,
        f"{_VERBS[form.opcode]} surface `{surface.name}` in {shape_words(*form.shape)}; "
        f"it has {shape_words(*surface.shape)}",
    )


STEPS: StepTable = {"suld": _load, "sust": _store, "sured": _reduce}
