"""Handles of textures and surfaces: the numbers that kernels hold, look-up, and query
instructions."""

import numpy as np

from ....base.errors import KernelFault
from ....traces.unique import sorted_unique
from ...ptx.kernel import Address, Instruction, Register, Symbol
from ..decode.decoder import Decoder, Fetch, StepTable
from ..memory.surface import Surface, texel_of
from ..memory.texture import FACES, Texture
from ..ops.lanes import DTYPES, Array, scalar
from ..warp.program import Group, Step

_HANDLE = np.dtype(np.uint64)
SURFACES = 1 << 32
"""The first number of surfaces; textures are numbered from 1."""


def decode_handle(decoder: Decoder, source: Register | Symbol) -> Fetch:
    """Return a fetch of a handle: one in a register, or that of a named reference.

    A register may also hold the address of a reference.
    """
    bound, symbols = decoder.loaded.handles, decoder.loaded.symbols
    if isinstance(source, Symbol):
        name = source.name
        return lambda frame: scalar(bound.get(name, 0), _HANDLE)
    fetch = decoder.fetch(source, "u64")
    addresses = {name: symbols[name].address for name in bound if name in symbols}

    def handle(frame: list[Array]) -> Array:
        value = fetch(frame)
        for name, address in addresses.items():
            value = np.where(value == np.uint64(address), np.uint64(bound[name]), value)
        return value

    return handle if addresses else fetch


def find_texture(group: Group, pc: int, handle: int, verb: str) -> tuple[int, Texture]:
    """Return a texture and its index; KernelFault for an invalid handle."""
    textures = group.wave.program.memory.textures
    if 1 <= handle <= len(textures):
        return handle - 1, textures[handle - 1]
    raise _nothing(group, pc, verb, "texture")


def find_surface(group: Group, pc: int, handle: int, verb: str) -> Surface:
    """Return a surface; KernelFault for an invalid handle."""
    surfaces = group.wave.program.memory.surfaces
    if 1 <= handle - SURFACES <= len(surfaces):
        return surfaces[handle - SURFACES - 1]
    raise _nothing(group, pc, verb, "surface")


def _nothing(group: Group, pc: int, verb: str, kind: str) -> KernelFault:
    return group.wave.program.fault(
        pc,
        f"{verb} a {kind} that is bound to nothing; make one with `{kind}(...)` and pass it, or "
        f"bind it with `bind_{kind}`",
    )


_DATA_TYPES = {
    **{"i8": 0x10D7, "i16": 0x10D8, "i32": 0x10D9, "u8": 0x10DA, "u16": 0x10DB, "u32": 0x10DC},
    **{"f16": 0x10DD, "f32": 0x10DE},
}
_NORMALIZED_TYPES = {"i8": 0x10D0, "i16": 0x10D1, "u8": 0x10D2, "u16": 0x10D3}
_ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
_ADDRESS_MODES = {"wrap": 0, "mirror": 1, "clamp": 2, "border": 3}


def _sizes(extent: tuple[int, ...], layers: int, count: int) -> dict[str, int]:
    """Return sizes by name; `count` is the size after the extent."""
    width, height, depth = (*extent, *([count] if count else []), 0, 0)[:3]
    return {"width": width, "height": height, "depth": depth, "array_size": layers}


def _of_texture(texture: Texture) -> dict[str, int]:
    described = texture.description
    name = described.format.partition("x")[0]
    types = _NORMALIZED_TYPES if texture.is_normalized_read else _DATA_TYPES
    modes = (*described.address_mode, *described.address_mode[-1:] * 2)[:3]
    cubes = described.layers // FACES
    count = described.layers if not texture.is_cubemap else cubes if cubes > 1 else 0
    if len(described.extent) == 1 and not count:
        count = 1
    return {
        **_sizes(described.extent, described.layers, count),
        "channel_data_type": types[name],
        "channel_order": _ORDERS[texel_of(described.format).channels],
        "normalized_coords": int(described.normalized_coords),
        "force_unnormalized_coords": int(not described.normalized_coords),
        "filter_mode": int(texture.is_filtered),
        "num_mipmap_levels": texture.mipmap.count if texture.mipmap else 1,
        "num_samples": 1,
        **{f"addr_mode_{axis}": _ADDRESS_MODES[mode] for axis, mode in enumerate(modes)},
    }


def _of_surface(surface: Surface) -> dict[str, int]:
    return {
        **_sizes(surface.extent, surface.layers, surface.layers),
        "channel_data_type": _DATA_TYPES[surface.format.partition("x")[0]],
        "channel_order": _ORDERS[texel_of(surface.format).channels],
        "memory_layout": 1,
    }


def _decode_query(decoder: Decoder, instruction: Instruction) -> Step:
    query = next(m for m in instruction.modifiers if m != "level" and m not in DTYPES)
    to, source = instruction.operands[:2]
    if not isinstance(source, Address) or source.base is None:
        raise decoder.refuse("expected a texture or surface in brackets")
    level = None
    if "level" in instruction.modifiers:
        level = decoder.fetch(instruction.operands[2], "u32")
    handle = decode_handle(decoder, source.base)
    store, guard, pc = decoder.store(to, "b32"), decoder.guard(), decoder.pc
    find = _find_texture if instruction.opcode == "txq" else _find_surface

    def answer_query(group: Group) -> None:
        frame, shape = group.frame, group.shape
        mask = group.guarded_lanes(guard)
        handles = np.broadcast_to(handle(frame), shape)
        answers: Array = np.zeros(shape, np.uint32)
        levels = np.broadcast_to(0 if level is None else level(frame), shape)
        for number in sorted_unique(handles[mask]):
            for which in sorted_unique(levels[mask & (handles == number)]):
                answer = find(group, pc, int(number), int(which)).get(query, 0)
                answers[(handles == number) & (levels == which)] = answer
        store(frame, answers)

    return answer_query


def _find_texture(group: Group, pc: int, handle: int, level: int) -> dict[str, int]:
    index, texture = find_texture(group, pc, handle, "queries")
    if level >= (texture.mipmap.count if texture.mipmap else 1):
        return {}
    return _of_texture(group.wave.program.memory.textures[index + level])


def _find_surface(group: Group, pc: int, handle: int, level: int) -> dict[str, int]:
    return _of_surface(find_surface(group, pc, handle, "queries")) if level == 0 else {}


def _is_type(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    value, store = decoder.fetch(source, "u64"), decoder.store(to, "pred")
    variables, symbols = decoder.loaded.module.variables.values(), decoder.loaded.symbols
    named = [v.name for v in variables if v.element == instruction.modifiers[0]]
    addresses = np.array([symbols[n].address for n in named if n in symbols], np.uint64)

    def is_type(group: Group) -> None:
        store(group.frame, np.isin(value(group.frame), addresses))

    return is_type


STEPS: StepTable = {"txq": _decode_query, "suq": _decode_query, "istypep": _is_type}
