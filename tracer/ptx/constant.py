"""Parse literals and constant expressions (PTX ISA, 4.5): C's operators on 64-bit integers."""

import operator
import struct
from collections.abc import Callable, Mapping

from .kernel import Immediate
from .lexer import Cursor

_MASK = (1 << 64) - 1


def _divide(lhs: int, right: int) -> int:
    quotient = abs(lhs) // abs(right)
    return quotient if (lhs < 0) == (right < 0) else -quotient


_OPERATORS: Mapping[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">": (7, lambda a, b: int(a > b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << (b & 63)),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, lambda a, b: a - b * _divide(a, b)),
}
"""Precedence and function of each binary operator."""

_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda a: int(not a),
}


def integer_literal(text: str) -> int | None:
    """Parse `12`, `0x1F`, `017`, `0b101`, each with or without `U`; return None for anything else.

    PTX integers have at most 64 bits.
    """
    digits = text[:-1] if text[-1:] in ("U", "u") else text
    if not digits.isalnum():
        return None
    is_octal = digits[:1] == "0" and len(digits) > 1
    base = {"0x": 16, "0X": 16, "0b": 2, "0B": 2}.get(digits[:2], 8 if is_octal else 10)
    try:
        number = int(digits[2:] if base in (2, 16) else digits, base)
    except ValueError:
        return None
    return number if number <= _MASK else None


def float_literal(text: str) -> Immediate | None:
    """Parse `0f3F800000`, `0d3FF0000000000000`, `1.5`, `2e-3`; return None for anything else."""
    try:
        if text[:2] in ("0f", "0F") and len(text) == 10:
            return Immediate(int(text[2:], 16), "f32")
        if text[:2] in ("0d", "0D") and len(text) == 18:
            return Immediate(int(text[2:], 16), "f64")
        if (text[:1].isdigit() or text[:1] == ".") and set(text) & set(".eE"):
            return Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64")
    except ValueError:
        pass
    return None


def read_constant(cursor: Cursor) -> Immediate:
    """Read a floating-point literal with an optional sign, or an integer expression."""
    start = cursor.index
    negative = cursor.accept("-")
    token = cursor.next
    if integer_literal(token) is None and (number := float_literal(token)) is not None:
        cursor.take()
        sign = 1 << (31 if number.kind == "f32" else 63)
        return Immediate(number.bits ^ sign, number.kind) if negative else number
    cursor.index = start
    return Immediate(read_integer(cursor))


def read_integer(cursor: Cursor) -> int:
    """Read an integer expression."""
    texts = cursor.texts
    value = integer_literal(texts[cursor.index])
    if value is not None and texts[cursor.index + 1] in (",", ";", "}", "]", ")"):
        cursor.index += 1
        return value
    return _ternary(cursor)


def _ternary(cursor: Cursor) -> int:
    condition = _binary(cursor, 1)
    if not cursor.accept("?"):
        return condition
    yes = _ternary(cursor)
    cursor.expect(":")
    no = _ternary(cursor)
    return yes if condition else no


def _binary(cursor: Cursor, strength: int) -> int:
    lhs = _unary(cursor)
    while cursor.next in _OPERATORS:
        binds, apply = _OPERATORS[cursor.next]
        if binds < strength:
            break
        sign, at = cursor.take(), cursor.index
        right = _binary(cursor, binds + 1)
        if sign in "/%" and right == 0:
            raise cursor.error("a divisor that is not 0", index=at)
        lhs = _wrap(apply(lhs, right))
    return lhs


def _unary(cursor: Cursor) -> int:
    if cursor.next in _UNARY:
        return _UNARY[cursor.take()](_unary(cursor))
    if cursor.accept("("):
        if cursor.next in (".s64", ".u64"):
            cast = cursor.take()
            cursor.expect(")")
            value = _unary(cursor) & _MASK
            return value - (value >> 63 << 64) if cast == ".s64" else value
        value = _ternary(cursor)
        cursor.expect(")")
        return value
    if cursor.accept("WARP_SZ"):
        return 32
    number = integer_literal(cursor.next)
    if number is None:
        raise cursor.error("a number")
    cursor.take()
    return number


def _wrap(value: int) -> int:
    """Return `value` unchanged if it fits in 64 bits, signed or unsigned; else wrap it."""
    return value if -(1 << 63) <= value <= _MASK else value & _MASK
