"""Single and double precision arithmetic (PTX ISA 9.7.3).

NumPy's add, subtract, multiply, divide and square root round to nearest even, as `.rn` asks; fused
multiply-add comes from `native`. Approximate functions are built from exact ones in float64, so
that they are the same on every machine; they lie within the bounds that the ISA states.
"""

from collections.abc import Callable
from typing import cast

import numpy as np

from ...ptx.kernel import Instruction
from .. import native
from ..array import DTYPES, Array
from . import approximate
from .rule import Builder, Rule, Table

TYPES = frozenset({"f32", "f64"})
_DIRECTED = frozenset({"rz", "rm", "rp"})


def _modified(instruction: Instruction, compute: Callable[..., Array]) -> Callable[..., Array]:
    """Apply `.ftz` to sources and result, and `.sat` to the result."""
    if "ftz" in instruction.modifiers:
        exact = compute
        compute = lambda *sources: _flush(exact(*map(_flush, sources)))  # noqa: E731
    if "sat" in instruction.modifiers:
        unbounded = compute
        compute = lambda *sources: saturate(unbounded(*sources))  # noqa: E731
    return compute


def _flush(a: Array) -> Array:
    """Replace subnormal numbers by zeros of their sign."""
    tiny = np.finfo(a.dtype).tiny
    return np.where(np.abs(a) < tiny, np.copysign(a.dtype.type(0), a), a)


def saturate(a: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes +0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    bounded: Array = np.where(a > 0, np.minimum(a, one), zero)
    return bounded


def _plain(arity: int, function: Callable[..., Array]) -> Builder:
    def build(instruction: Instruction) -> Rule | None:
        if _DIRECTED & set(instruction.modifiers):
            return None
        kind = instruction.type
        return Rule((kind,) * arity, (kind,), _modified(instruction, function))

    return build


def _widened(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Compute in float64 and round once to the type of the source."""
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


def _minimum(instruction: Instruction) -> Rule:
    kind = instruction.type
    smaller = instruction.opcode == "min"
    of_numbers: Callable[..., Array] = np.fmin if smaller else np.fmax
    of_all: Callable[..., Array] = np.minimum if smaller else np.maximum
    pick = of_all if "NaN" in instruction.modifiers else of_numbers

    def choose(a: Array, b: Array) -> Array:
        both_zero = (a == 0) & (b == 0)
        negative = np.signbit(a) | np.signbit(b) if smaller else np.signbit(a) & np.signbit(b)
        zero = np.where(negative, a.dtype.type(-0.0), a.dtype.type(0.0))
        return np.where(both_zero, zero, pick(a, b))

    return Rule((kind, kind), (kind,), _modified(instruction, choose))


def _absolute(a: Array) -> Array:
    return np.abs(a)


def _test(instruction: Instruction) -> Rule:
    kind = instruction.type
    tiny = np.finfo(DTYPES[kind]).tiny
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return Rule((kind,), ("pred",), tests[instruction.modifiers[0]])


TABLE: Table = {
    "add": _plain(2, np.add),
    "sub": _plain(2, np.subtract),
    "mul": _plain(2, np.multiply),
    "div": _plain(2, np.divide),
    "fma": _plain(3, native.fma),
    "mad": _plain(3, native.fma),
    "abs": _plain(1, _absolute),
    "neg": _plain(1, np.negative),
    "min": _minimum,
    "max": _minimum,
    "rcp": _plain(1, lambda a: cast(Array, np.divide(a.dtype.type(1), a))),
    "sqrt": _plain(1, np.sqrt),
    "rsqrt": _plain(1, _widened(approximate.reciprocal_root)),
    "sin": _plain(1, _widened(approximate.sine)),
    "cos": _plain(1, _widened(approximate.cosine)),
    "ex2": _plain(1, _widened(approximate.power_of_two)),
    "lg2": _plain(1, _widened(approximate.binary_logarithm)),
    "tanh": _plain(1, _widened(approximate.hyperbolic_tangent)),
    "copysign": _plain(2, lambda a, b: cast(Array, np.copysign(b, a))),
    "testp": _test,
}
