"""Two 16-bit values in a register: the loop that applies a function per half, and packed
integers."""

from collections.abc import Callable
from functools import cache

import numpy as np

from ....jit.numpy_tracer import elementwise_of
from ...ptx.kernel import Instruction
from .lanes import DTYPES, Array
from .rule import Family, Rule


def on_halves(one: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of 16 bits as a function of both halves of 32 bits."""

    def both(*words: Array) -> Array:
        low = one(*(word.astype(np.uint16) for word in words))
        high = one(*((word >> 16).astype(np.uint16) for word in words))
        joined: Array = low.astype(np.uint32) | (high.astype(np.uint32) << 16)
        return joined

    return both


def halves(name: str, kind: str, arity: int, one: Callable[..., Array]) -> Callable[..., Array]:
    """Return the compiled function of bits of `kind`, or of both halves of them.

    `one` takes and returns the bits of one element; sources and result are unsigned integers.
    """
    code = f"u{DTYPES[kind].itemsize}"
    whole = on_halves(one) if kind.endswith("x2") else one
    return elementwise_of(name, whole, (code,) * arity, code)


@cache
def _integer(opcode: str, kind: str, relu: bool) -> Callable[..., Array]:
    compute = {"add": np.add, "min": np.minimum, "max": np.maximum}[opcode]
    own = np.dtype(f"{'i' if kind[0] == 's' else 'u'}2")

    def one(a: Array, b: Array) -> Array:
        signed: Array = compute(a.view(own), b.view(own)).view(np.int16)
        return (np.maximum(signed, 0) if relu else signed).view(np.uint16)

    return halves(f"{opcode}_{kind}{'_relu' * relu}", kind, 2, one)


def _packed(instruction: Instruction) -> Rule:
    compute = _integer(instruction.opcode, instruction.type, "relu" in instruction.modifiers)
    return Rule(("b32", "b32"), ("b32",), compute)


FAMILY = Family(
    "packed integers, u16x2 and s16x2",
    dict.fromkeys(("add", "min", "max"), _packed),
    frozenset({"u16x2", "s16x2"}),
)
