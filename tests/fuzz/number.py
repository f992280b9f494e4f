"""Numbers of PTX as bits, one at a time, in plain Python: the arithmetic of the reference.

Floats are exact fractions rounded once, to the nearest, ties to even.
"""

import math
import struct
from fractions import Fraction

Bits = int
F32_NAN = 0x7FFFFFFF
F64_NAN = 0xFFF8000000000000


def mask(width: int) -> Bits:
    """All ones."""
    return (1 << width) - 1


def signed(value: Bits, width: int) -> int:
    """The number that bits stand for in two's complement."""
    return value - (value >> width - 1 << width)


def is_nan(value: Bits, width: int) -> bool:
    """Whether bits stand for no number."""
    fraction = 23 if width == 32 else 52
    return value & mask(width - 1) > mask(width - 1 - fraction) << fraction


def to_float(value: Bits, width: int) -> float:
    """The number that bits stand for, as Python has it."""
    return float(
        struct.unpack("<f" if width == 32 else "<d", value.to_bytes(width // 8, "little"))[0]
    )


def from_float(number: float, width: int) -> Bits:
    """The bits of a number that has them, or of an infinity or zero with its sign."""
    return int.from_bytes(struct.pack("<f" if width == 32 else "<d", number), "little")


def rounded(exact: Fraction, negative_zero: bool, width: int) -> Bits:
    """The bits of the nearest float; `negative_zero` is the sign that a zero gets."""
    digits, least, most = (24, -149, 128) if width == 32 else (53, -1074, 1024)
    sign = exact < 0 or (exact == 0 and negative_zero)
    size = abs(exact)
    if size == 0:
        return int(sign) << width - 1
    exponent = math.floor(math.log2(size.numerator) - math.log2(size.denominator))
    exponent += (size >= Fraction(2) ** (exponent + 1)) - (size < Fraction(2) ** exponent)
    unit = max(exponent - digits + 1, least)
    scaled = size / Fraction(2) ** unit
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    if whole * Fraction(2) ** unit >= Fraction(2) ** most:
        return (int(sign) << width - 1) | from_float(math.inf, width)
    return (int(sign) << width - 1) | from_float(math.ldexp(whole, unit), width)


def no_number(sources: tuple[Bits, ...], width: int) -> Bits:
    """The NaN that an operation on these sources gives.

    As an H200 has it (docs/instructions.md): f32 has one; f64 keeps the payload of the second
    source, else the third's, else the first's.
    """
    if width == 32:
        return F32_NAN
    order = (*sources[1:2], *sources[2:3], *sources[:1])
    for source in order:
        if is_nan(source, 64):
            return source | 1 << 51
    return F64_NAN


def add(a: Bits, b: Bits, width: int) -> Bits:
    """The sum of two floats."""
    x, y = to_float(a, width), to_float(b, width)
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y) and x != y):
        return no_number((a, b), width)
    if math.isinf(x) or math.isinf(y):
        return a if math.isinf(x) else b
    both_negative = bool(a >> width - 1 and b >> width - 1)
    return rounded(Fraction(x) + Fraction(y), both_negative and x == y == 0, width)


def multiply(a: Bits, b: Bits, width: int) -> Bits:
    """The product of two floats."""
    x, y = to_float(a, width), to_float(b, width)
    sign = bool((a ^ b) >> width - 1)
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and y == 0) or (x == 0 and math.isinf(y)):
        return no_number((a, b), width)
    if math.isinf(x) or math.isinf(y):
        return (int(sign) << width - 1) | from_float(math.inf, width)
    return rounded(Fraction(x) * Fraction(y), sign, width)


def fuse(a: Bits, b: Bits, c: Bits, width: int) -> Bits:
    """The product of two floats plus a third, rounded once."""
    x, y, z = (to_float(value, width) for value in (a, b, c))
    sign = bool((a ^ b) >> width - 1)
    endless = math.isinf(x) or math.isinf(y)
    if any(map(math.isnan, (x, y, z))) or (endless and (x == 0 or y == 0)):
        return no_number((a, b, c), width)
    if endless:
        product = (int(sign) << width - 1) | from_float(math.inf, width)
        return no_number((), width) if math.isinf(z) and product != c else product
    if math.isinf(z):
        return c
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    zeros = (x == 0 or y == 0) and z == 0
    return rounded(exact, zeros and sign and bool(c >> width - 1), width)


def pick(a: Bits, b: Bits, least: bool, width: int) -> Bits:
    """The smaller or larger of two floats; a number before no number; -0 below 0."""
    if is_nan(a, width) and is_nan(b, width):
        return F32_NAN if width == 32 else no_number((a, b), width)
    if is_nan(a, width) or is_nan(b, width):
        return b if is_nan(a, width) else a
    x, y = to_float(a, width), to_float(b, width)
    if x == y:
        return (a | b) if least else (a & b)
    return a if (x < y) == least else b


def whole(value: Bits, width: int, to: int, is_signed: bool) -> Bits:
    """A float cut off to an integer of `to` bits, held in its range.

    No number is 0 as a narrow integer; as one of 64 bits, or from f64, the lowest signed pattern.
    """
    low, high = (-(1 << to - 1), (1 << to - 1) - 1) if is_signed else (0, mask(to))
    number = to_float(value, width)
    if math.isnan(number):
        return 1 << to - 1 if to == 64 or width == 64 else 0
    if math.isinf(number):
        return (high if number > 0 else low) & mask(to)
    return max(low, min(high, math.trunc(number))) & mask(to)


def divide(a: int, b: int) -> tuple[int, int] | None:
    """Quotient towards zero and remainder; None where the divisor is 0."""
    if b == 0:
        return None
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b
