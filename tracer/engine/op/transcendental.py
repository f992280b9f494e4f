"""The rows of division, roots and approximate functions (PTX ISA 9.7.3, 9.7.4)."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ...ptx.kernel import Instruction
from ..lanes import DTYPES, Array
from . import approximate
from .floating import arithmetic, forms
from .format import FORMATS
from .packed import halves
from .reformat import through_double
from .rule import Builder, Family, Rule

_FORMULAS: Mapping[str, Callable[..., Array]] = {
    "div": approximate.quotient,
    "rcp": approximate.reciprocal,
    "sqrt": approximate.root,
    "rsqrt": approximate.reciprocal_root,
    "sin": approximate.sine,
    "cos": approximate.cosine,
    "lg2": approximate.binary_logarithm,
    "ex2": approximate.power_of_two,
    "tanh": approximate.hyperbolic_tangent,
}


def _flushed(x: Array, tiny: float) -> Array:
    """Return x, or a zero of its sign if it is smaller than `tiny`."""
    return np.where(np.abs(x) < tiny, np.copysign(0.0, x), x)


_FORMS: Mapping[tuple[str, str, str], Callable[..., Array]] = {
    ("div", "f32", "approx"): approximate.quick_quotient,
    ("rcp", "f64", "approx"): approximate.coarse_reciprocal,
    ("rsqrt", "f64", "approx.ftz"): approximate.coarse_reciprocal_root,
}
"""Where one form of an opcode is another function."""


@cache
def _function(opcode: str, kind: str, form: str) -> Callable[..., Array]:
    single = kind.removesuffix("x2")
    exact = _FORMS.get((opcode, single, form)) or _FORMS.get(
        (opcode, single, form.removesuffix(".ftz")), _FORMULAS[opcode]
    )
    tiny, ftz = FORMATS[single].tiny, form.endswith("ftz")
    arity = 2 if opcode == "div" else 1

    def flushing(*sources: Array) -> Array:
        return _flushed(exact(*(_flushed(x, tiny) for x in sources)), tiny)

    one = through_double(single, flushing if ftz else exact)
    return halves(f"{opcode}_{form}_{kind}".replace(".", "_"), kind, arity, one)


_NAMES = ("approx", "full", "ftz")


def _approximate(opcode: str) -> Builder:
    def build(instruction: Instruction) -> Rule:
        kind, modifiers = instruction.type, instruction.modifiers
        bits = f"b{8 * DTYPES[kind].itemsize}"
        arity = 2 if opcode == "div" else 1
        compute = _function(opcode, kind, ".".join(m for m in modifiers if m in _NAMES))
        return Rule((bits,) * arity, (bits,), compute)

    return build


def _rounded(opcode: str) -> Builder:
    """Take `.approx` and `.full` as approximate, anything else as exact in its rounding mode."""
    approximately = _approximate(opcode)

    def build(instruction: Instruction) -> Rule | None:
        kind, modifiers = instruction.type, instruction.modifiers
        if {"approx", "full"} & set(modifiers):
            return approximately(instruction)
        compute = arithmetic(opcode, kind, *forms(instruction))
        return Rule((kind,) * (2 if opcode == "div" else 1), (kind,), compute)

    return build


FAMILY = Family(
    "division, roots and approximate functions",
    {
        **{opcode: _rounded(opcode) for opcode in ("div", "rcp", "sqrt")},
        **{
            opcode: _approximate(opcode) for opcode in ("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
        },
    },
    frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}),
)
