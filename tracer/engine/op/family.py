"""All families of instructions, and the search for the row of one instruction."""

from ...ptx.kernel import Instruction
from . import compare, convert, floating, integer
from .rule import Rule


def find_rule(instruction: Instruction) -> Rule | None:
    """Return the row that computes `instruction`, or None where no family has it."""
    builder = None
    if instruction.type in integer.TYPES:
        builder = integer.TABLE.get(instruction.opcode)
    elif instruction.type in floating.TYPES:
        builder = floating.TABLE.get(instruction.opcode)
    builder = (
        builder or compare.TABLE.get(instruction.opcode) or convert.TABLE.get(instruction.opcode)
    )
    return builder(instruction) if builder else None
