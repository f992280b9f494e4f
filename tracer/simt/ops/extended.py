"""Extended-precision integer arithmetic with a carry flag (PTX ISA 9.7.2).

`.cc` writes the flag; `addc`, `subc` and `madc` read it. As on the hardware, a subtraction sets it
where there is no borrow (a - b is a + ~b + 1), which is visible where sums and differences are
mixed. All numbers are unsigned: the bits are the same for signed ones.
"""

from collections.abc import Callable

import numpy as np

from ...ptx.kernel import Instruction
from .bits import INTEGERS
from .integer import product
from .lanes import DTYPES, Array
from .rule import Family, Rule


def _sum(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return a + b + carry, and the carry out."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def _difference(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return a - b, minus 1 without carry, and the carry out."""
    return _sum(a, ~b, carry)


_CLEAR = np.zeros((1, 1), dtype=np.bool_)


def _extended(instruction: Instruction) -> Rule | None:
    opcode = instruction.opcode
    takes, gives = opcode.endswith("c"), "cc" in instruction.modifiers
    if not takes and not gives:
        return None
    kind = instruction.type
    unsigned, dtype = f"u{kind[1:]}", DTYPES[kind]
    combine, start = (_difference, ~_CLEAR) if opcode.startswith("sub") else (_sum, _CLEAR)
    multiply: Callable[..., Array] | None = None
    if opcode.startswith("mad"):
        multiply = product(instruction)[1]

    def compute(*sources: Array) -> Array | tuple[Array, ...]:
        carry = sources[-1] if takes else start
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
    "integer",
)
