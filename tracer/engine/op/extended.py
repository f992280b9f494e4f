"""Integer arithmetic of more than a register's width, by the carry flag (PTX ISA 9.7.2).

`.cc` writes the flag: the carry of a sum, the borrow of a difference; `addc`, `subc` and `madc`
take it in. Sums are of unsigned numbers: the bits are the same for signed ones.
"""

from collections.abc import Callable

import numpy as np

from ...ptx.kernel import Instruction
from ..array import DTYPES, Array
from .bits import INTEGERS
from .integer import product
from .rule import Family, Rule


def _sum(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return a + b + carry, and the carry out."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def _difference(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """Return a - b - borrow, and the borrow out."""
    partial = a - b
    total = partial - borrow.astype(a.dtype)
    return total, (a < b) | (total > partial)


_NO_CARRY = np.zeros((1, 1), dtype=np.bool_)


def _extended(instruction: Instruction) -> Rule | None:
    opcode = instruction.opcode
    takes, gives = opcode.endswith("c"), "cc" in instruction.modifiers
    if not takes and not gives:
        return None
    kind = instruction.type
    unsigned, dtype = f"u{kind[1:]}", DTYPES[kind]
    combine = _difference if opcode.startswith("sub") else _sum
    multiply: Callable[..., Array] | None = None
    if opcode.startswith("mad"):
        multiply = product(instruction)[1]

    def compute(*sources: Array) -> Array | tuple[Array, ...]:
        carry = sources[-1] if takes else _NO_CARRY
        a, b = sources[:2]
        if multiply is not None:
            a, b = multiply(a.view(dtype), b.view(dtype)).view(a.dtype), sources[2]
        total, out = combine(a, b, carry)
        return (total, out) if gives else total

    arity = 2 if multiply is None else 3
    return Rule((unsigned,) * arity, (unsigned,), compute, carry_in=takes, carry_out=gives)


FAMILY = Family(
    "extended precision",
    dict.fromkeys(("add", "addc", "sub", "subc", "mad", "madc"), _extended),
    INTEGERS,
)
