"""Texture instructions: `tex` in one to three dimensions, layered or not (PTX ISA 9.7.10)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import KernelFault
from ..ptx.kernel import Instruction, Register, Symbol, TextureAddress, Vector
from .array import DTYPES, LANES, Array, pack
from .fault import source_line
from .program import Step
from .slot import Fetch
from .texture import Texture, sample, shape_words

if TYPE_CHECKING:
    from .decode import Decoder
    from .group import Group

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}


def decode_sample(decoder: "Decoder", instruction: Instruction) -> Step | None:
    """Return the step of a texture fetch, or None if the instruction is none."""
    if instruction.opcode != "tex":
        return None
    geometry = next((m for m in instruction.modifiers if m in _DIMENSIONS), None)
    to, source = instruction.operands[:2]
    if geometry is None or not isinstance(source, TextureAddress) or not isinstance(to, Vector):
        raise decoder.refuse("cutrace does not know this kind of texture fetch")
    result, kind = instruction.types[0], instruction.types[-1]
    layered = geometry.startswith("a")
    is_fetch = kind[0] == "s"
    first = int(layered)
    count = _DIMENSIONS[geometry]
    operands = source.coordinates
    layer = decoder.fetch(operands[0], "u32") if layered else None
    axes = [decoder.fetch(o, kind) for o in operands[first : first + count]]
    handle = _handle(decoder, source.texture)
    guard = decoder.guard()
    stores = [decoder.store(e, result) for e in to.elements]
    pc, position = decoder.pc, decoder.position

    def fetch_texels(group: "Group") -> None:
        frame = group.frame
        shape = (group.rows, group.columns)
        lanes = group.guarded(None if guard is None else guard(frame))
        mask = np.broadcast_to(True if lanes is None else lanes, shape)
        handles = np.broadcast_to(handle(frame), shape)
        outputs: list[Array] = [np.zeros(shape, dtype=DTYPES[result]) for _ in stores]
        for number in np.unique(handles[mask]):
            here = mask & (handles == number)
            texture = _texture(group, pc, int(number))
            _check(group, pc, texture, (count, layered), result, is_fetch)
            coordinates = [np.broadcast_to(axis(frame), shape)[here] for axis in axes]
            layers = (
                np.zeros(int(here.sum()), dtype=np.int64)
                if layer is None
                else np.broadcast_to(layer(frame), shape)[here].astype(np.int64)
            )
            found = sample(texture, coordinates, layers, is_fetch)
            for channel, output in enumerate(outputs):
                if channel < found.values.shape[1]:
                    output[here] = found.values[:, channel].astype(DTYPES[result])
            _record(group, position, pc, int(number), here, found.corner)
        for store, output in zip(stores, outputs, strict=True):
            if store is not None:
                store(frame, output)

    return fetch_texels


def _handle(decoder: "Decoder", texture: Register | Symbol) -> Fetch:
    """Return a function to the texture's number: a handle in a register, or a bound reference."""
    if isinstance(texture, Register):
        return decoder.fetch(texture, "u64")
    name, bound = texture.name, decoder.loaded.textures
    return lambda frame: np.array([[bound.get(name, 0)]], dtype=np.uint64)


def _texture(group: "Group", pc: int, number: int) -> Texture:
    textures = group.wave.program.memory.textures
    if not 1 <= number <= len(textures):
        program = group.wave.program
        raise KernelFault(
            f"{source_line(program.kernel, pc)}: kernel `{program.name}` samples a texture that is "
            "bound to nothing; make one with `texture(...)` and pass it, or bind it with "
            "`bind_texture`"
        )
    return textures[number - 1]


def _check(
    group: "Group", pc: int, texture: Texture, shape: tuple[int, bool], result: str, is_fetch: bool
) -> None:
    """Refuse what would give zeros, or bits of another type: hardware says nothing and goes on."""
    described = texture.description
    problem = ""
    if shape != texture.shape:
        problem = f"in {shape_words(*shape)}; it has {shape_words(*texture.shape)}"
    elif (result[0] == "f") != texture.gives_floats:
        given = f'{described.format}, read with read_mode="{described.read_mode}"'
        problem = f"as {result}; its texels are {given}"
    elif texture.is_linear_memory and len(described.extent) == 1 and not is_fetch:
        problem = "by a coordinate; over linear memory only tex1Dfetch reads it"
    if problem:
        program = group.wave.program
        raise KernelFault(
            f"{source_line(program.kernel, pc)}: kernel `{program.name}` samples texture "
            f"`{described.name}` {problem}"
        )


def _record(
    group: "Group", position: int, pc: int, number: int, here: Array, corner: NDArray[np.int32]
) -> None:
    """Add a row a warp with a lane that samples; inactive lanes have the corner 0."""
    corners = np.zeros((*here.shape, 4), dtype=np.int32)
    corners[here] = corner
    active = pack(here.reshape(-1, LANES))
    warps = np.flatnonzero(active)
    group.wave.rows.add_texels(
        group.place[warps],
        group.step[warps] + np.uint32(position),
        pc,
        number - 1,
        active[warps],
        corners.reshape(-1, LANES, 4)[warps],
    )
