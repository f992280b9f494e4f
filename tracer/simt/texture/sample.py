"""Texture instructions: `tex` and `tld4` for every geometry of CUDA's textures (PTX ISA 9.7.10).

For a texture of one level, a level of detail or a gradient has no effect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....traces.unique import sorted_unique
from ...ptx.kernel import (
    Bucket,
    Immediate,
    Instruction,
    Operand,
    Pair,
    Register,
    TextureAddress,
    Vector,
)
from ..decode.decoder import Decoder, Fetch, StepTable
from ..memory.texture import (
    FACES,
    Places,
    Sample,
    Texture,
    detail_of,
    gather,
    project,
    sample,
    settled,
    shape_words,
    split_levels,
)
from ..ops.lanes import DTYPES, LANES, Array, Mask, pack, scalar
from ..warp.program import Group, Step
from .query import decode_handle, find_texture

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
_OF_LEVELS = {"level": 1, "grad": 2}
"""Number of operands that select a level, by modifier."""

_PRESENT = scalar(True, DTYPES["pred"])


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers of an instruction; `channel` is that of a gather, -1 for a sample.

    A fetch addresses texels by integers. One with a level is a sample at the centre of the texel,
    with the address mode (as measured on an NVIDIA H200).
    """

    geometry: str
    result: str
    coordinate: str
    has_level: bool
    has_gradient: bool
    channel: int

    @property
    def is_fetch(self) -> bool:
        return self.coordinate == "s32" and not self.has_level

    @property
    def middle(self) -> float:
        return 0.5 if self.coordinate == "s32" and self.has_level else 0.0

    @property
    def is_layered(self) -> bool:
        return self.geometry[0] == "a"

    @property
    def is_cubemap(self) -> bool:
        return self.geometry.endswith("cube")

    @property
    def coordinates(self) -> int:
        return _DIMENSIONS[self.geometry]

    @property
    def shape(self) -> tuple[int, bool, bool]:
        """The number of dimensions, whether there are layers, and whether these are a cube's
        faces."""
        if self.is_cubemap:
            return 2, True, True
        return self.coordinates, self.is_layered, False


