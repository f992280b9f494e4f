"""Single precision of compute capability 10.0: two numbers in a register, and half precision terms.

`add.f32x2` is `add.f32` of both halves of 64 bits. `add.f32.f16` widens one term first,
`fma.f32.f16` two factors (PTX ISA 9.7.3 and 9.7.5), and each rounds once, like any f32 operation.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ...ptx.kernel import Instruction
from .floating import arithmetic, forms
from .format import Reformat, reformat
from .lanes import Array
from .rule import Builder, Family, Rule

_ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
_NARROW = ("f16", "bf16")


@cache
def _widened(kind: str) -> Callable[[Array], Array]:
    convert = reformat(Reformat(kind, "f32"))
    return lambda a: convert(a).view(np.float32)


def _packed(operation: str, instruction: Instruction) -> Rule:
    one = arithmetic(operation, "f32", *forms(instruction))
    up = np.uint64(32)

    def both(*values: Array) -> Array:
        low = one(*(value.astype(np.uint32).view(np.float32) for value in values))
        high = one(*((value >> up).astype(np.uint32).view(np.float32) for value in values))
        joined: Array = (high.view(np.uint32).astype(np.uint64) << up) | low.view(np.uint32)
        return joined

    return Rule(("b64",) * _ARITY[operation], ("b64",), both)


def _mixed(operation: str, instruction: Instruction) -> Rule:
    kind = instruction.type
    one, widen = arithmetic(operation, "f32", *forms(instruction)), _widened(kind)
    narrow = _ARITY[operation] - 1

    def compute(*values: Array) -> Array:
        return one(*(widen(value) for value in values[:narrow]), *values[narrow:])

    return Rule((*("b16",) * narrow, "f32"), ("f32",), compute)


def _build(operation: str) -> Builder:
    def build(instruction: Instruction) -> Rule | None:
        if instruction.types == ("f32x2",):
            return _packed(operation, instruction)
        if operation != "mul" and instruction.types in [("f32", kind) for kind in _NARROW]:
            return _mixed(operation, instruction)
        return None

    return build


FAMILY = Family(
    "single precision in pairs and with half precision",
    {opcode: _build(opcode) for opcode in _ARITY},
    frozenset({"f32x2", *_NARROW}),
)
