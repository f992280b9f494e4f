"""Loads and stores (PTX ISA 9.7.9): `ld`, `ldu` and `st`."""

from ...ptx.kernel import TYPE_BYTES, Address, Instruction, Register
from ..access.access import read, write
from ..warp.program import Group, Step
from .address import describe, elements
from .decoder import Decoder, StepTable


def _names_parameter(instruction: Instruction) -> bool:
    """Return whether the access is one of a parameter by name, which makes no row."""
    return instruction.space == "param" and not any(
        isinstance(operand, Address) and isinstance(operand.base, Register)
        for operand in instruction.operands
    )


def _load(decoder: Decoder, instruction: Instruction) -> Step | None:
    if _names_parameter(instruction):
        return None
    to, source = instruction.operands[:2]
    access = describe(decoder, instruction, source)
    kind = instruction.type
    stores = [decoder.store(e, kind) for e in elements(to)]
    if TYPE_BYTES[kind] * instruction.vector != access.width or len(stores) != access.count:
        raise decoder.refuse(f"expected {access.count} registers")

    def load(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        values = read(group, lanes, access, access.address(frame))
        for store, value in zip(stores, values, strict=True):
            store(frame, value)

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step | None:
    if _names_parameter(instruction):
        return None
    to, source = instruction.operands[:2]
    access = describe(decoder, instruction, to)
    kind = instruction.type
    fetches = [decoder.fetch(e, kind) for e in elements(source)]
    if len(fetches) != access.count:
        raise decoder.refuse(f"expected {access.count} registers")

    def store(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        write(group, lanes, access, access.address(frame), [f(frame) for f in fetches])

    return store


STEPS: StepTable = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
}
