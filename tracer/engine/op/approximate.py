"""Approximate functions in float64, from operations that every machine rounds alike.

Each takes and gives float64 arrays. The error of the polynomials is far below half a unit of
float32, so the one rounding that follows decides the result.
"""

from typing import cast

import numpy as np

from ..array import Array

_HALF_PI_HIGH = float.fromhex("0x1.921fb54400000p+0")
_HALF_PI_LOW = float.fromhex("0x1.0b4611a626331p-34")
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SIN = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800)
_COS = (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200)
_EXP = (
    1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040,
    1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600,
)  # fmt: skip


def _horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _quadrant(x: Array) -> tuple[Array, Array]:
    """Reduce to [-pi/4, pi/4]; return the rest and the quadrant."""
    finite = np.where(np.isfinite(x), x, np.nan)
    turns = np.rint(finite / (_HALF_PI_HIGH + _HALF_PI_LOW))
    rest = (finite - turns * _HALF_PI_HIGH) - turns * _HALF_PI_LOW
    return rest, np.where(np.isnan(turns), 0, np.fmod(turns, 4)).astype(np.int64) & 3


def _sine_and_cosine(rest: Array) -> tuple[Array, Array]:
    square = rest * rest
    return rest + rest * square * _horner(square, _SIN), 1 + square * _horner(square, _COS)


def sine(x: Array) -> Array:
    """Return sin x, x in radians."""
    rest, quadrant = _quadrant(x)
    s, c = _sine_and_cosine(rest)
    value = np.where(quadrant & 1, c, s)
    return np.where(x == 0, x, np.where(quadrant & 2, -value, value))


def cosine(x: Array) -> Array:
    """Return cos x, x in radians."""
    rest, quadrant = _quadrant(x)
    s, c = _sine_and_cosine(rest)
    value = np.where(quadrant & 1, s, c)
    return np.where((quadrant == 1) | (quadrant == 2), -value, value)


def power_of_two(x: Array) -> Array:
    """Return 2 ** x."""
    bounded = np.clip(np.where(np.isnan(x), 0, x), -1100, 1100)
    whole = np.rint(bounded)
    value = np.ldexp(_horner((bounded - whole) * _LN2, _EXP), whole.astype(np.int32))
    return np.where(np.isnan(x), x, value)


def binary_logarithm(x: Array) -> Array:
    """Return the logarithm of x to base 2; -inf for 0, NaN below."""
    fraction, exponent = np.frexp(np.where(x > 0, x, 1.0))
    low = fraction < np.sqrt(0.5)
    fraction = np.where(low, 2 * fraction, fraction)
    exponent = exponent - low
    ratio = (fraction - 1) / (fraction + 1)
    square = ratio * ratio
    series = _horner(square, tuple(1 / k for k in range(1, 24, 2)))
    value = exponent + 2 * ratio * series / _LN2
    value = np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, value))
    return np.where((x < 0) | np.isnan(x), np.nan, value)


def hyperbolic_tangent(x: Array) -> Array:
    """Return tanh x."""
    grown = power_of_two(np.clip(np.abs(x), 0, 40) * (-2 / _LN2))
    series = x - x * x * x / 3 + 2 * x**5 / 15 - 17 * x**7 / 315
    value = np.copysign((1 - grown) / (1 + grown), x)
    return np.where(np.abs(x) < 0.02, series, np.where(np.isnan(x), x, value))


def reciprocal_root(x: Array) -> Array:
    """Return 1 / sqrt x."""
    return cast(Array, 1.0 / np.sqrt(x))
