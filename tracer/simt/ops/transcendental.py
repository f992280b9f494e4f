"""Approximate functions: float64 formulas, followed by one rounding to the narrow type.

The error of a formula is far below half a unit of float32. The results are thus nearer to the true
value than the hardware's tables, and within the bounds of the ISA. The results for zeros, subnormal
numbers, infinities and arguments out of range are the hardware's.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from ...ptx.kernel import Instruction
from .floating import arithmetic, forms
from .format import FORMATS, through_double
from .lanes import DTYPES, Array
from .packed import halves
from .rule import Builder, Family, Rule

_TWO_PI = float.fromhex("0x1.921fb54442d18p+2")
_ONE_OVER_TWO_PI = float.fromhex("0x1.45f306p-3")
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SIN = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 7))
_COS = tuple((-1) ** k / math.factorial(2 * k) for k in range(1, 8))
_EXP = tuple(1 / math.factorial(k) for k in range(13))
_LOG = tuple(1 / k for k in range(1, 24, 2))
_COARSE_NAN = struct.unpack(">d", bytes.fromhex("7fffffff00000000"))[0]
_MIXED = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2): fractions are normalised to the range from it to twice as much."""


def _turned(x: Array, quarter: int) -> Array:
    """Return the sine of x plus `quarter` quarter turns.

    As on the hardware, x is first multiplied by 1 / 2 pi in float32, which decides the error of
    large angles: beyond 2^23 turns only the sine and cosine of 0 remain.
    """
    return _of_revolutions((x * _ONE_OVER_TWO_PI).astype(np.float32).astype(np.float64), quarter)


def _of_revolutions(revolutions: Array, quarter: int) -> Array:
    part = revolutions - np.rint(revolutions)
    quarters = np.rint(part * 4.0)
    angle = (part - quarters * 0.25) * _TWO_PI
    square = angle * angle
    sine = angle + angle * square * _polynomial(square, _SIN)
    cosine = square * _polynomial(square, _COS) + 1.0
    quadrant = quarters.astype(np.int64) + quarter
    value = np.where(quadrant & 1, cosine, sine)
    return np.where(quadrant & 2, -value, value)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Return c0 + c1 x + c2 x^2 ..., by Horner's rule."""
    total = x * coefficients[-1]
    for coefficient in reversed(coefficients[1:-1]):
        total = (total + coefficient) * x
    last: Array = total + coefficients[0]
    return last


def sine(x: Array) -> Array:
    """Return sin x, x in radians."""
    value = _turned(x, 0)
    return np.where(value == 0.0, np.copysign(0.0, x), value)


def cosine(x: Array) -> Array:
    """Return cos x, x in radians."""
    return _turned(x, 1)


def turned_sine(x: Array) -> Array:
    """Return the sine of x turns, what the function unit of a chip computes."""
    value = _of_revolutions(x, 0)
    return np.where(value == 0.0, np.copysign(0.0, x), value)


def turned_cosine(x: Array) -> Array:
    """Return the cosine of x turns."""
    return _of_revolutions(x, 1)


def power_of_two(x: Array) -> Array:
    """Return 2 ** x."""
    low = np.where(x > -1000.0, x, -1000.0)
    bounded = np.where(low < 1000.0, low, 1000.0)
    whole = np.rint(bounded)
    value = _polynomial((bounded - whole) * _LN2, _EXP)
    value = (value.view(np.int64) + (whole.astype(np.int64) << 52)).view(np.float64)
    return np.where(np.isnan(x), x, value)


def binary_logarithm(x: Array) -> Array:
    """Return the logarithm of x to base 2; -inf for 0, NaN below."""
    exponent = (x.view(np.int64) - _MIXED) >> 52
    fraction = (x.view(np.int64) - (exponent << 52)).view(np.float64)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    series = _polynomial(ratio * ratio, _LOG)
    value = exponent.astype(np.float64) + ratio * 2.0 * series / _LN2
    value = np.where(x == math.inf, x, value)
    value = np.where(x == 0.0, -math.inf, value)
    return np.where(x >= 0.0, value, math.nan)


