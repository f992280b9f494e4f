"""Approximate functions as formulas in float64; one rounding to the narrow type follows.

Their own error lies far below half a unit of float32, so they are nearer to the true value than
the hardware's tables, and within the bounds of the ISA. What happens at zeros, subnormal numbers,
infinities and beyond the stated range is the hardware's.
"""

import math
import struct

from .formula import Number

_TWO_PI = float.fromhex("0x1.921fb54442d18p+2")
_TURN = float.fromhex("0x1.45f306p-3")
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SIN = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 7))
_COS = tuple((-1) ** k / math.factorial(2 * k) for k in range(1, 8))
_EXP = tuple(1 / math.factorial(k) for k in range(13))
_LOG = tuple(1 / k for k in range(1, 24, 2))
_COARSE_NAN = struct.unpack(">d", bytes.fromhex("7fffffff00000000"))[0]
_MIXED = 0x3FE6A09E667F3BCD
"""The bits of the square root of a half: fractions are taken from there to twice as much."""


def _turned(x: Number, quarter: int) -> Number:
    """Return the sine of x plus so many quarters of a turn.

    As on the hardware, x is first multiplied by 1 / 2 pi in float32, which decides the error of
    large angles: beyond 2^23 turns nothing is left but the sine and cosine of 0.
    """
    turns = (x * _TURN).single()
    part = turns - turns.nearest()
    quarters = (part * 4.0).nearest()
    rest = (part - quarters * 0.25) * _TWO_PI
    square = rest * rest
    sine = rest + rest * square * square.polynomial(_SIN)
    cosine = square * square.polynomial(_COS) + 1.0
    quadrant = x.integer("add", quarters.whole(), quarter)
    odd = x.integer("icmp ne", x.integer("and", quadrant, 1), 0)
    below = x.integer("icmp ne", x.integer("and", quadrant, 2), 0)
    value = cosine.where(odd, sine)
    return (-value).where(below, value)


def sine(x: Number) -> Number:
    """Return sin x, x in radians."""
    value = _turned(x, 0)
    return x.constant(0.0).with_sign_of(x).where(value.compare("oeq", 0.0), value)


def cosine(x: Number) -> Number:
    """Return cos x, x in radians."""
    return _turned(x, 1)


def power_of_two(x: Number) -> Number:
    """Return 2 ** x."""
    low = x.where(x.compare("ogt", -1000.0), -1000.0)
    bounded = low.where(low.compare("olt", 1000.0), 1000.0)
    whole = bounded.nearest()
    value = ((bounded - whole) * _LN2).polynomial(_EXP)
    exponent = x.integer("shl", whole.whole(), 52)
    value = x.of_bits(x.integer("add", value.bits(), exponent))
    return x.where(x.compare("uno", x), value)


def binary_logarithm(x: Number) -> Number:
    """Return the logarithm of x to base 2; -inf for 0, NaN below."""
    bits = x.integer("sub", x.bits(), _MIXED)
    exponent = x.integer("ashr", bits, 52)
    fraction = x.of_bits(x.integer("sub", x.bits(), x.integer("shl", exponent, 52)))
    ratio = (fraction - 1.0) / (fraction + 1.0)
    series = (ratio * ratio).polynomial(_LOG)
    value = x.of_whole(exponent) + ratio * 2.0 * series / _LN2
    value = x.where(x.compare("oeq", math.inf), value)
    value = x.constant(-math.inf).where(x.compare("oeq", 0.0), value)
    return x.constant(math.nan).where(x.compare("ult", 0.0), value)


def hyperbolic_tangent(x: Number) -> Number:
    """Return tanh x."""
    size = abs(x)
    square = x * x
    series = x * square.polynomial((1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835))
    grown = power_of_two(size.where(size.compare("olt", 40.0), 40.0) * (-2 / _LN2))
    value = ((1.0 - grown) / (grown + 1.0)).with_sign_of(x)
    value = series.where(size.compare("olt", 0.05), value)
    return x.where(x.compare("uno", x), value)


def reciprocal(x: Number) -> Number:
    """Return 1 / x."""
    return 1.0 / x


def root(x: Number) -> Number:
    """Return the square root of x."""
    return x.root()


def reciprocal_root(x: Number) -> Number:
    """Return 1 / sqrt x."""
    return 1.0 / x.root()


def quotient(x: Number, y: Number) -> Number:
    """Return x / y."""
    return x / y


def quick_quotient(x: Number, y: Number) -> Number:
    """Return x / y by the reciprocal of y, which is 0 for y beyond 2^126 (`div.approx`)."""
    return x / x.constant(math.inf).with_sign_of(y).where(abs(y).compare("ogt", 2.0**126), y)


def coarse_reciprocal(x: Number) -> Number:
    """Return 1 / x of the upper word of x, an upper word itself (`rcp.approx.ftz.f64`)."""
    return _upper(1.0 / _upper_word(x))


def coarse_reciprocal_root(x: Number) -> Number:
    """Return 1 / sqrt x in the same way (`rsqrt.approx.ftz.f64`)."""
    return _upper(1.0 / _upper_word(x).root())


def _upper_word(x: Number) -> Number:
    return x.of_bits(x.integer("and", x.bits(), -1 << 32))


def _upper(x: Number) -> Number:
    rounded = x.integer("and", x.integer("add", x.bits(), 1 << 31), -1 << 32)
    return x.of_bits(rounded).where(x.compare("ord", x), _COARSE_NAN)
