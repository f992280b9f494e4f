"""Numbers of narrow floats as fractions, and the sums that tensor cores of 10.0 and 12.0 make.

The rules are those of arXiv 2511.10909: each term is cut off some bits below the largest exponent.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor

import numpy as np

FORMATS = {  # bits, fraction bits, bias, exponent of the least normal number
    "e4m3": (8, 3, 7, -6),
    "e5m2": (8, 2, 15, -14),
    "e2m1": (4, 1, 1, 0),
    "e2m3": (6, 3, 1, 0),
    "e3m2": (6, 2, 3, -2),
    "f16": (16, 10, 15, -14),
}


def value(kind: str, code: int) -> Fraction:
    """The number of a finite pattern."""
    bits, fraction, bias, least = FORMATS[kind]
    code = int(code)
    magnitude = code & (1 << bits - 1) - 1
    field, low = magnitude >> fraction, magnitude & (1 << fraction) - 1
    whole = low + (1 << fraction if field else 0)
    exponent = (field - bias if field else least) - fraction
    number = Fraction(whole) * Fraction(2) ** exponent
    return -number if code >> bits - 1 & 1 else number


def exponent_of(number: Fraction, least: int) -> int:
    """floor(log2 |number|), at least `least`; a small number for zero."""
    if number == 0:
        return -5000
    exponent = abs(number).numerator.bit_length() - abs(number).denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(number)
    return max(exponent, least)


def cut(number: Fraction, unit: Fraction) -> Fraction:
    """The number cut off to a multiple of a unit, toward zero."""
    count = floor(abs(number) / unit) * unit
    return -count if number < 0 else count


def sum_of(terms: Sequence[tuple[Fraction, int]], start: np.float32, bits: int) -> np.float32:
    """The terms, each with its exponent, and the accumulator: cut off and added, and again cut."""
    accumulator = Fraction(float(start))
    largest = max([exponent_of(accumulator, -126), *(e for t, e in terms if t)])
    unit = Fraction(2) ** (largest - bits)
    total = sum((cut(term, unit) for term, _ in terms), cut(accumulator, unit))
    return to_f32(total)


def to_f32(number: Fraction) -> np.float32:
    """The number cut off to 24 bits."""
    unit = Fraction(2) ** (exponent_of(number, -126) - 23)
    return np.float32(float(cut(number, unit)))


def product_terms(
    kinds: tuple[str, str], a: Iterable[int], b: Iterable[int], scale: Fraction = Fraction(1)
) -> list[tuple[Fraction, int]]:
    """The products of two rows of patterns, times a power of two, and the sums of exponents."""
    least = FORMATS[kinds[0]][3], FORMATS[kinds[1]][3]
    by = exponent_of(scale, -5000)
    factors = [(value(kinds[0], x), value(kinds[1], y)) for x, y in zip(a, b, strict=True)]
    return [
        (x * y * scale, exponent_of(x, least[0]) + exponent_of(y, least[1]) + by)
        for x, y in factors
    ]
