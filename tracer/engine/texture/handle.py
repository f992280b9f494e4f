"""Handles of textures and surfaces: what a kernel holds for one, and which it is."""

import numpy as np

from ....errors import KernelFault
from ...ptx.kernel import Register, Symbol
from ..array.decoder import Decoder
from ..array.program import Group
from ..array.slot import Fetch
from ..kernel.source_line import source_line
from ..lanes import Array, scalar
from .surface import Surface
from .texture import Texture

_HANDLE = np.dtype(np.uint64)
SURFACES = 1 << 32
"""Surfaces are numbered from here on, textures from 1."""


def decode_handle(decoder: Decoder, source: Register | Symbol) -> Fetch:
    """Return a function to a handle: one in a register, or that of a reference by name.

    A register may hold a reference's address, too.
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
    """Return a texture and its index; KernelFault where the handle is none."""
    textures = group.wave.program.memory.textures
    if 1 <= handle <= len(textures):
        return handle - 1, textures[handle - 1]
    raise _nothing(group, pc, verb, "texture")


def find_surface(group: Group, pc: int, handle: int, verb: str) -> Surface:
    """Return a surface; KernelFault where the handle is none."""
    surfaces = group.wave.program.memory.surfaces
    if 1 <= handle - SURFACES <= len(surfaces):
        return surfaces[handle - SURFACES - 1]
    raise _nothing(group, pc, verb, "surface")


def _nothing(group: Group, pc: int, verb: str, kind: str) -> KernelFault:
    program = group.wave.program
    return KernelFault(
        f"{source_line(program.kernel, pc)}: kernel `{program.name}` {verb} a {kind} that is "
        f"bound to nothing; make one with `{kind}(...)` and pass it, or bind it with "
        f"`bind_{kind}`"
    )
