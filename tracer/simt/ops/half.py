"""Half precision and brain floats, one or two in a register (PTX ISA 9.7.4).

Sources are widened to float64, where products are exact and sums keep a sticky bit; the result is
rounded once to nearest. Every NaN becomes 0x7fff.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ...ptx.kernel import Instruction
from .format import FORMATS, flush_bits, narrow, odd_sum, widen
from .lanes import Array
from .packed import halves
from .rule import Builder, Family, Rule

TYPES = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
_ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
_COMPUTE: Mapping[str, Callable[..., Array]] = {
    "add": odd_sum,
    "sub": lambda a, b: odd_sum(a, -b),
    "mul": np.multiply,
    "fma": lambda a, b, c: odd_sum(a * b, c),
}
_OUTSIDE = 0x7FF7
"""The NaN of an element outside of a tensor, of either sign (`.oob`)."""
_FLUSH, _SAT, _RELU, _OOB = "ftz", "sat", "relu", "oob"


def element(operation: str, kind: str, flags: frozenset[str] = frozenset()) -> Callable[..., Array]:
    """Return an operation on the bits of single elements of f16 or bf16."""
    form = FORMATS[kind]
    tiny = form.tiny * (1 - 2.0 ** (-form.fraction - 2))
    zero = np.uint64(0)

    def one(*halves: Array) -> Array:
        sources = [half.astype(np.uint64) for half in halves]
        if _FLUSH in flags:
            sources = [flush_bits(bits, form) for bits in sources]
        result = _COMPUTE[operation](*(widen(bits, form) for bits in sources))
        bits = narrow(result, form)
        if _FLUSH in flags:
            bits = np.where(np.abs(result) < tiny, bits & form.sign, bits)
        if _SAT in flags:
            most = np.uint64(form.bias << form.fraction)
            below = (bits >= form.sign) | (bits == form.nan)
            bits = np.where(below, zero, np.where(bits > most, most, bits))
        if _RELU in flags:
            bits = np.where(bits >= form.sign, zero, bits)
        if _OOB in flags:
            outside = [half & 0x7FFF == _OUTSIDE for half in halves[:2]]
            bits = np.where(outside[0] | outside[1], zero, bits)
        return bits.astype(np.uint16)

    return one


@cache
def _function(operation: str, kind: str, flags: frozenset[str]) -> Callable[..., Array]:
    name = "_".join([operation, kind, *sorted(flags)])
    return halves(name, kind, _ARITY[operation], element(operation, kind.removesuffix("x2"), flags))


def _arithmetic(operation: str) -> Builder:
    def build(instruction: Instruction) -> Rule | None:
        kind = instruction.type
        flags = frozenset(instruction.modifiers) & {_FLUSH, _SAT, _RELU, _OOB}
        bits = "b32" if kind.endswith("x2") else "b16"
        if len(set(instruction.types)) > 1:
            return None
        return Rule((bits,) * _ARITY[operation], (bits,), _function(operation, kind, flags))

    return build


FAMILY = Family(
    "half precision and brain floats", {name: _arithmetic(name) for name in _ARITY}, TYPES
)
