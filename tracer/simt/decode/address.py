"""The address operand of a memory instruction: state space, element type, register and offset."""

import numpy as np
from numpy.typing import NDArray

from ....base.errors import KernelFault
from ....traces.schema import Space
from ...front.texture_reference import is_handle
from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
    key_of,
)
from ...ptx.lines import source_line
from ..access.access import Access
from ..kernel.layout import argument_places
from ..ops.lanes import DTYPES, Array, scalar
from ..warp.program import Group, Step
from .decoder import Decoder, Fetch, StepTable
from .ptx_program import PtxProgram

_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.LOCAL,
}
"""State spaces by name. Function parameters are in local memory if their address is taken."""


def describe(decoder: Decoder, instruction: Instruction, operand: Operand) -> Access:
    """Decode the space, element type, vector and address of a memory instruction.

    A variable addressed by name is accessed in its own space if the instruction names none.
    """
    if isinstance(operand, Symbol):
        operand = Address(operand)
    if not isinstance(operand, Address):
        raise decoder.refuse("expected an address in brackets")
    fetch, offset = address_of(decoder, operand)
    space = _SPACES.get(instruction.space)
    if space is None and isinstance(operand.base, Symbol):
        space = decoder.symbol_space(operand.base.name)
    return Access(
        decoder.pc,
        decoder.position,
        space,
        DTYPES[instruction.type or "b8"],
        instruction.vector,
        fetch,
        offset,
        decoder.guard(),
        hidden=instruction.space == "param"
        or (isinstance(operand.base, Symbol) and is_handle(operand.base.name)),
        narrow=isinstance(operand.base, Register) and TYPE_BYTES[operand.base.type] == 4,
    )


def address_of(decoder: Decoder, operand: Address) -> tuple[Fetch, int]:
    """Return a fetch of the address's base value, and the offset in bytes."""
    if isinstance(operand.base, Register):
        if TYPE_BYTES[operand.base.type] not in (4, 8):
            raise decoder.refuse(f"`{operand.base.name}` is .{operand.base.type}, and no address")
        slot = decoder.slots.read(decoder.slots.of(decoder.function, operand.base))
        return (lambda frame: frame[slot]), operand.offset
    start = 0
    if isinstance(operand.base, Symbol):
        if decoder.passing.has_levels(decoder.function, operand.base.name):
            raise decoder.refuse("a local variable of a recursion is reached by an address only")
        start = decoder.symbol_address(operand.base.name) + operand.base.offset
    value = scalar(start, np.dtype(np.int64))
    return (lambda frame: value), operand.offset


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def place_parameters(decoder: Decoder | PtxProgram) -> tuple[int, int]:
    """Copy the arguments to the memory of generic parameter addresses; return first address and
    end.

    Only modules with a `cvta.param` have such memory.
    """
    place = decoder.loaded.parameters
    if place is None:
        return 0, 0
    image = parameter_image(decoder)
    decoder.memory.view(place)[: image.size] = image
    start = decoder.loaded.parameters_start
    return start, start + image.size


def decode_pointed_parameter(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a parameter load through a register, or None if it is none."""
    if instruction.space != "param" or decoder.function:
        return None
    to, address = instruction.operands
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    kind, offset, pc = instruction.type, address.offset, decoder.pc
    if TYPE_BYTES[address.base.type] not in (4, 8):
        raise decoder.refuse(f"`{address.base.name}` is .{address.base.type}, and no address")
    fetch = decoder.fetch(address.base, address.base.type)
    stores = [decoder.store(e, kind) for e in elements(to)]
    guard, size = decoder.guard(), DTYPES[kind].itemsize
    image, octet = parameter_image(decoder), np.arange(size)
    last = len(image) - size * len(stores)

    def load(group: Group) -> None:
        frame = group.frame
        place: Array = fetch(frame).astype(np.int64) + offset
        lanes = group.guarded(guard)
        outside = (place < 0) | (place > last)
        if outside.any() and (outside if lanes is None else outside & lanes).any():
            kernel = decoder.kernel
            raise KernelFault(
                f"{source_line(kernel, pc)}: kernel `{kernel.name}` reads {size * len(stores)} "
                f"bytes outside of its parameters"
            )
        for number, store in enumerate(stores):
            octets = image.take((place + number * size)[..., None] + octet, mode="clip")
            store(frame, octets.view(DTYPES[kind])[..., 0])

    return load


STEPS: StepTable = {"ld": decode_pointed_parameter}


def parameter_image(decoder: Decoder | PtxProgram) -> NDArray[np.uint8]:
    """Return the bytes of all parameters."""
    starts, end = argument_places(key_of(decoder.kernel))
    image = bytearray(end)
    for start, data in zip(starts, decoder.launch.arguments, strict=True):
        image[start : start + len(data)] = data
    return np.frombuffer(bytes(image), dtype=np.uint8)