def hyperbolic_tangent(x: Array) -> Array:
    """Return tanh x."""
    size = np.abs(x)
    series = x * _polynomial(x * x, (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835))
    grown = power_of_two(np.where(size < 40.0, size, 40.0) * (-2 / _LN2))
    value = np.copysign((1.0 - grown) / (grown + 1.0), x)
    value = np.where(size < 0.05, series, value)
    return np.where(np.isnan(x), x, value)


def reciprocal(x: Array) -> Array:
    """Return 1 / x."""
    inverse: Array = 1.0 / x
    return inverse


def root(x: Array) -> Array:
    """Return the square root of x."""
    value: Array = np.sqrt(x)
    return value


def reciprocal_root(x: Array) -> Array:
    """Return 1 / sqrt x."""
    return reciprocal(np.sqrt(x))


def quotient(x: Array, y: Array) -> Array:
    """Return x / y."""
    value: Array = x / y
    return value


def quick_quotient(x: Array, y: Array) -> Array:
    """Return x times the reciprocal of y, which is 0 for y beyond 2^126 (`div.approx`)."""
    return quotient(x, np.where(np.abs(y) > 2.0**126, np.copysign(math.inf, y), y))


def coarse_reciprocal(x: Array) -> Array:
    """Return 1 / x of the upper word of x, itself an upper word (`rcp.approx.ftz.f64`)."""
    return _upper(1.0 / _upper_word(x))


def coarse_reciprocal_root(x: Array) -> Array:
    """Return 1 / sqrt x in the same way (`rsqrt.approx.ftz.f64`)."""
    return _upper(1.0 / np.sqrt(_upper_word(x)))


def _upper_word(x: Array) -> Array:
    return (x.view(np.int64) & (-1 << 32)).view(np.float64)


def _upper(x: Array) -> Array:
    rounded = (x.view(np.int64) + (1 << 31)) & (-1 << 32)
    return np.where(np.isnan(x), _COARSE_NAN, rounded.view(np.float64))


_FORMULAS: Mapping[str, Callable[..., Array]] = {
    "div": quotient,
    "rcp": reciprocal,
    "sqrt": root,
    "rsqrt": reciprocal_root,
    "sin": sine,
    "cos": cosine,
    "lg2": binary_logarithm,
    "ex2": power_of_two,
    "tanh": hyperbolic_tangent,
}


def _flushed(x: Array, tiny: float) -> Array:
    """Return x, or a zero of its sign if its magnitude is below `tiny`."""
    return np.where(np.abs(x) < tiny, np.copysign(0.0, x), x)


_FORMS: Mapping[tuple[str, str, str], Callable[..., Array]] = {
    ("div", "f32", "approx"): quick_quotient,
    ("rcp", "f64", "approx"): coarse_reciprocal,
    ("rsqrt", "f64", "approx.ftz"): coarse_reciprocal_root,
    ("sin", "f32", "approx.turns"): turned_sine,
    ("cos", "f32", "approx.turns"): turned_cosine,
}
"""Forms of an opcode with a function of their own."""


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


_NAMES = ("approx", "full", "turns", "ftz")


def _approximate(opcode: str) -> Builder:
    def build(instruction: Instruction) -> Rule:
        kind, modifiers = instruction.type, instruction.modifiers
        bits = f"b{8 * DTYPES[kind].itemsize}"
        arity = 2 if opcode == "div" else 1
        compute = _function(opcode, kind, ".".join(m for m in modifiers if m in _NAMES))
        return Rule((bits,) * arity, (bits,), compute)

    return build


def _rounded(opcode: str) -> Builder:
    """Build `.approx` and `.full` as approximate rows, any other form as exact in its rounding
    mode."""
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
