"""All families of instructions, and the search for the row of one instruction."""

from ...ptx.kernel import Instruction
from . import (
    bits,
    compare,
    convert,
    extended,
    extreme,
    floating,
    half,
    integer,
    mixed,
    packed,
    transcendental,
    video,
)
from .rule import Family, Rule

FAMILIES: tuple[Family, ...] = (
    extended.FAMILY,
    packed.FAMILY,
    integer.FAMILY,
    bits.FAMILY,
    extreme.FAMILY,
    floating.FAMILY,
    transcendental.FAMILY,
    mixed.FAMILY,
    half.FAMILY,
    compare.FAMILY,
    convert.FAMILY,
    video.FAMILY,
)
"""In the order in which they are asked; the first that has the instruction computes it."""


def opcodes(kind: str) -> frozenset[str]:
    """Return the opcodes of the families that count in a class."""
    return frozenset(
        opcode for family in FAMILIES if family.kind == kind for opcode in family.table
    )


def find_rule(instruction: Instruction) -> Rule | None:
    """Return the row that computes `instruction`, or None where no family has it."""
    for family in FAMILIES:
        builder = family.table.get(instruction.opcode)
        if builder and (not family.types or instruction.type in family.types):
            rule = builder(instruction)
            if rule is not None:
                return rule
    return None