def _decode_fetch(decoder: Decoder, instruction: Instruction) -> Step:
    form = _form(decoder, instruction)
    to, source, *more = instruction.operands
    to, resident = (to.first, to.second) if isinstance(to, Pair) else (to, Bucket())
    if not isinstance(source, TextureAddress) or not isinstance(to, Vector):
        raise decoder.refuse("cutrace does not know this kind of texture fetch")
    if source.sampler is not None:
        raise decoder.refuse("cutrace leaves out samplers apart from their textures")
    operands = source.coordinates
    first = int(form.is_layered)
    if len(operands) < first + form.coordinates:
        raise decoder.refuse(f"expected {first + form.coordinates} coordinates")
    layer = decoder.fetch(operands[0], "u32") if first else None
    axes = [decoder.fetch(o, form.coordinate) for o in operands[first : first + form.coordinates]]
    levels = _levels(decoder, form, more[: _level_operands(instruction)])
    offsets = _offsets(decoder, form, more[len(levels) :])
    handle = decode_handle(decoder, source.texture)
    guard = decoder.guard()
    stores = [decoder.store(e, form.result) for e in to.elements]
    store_resident = decoder.store(resident, "pred")
    pc, position = decoder.pc, decoder.position

    def fetch_texels(group: Group) -> None:
        frame = group.frame
        shape = group.shape
        mask = group.guarded_lanes(guard)
        handles = np.broadcast_to(handle(frame), shape)
        outputs: list[Array] = [np.zeros(shape, dtype=DTYPES[form.result]) for _ in stores]

        def fetch_active(fetch: Fetch) -> Array:
            values: Array = np.broadcast_to(fetch(frame), shape).reshape(-1)
            return values if every else values[taking]

        for number, here in _by_handle(handles, mask):
            taking = np.flatnonzero(here)
            count = taking.size
            every = count == here.size
            index, texture = find_texture(group, pc, number, "samples")
            own = _form_of(form, texture)
            _check(group, pc, texture, own)
            layers = (
                np.zeros(count, np.int64) if layer is None else fetch_active(layer).astype(np.int64)
            )
            places = [
                fetch_active(axis) + form.middle if form.middle else fetch_active(axis)
                for axis in axes[: own.coordinates]
            ]
            steps = [*map(fetch_active, offsets)]
            at = Places(places, layers, own.is_fetch, steps)
            if form.is_cubemap:
                at = _on_faces(at, texture.description.layers // FACES)
            level_values = [[*map(fetch_active, each)] for each in levels] if texture.mipmap else []
            texel_sample = _take(group, index, at, _detail(texture, level_values), form.channel)
            for output, values in zip(outputs, _written(own, texel_sample.values), strict=False):
                bits = values.view(output.dtype) if own is not form else values
                output.reshape(-1)[slice(None) if every else taking] = bits
            for part in texel_sample.parts:
                whole = every and part.lanes is None
                reading = taking if part.lanes is None else taking[part.lanes]
                corners = part.corner if whole else _spread(here.size, reading, part.corner)
                among = here if part.lanes is None else _only(here.shape, reading)
                _record(group, position, pc, part.texture, among, corners)
        for store, output in zip(stores, outputs, strict=True):
            store(frame, output)
        store_resident(frame, _PRESENT)

    return fetch_texels


STEPS: StepTable = {"tex": _decode_fetch, "tld4": _decode_fetch}


def _by_handle(handles: Array, mask: Mask) -> Iterator[tuple[int, Mask]]:
    """Yield each handle of the lanes of `mask`, ascending, and its lanes; mostly there is one
    handle."""
    active_handles = handles[mask]
    if active_handles.size and bool((active_handles == active_handles[0]).all()):
        yield int(active_handles[0]), mask
        return
    for number in sorted_unique(active_handles):
        yield int(number), mask & (handles == number)


def _form(decoder: Decoder, instruction: Instruction) -> _Form:
    modifiers = instruction.modifiers
    geometry = next((m for m in modifiers if m in _DIMENSIONS), None)
    if geometry is None or len(instruction.types) != 2:
        raise decoder.refuse("cutrace does not know this kind of texture fetch")
    result, coordinate = instruction.types
    channel = "rgba".index(modifiers[0]) if instruction.opcode == "tld4" else -1
    return _Form(geometry, result, coordinate, "level" in modifiers, "grad" in modifiers, channel)


def _level_operands(instruction: Instruction) -> int:
    return next((n for word, n in _OF_LEVELS.items() if word in instruction.modifiers), 0)


def _levels(decoder: Decoder, form: _Form, operands: Sequence[Operand]) -> list[list[Fetch]]:
    """Decode the operands that select a level: a level of detail, or two gradients with a component
    per axis."""
    each = [o.elements if isinstance(o, Vector) else (o,) for o in operands]
    kind = form.coordinate if form.has_level else "f32"
    return [[decoder.fetch(o, kind) for o in one[: form.coordinates]] for one in each]


def _offsets(decoder: Decoder, form: _Form, operands: list[Operand]) -> list[Fetch]:
    """Decode the operands after the address: offsets in texels, and a depth to compare with."""
    steps: tuple[Operand, ...] = ()
    for operand in operands:
        if isinstance(operand, Vector):
            steps = operand.elements
        elif form.coordinates == 1 and not _is_float(operand):
            steps = (operand,)
        else:
            raise decoder.refuse("cutrace leaves out comparisons with depths")
    if steps and (form.is_cubemap or len(steps) < form.coordinates):
        raise decoder.refuse(f"expected {form.coordinates} offsets, and none on a cube")
    return [decoder.fetch(each, "s32") for each in steps[: form.coordinates]]


def _is_float(operand: Operand) -> bool:
    if isinstance(operand, Register):
        return operand.type == "f32"
    return isinstance(operand, Immediate) and operand.kind != "int"


def _on_faces(at: Places, cubes: int) -> Places:
    """Convert directions in cubes to places on the cubes' faces."""
    face, s, t = project(*(axis.astype(np.float64) for axis in at.coordinates))
    return Places([s, t], FACES * np.clip(at.layer, 0, cubes - 1) + face)


@dataclass(frozen=True, slots=True)
class _Part:
    """Samples of one texture, or of one level: those of `lanes` (n,), or all; corners (n, 4)."""

    texture: int
    lanes: NDArray[np.intp] | None
    corner: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples (n, channels), and the parts of textures that they read."""

    values: Array
    parts: list[_Part]


def _take(group: Group, index: int, at: Places, detail: Array | None, channel: int) -> _Samples:
    """Sample or gather at places; of a mipmapped texture, at the levels of `detail` (n,)."""
    textures = group.wave.program.memory.textures
    mipmap = textures[index].mipmap
    if mipmap is None:
        texel_sample = _look(textures[index], at, channel)
        return _Samples(texel_sample.values, [_Part(index, None, texel_sample.corner)])
    count = len(at.layer)
    level_of_detail = np.zeros(count) if detail is None else detail
    values, parts = np.zeros((count, 0)), []
    is_mixed = mipmap.filter_mode == "linear" and channel < 0
    for level, lanes, weights in split_levels(mipmap, level_of_detail, detail is not None):
        share = weights if is_mixed else None
        texel_sample = _look(textures[index + level], at.some(lanes, share), channel)
        if not values.shape[1]:
            values = np.zeros((count, texel_sample.values.shape[1]), texel_sample.values.dtype)
        values[lanes] += texel_sample.values
        parts.append(_Part(index + level, lanes, texel_sample.corner))
    return _Samples(settled(textures[index], values) if is_mixed else values, parts)


def _look(texture: Texture, at: Places, channel: int) -> Sample:
    return sample(texture, at) if channel < 0 else gather(texture, at, channel)


def _detail(texture: Texture, level_values: Sequence[Sequence[Array]]) -> Array | None:
    """Return the levels of detail (n,) of samples; None without any."""
    if len(level_values) == 2:
        return detail_of(texture.description.extent, level_values)
    return level_values[0][0] if level_values else None


def _only(shape: tuple[int, ...], lanes: NDArray[np.intp]) -> Mask:
    only = np.zeros(shape, np.bool_)
    only.reshape(-1)[lanes] = True
    return only


def _written(form: _Form, values: Array) -> list[Array]:
    """Return the value of each destination: a channel, or two halves."""
    if form.result != "f16x2":
        return list(values.astype(DTYPES[form.result]).T)
    channels = np.zeros((len(values), 4), np.float16)
    channels[:, : values.shape[1]] = values
    return list(channels.view(np.uint32).T)


_BITS = "b32"


def _form_of(form: _Form, texture: Texture) -> _Form:
    """Return the form for a texture: machine code has no type of results (`.b32` here), and samples
    one dimension as the first of two."""
    if form.result != _BITS:
        return form
    result = "f32" if texture.gives_floats else "u32"
    is_flat = form.geometry == "2d" and texture.shape[0] == 1
    return replace(form, result=result, geometry="1d" if is_flat else form.geometry)


def _check(group: Group, pc: int, texture: Texture, form: _Form) -> None:
    """Refuse forms for which the hardware silently returns zeros, or bits of another type."""
    described = texture.description
    problem = ""
    shape = (*texture.shape, texture.is_cubemap)
    if form.shape != shape:
        problem = f"in {shape_words(*form.shape)}; it has {shape_words(*shape)}"
    elif (form.result[0] == "f") != texture.gives_floats:
        texel_format = f'{described.format}, read with read_mode="{described.read_mode}"'
        problem = f"as {form.result}; its texels are {texel_format}"
    elif texture.is_linear_memory and len(described.extent) == 1 and not form.is_fetch:
        problem = "by a coordinate; over linear memory only tex1Dfetch reads it"
    elif texture.mipmap and form.is_cubemap and form.has_gradient:
        problem = "by gradients: cutrace leaves these out for cubes of several levels"
    if problem:
        raise group.wave.program.fault(pc, f"samples texture `{described.name}` {problem}")


def _spread(lanes: int, taking: NDArray[np.intp], corner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the corners (lanes, 4) of all lanes: 0 for those that do not sample."""
    corners = np.zeros((lanes, 4), dtype=np.int32)
    whole = np.dtype("V16")  # four at once: NumPy scatters them 30 times faster
    corners.view(whole)[taking] = np.ascontiguousarray(corner).view(whole)
    return corners


def _record(
    group: Group, position: int, pc: int, number: int, here: Mask, corners: NDArray[np.int32]
) -> None:
    """Add a row for each warp with a lane that samples."""
    active = pack(here.reshape(-1, LANES))
    warps = np.flatnonzero(active)
    group.wave.rows.add_texels(
        group.place[warps],
        group.step[warps] + np.uint32(position),
        pc,
        number,
        active[warps],
        corners.reshape(-1, LANES, 4)[warps],
    )
