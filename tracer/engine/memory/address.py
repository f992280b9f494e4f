"""The address operand of an instruction: its state space, elements, register and offset."""

from typing import Any

import numpy as np

from ....lazy_dataclass import dataclass
from ....traces.schema import Space
from ...front.texture_reference import is_handle
from ...ptx.kernel import TYPE_BYTES, Address, Instruction, Operand, Register, Symbol, Vector
from ..array.decoder import Decoder
from ..array.slot import Fetch
from ..lanes import DTYPES, scalar
from .memory import GLOBAL_BASE, WINDOWS

_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.LOCAL,
}
"""Spaces of addresses. Parameters of functions lie on the stack where something points at them."""


@dataclass(frozen=True, slots=True)
class Access:
    """One memory instruction: `space` None is generic; `count` elements of `dtype` a lane.

    A hidden one leaves no rows: it fetches the handle that stands for a texture reference, or a
    function's parameter. A narrow one has an address of 32 bits, which in global memory are the
    lower ones (`.address_size 32`).
    """

    pc: int
    position: int
    space: Space | None
    dtype: np.dtype[Any]
    count: int
    address: Fetch
    offset: int
    guard: Fetch | None
    part: int = 0
    hidden: bool = False
    narrow: bool = False

    def shift(self, space: Space) -> int:
        """Return what to take off its addresses to have those of a space."""
        if space == Space.GLOBAL:
            return -GLOBAL_BASE if self.narrow else 0
        return WINDOWS[space][0] if self.space is None else 0

    @property
    def width(self) -> int:
        """Bytes that a lane moves."""
        return self.dtype.itemsize * self.count


def describe(decoder: Decoder, instruction: Instruction, operand: Operand) -> Access:
    """Read the space, element, vector and address of a memory instruction.

    A variable by its name is reached in its own space where the instruction names none.
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
    """Return a function to the value that addresses are made from, and the bytes to add."""
    if isinstance(operand.base, Register):
        if TYPE_BYTES[operand.base.type] not in (4, 8):
            raise decoder.refuse(f"`{operand.base.name}` is .{operand.base.type}, and no address")
        slot = decoder.slots.read(decoder.slots.of(decoder.function, operand.base))
        return (lambda frame: frame[slot]), operand.offset
    start = 0
    if isinstance(operand.base, Symbol):
        if decoder.has_frames(operand.base.name):
            raise decoder.refuse("a local variable of a recursion is reached by an address only")
        start = decoder.symbol_address(operand.base.name) + operand.base.offset
    value = scalar(start, np.dtype(np.int64))
    return (lambda frame: value), operand.offset


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)
