"""Kernel parameters reached through pointers: `mov.b64 %rd1, p; ld.param.u32 %r1, [%rd1+4]`.

Their addresses are offsets in the parameters' own space, in which each lies at a multiple of its
alignment after the one before. Loads of parameters leave no rows; those through a generic address
(`cvta.param`, of a `__grid_constant__`) do: it is one in the constant bank, where a copy lies.
"""

import numpy as np
from numpy.typing import NDArray

from ....errors import KernelFault
from ....traces.schema import Space
from ...ptx.kernel import TYPE_BYTES, Address, Bucket, Instruction, Register
from ..array.decoder import Decoder
from ..array.program import Group, Program, Step
from ..kernel.parameter_layout import parameter_offsets
from ..kernel.source_line import source_line
from ..lanes import DTYPES, Array
from .address import elements
from .memory import WINDOWS, LoadedModule


def place_parameters(decoder: Decoder | Program) -> tuple[int, int]:
    """Copy the arguments to where generic addresses of them point; return first address and end.

    Without any `cvta.param` in the module no address is one.
    """
    place = decoder.loaded.parameters
    if place is None:
        return 0, 0
    image = parameter_image(decoder)
    decoder.memory.view(place)[: image.size] = image
    start = parameters_start(decoder.loaded)
    return start, start + image.size


def parameters_start(loaded: LoadedModule) -> int:
    """Return the first generic address of parameters; 0 if none is taken."""
    place = loaded.parameters
    return 0 if place is None else WINDOWS[Space.CONST][0] + place.address


def decode_pointed_parameter(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a load of parameters through a register, or None if it is none."""
    if instruction.opcode != "ld" or instruction.space != "param" or decoder.function:
        return None
    to, address = instruction.operands
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    kind, offset, pc = instruction.type, address.offset, decoder.pc
    if TYPE_BYTES[address.base.type] not in (4, 8):
        raise decoder.refuse(f"`{address.base.name}` is .{address.base.type}, and no address")
    fetch = decoder.fetch(address.base, address.base.type)
    stores = [None if isinstance(e, Bucket) else decoder.store(e, kind) for e in elements(to)]
    guard, size = decoder.guard(), DTYPES[kind].itemsize
    image, octet = parameter_image(decoder), np.arange(size)
    last = len(image) - size * len(stores)

    def load(group: Group) -> None:
        frame = group.frame
        place: Array = fetch(frame).astype(np.int64) + offset
        lanes = group.guarded(None if guard is None else guard(frame))
        outside = (place < 0) | (place > last)
        if outside.any() and (outside if lanes is None else outside & lanes).any():
            kernel = decoder.kernel
            raise KernelFault(
                f"{source_line(kernel, pc)}: kernel `{kernel.name}` reads {size * len(stores)} "
                f"bytes outside of its parameters"
            )
        for number, store in enumerate(stores):
            octets = image.take((place + number * size)[..., None] + octet, mode="clip")
            if store is not None:
                store(frame, octets.view(DTYPES[kind])[..., 0])

    return load


def parameter_image(decoder: Decoder | Program) -> NDArray[np.uint8]:
    """Return the bytes of all parameters."""
    image = bytearray()
    for parameter, data in zip(decoder.kernel.parameters, decoder.launch.arguments, strict=True):
        start = parameter_offsets(decoder.kernel)[parameter.name]
        image += bytes(start - len(image)) + data.ljust(parameter.size, b"\0")
    return np.frombuffer(bytes(image), dtype=np.uint8)
