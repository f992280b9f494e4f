"""Integer arithmetic (PTX ISA 9.7.1)."""

from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np

from ....jit.numpy_tracer import elementwise_of, statement
from ....jit.ufunc import elementwise
from ...ptx.kernel import Instruction
from .bits import INTEGERS
from .lanes import DTYPES, Array
from .rule import Family, Rule, same

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _bits(kind: str) -> int:
    return 8 * DTYPES[kind].itemsize


def _multiply_wide(kind: str, a: Array, b: Array) -> Array:
    return np.multiply(a, b, dtype=DTYPES[_WIDE[kind]])


@cache
def _multiply_high(kind: str) -> Callable[..., Array]:
    bits, grow = _bits(kind), "sext" if kind[0] == "s" else "zext"
    code = DTYPES[kind].str[1:]
    body = f"""%a = {grow} i{bits} %x0 to i{2 * bits}
  %b = {grow} i{bits} %x1 to i{2 * bits}
  %p = mul i{2 * bits} %a, %b
  %h = lshr i{2 * bits} %p, {bits}
  %y0 = trunc i{2 * bits} %h to i{bits}"""
    return elementwise(f"high_{kind}", (code, code), (code,), body)


def product(instruction: Instruction) -> tuple[str, Callable[[Array, Array], Array]]:
    """Return the type and the function of the product in a `mul` or `mad`: low, high or wide."""
    kind = instruction.type
    if "wide" in instruction.modifiers:
        return _WIDE[kind], lambda a, b: _multiply_wide(kind, a, b)
    if "hi" in instruction.modifiers:
        return kind, _multiply_high(kind)
    return kind, np.multiply


def _mul(instruction: Instruction) -> Rule:
    kind = instruction.type
    result, multiply = product(instruction)
    return Rule((kind, kind), (result,), multiply)


def _mad(instruction: Instruction) -> Rule:
    kind = instruction.type
    result, multiply = product(instruction)
    add = _addition(instruction)
    return Rule((kind, kind, result), (result,), lambda a, b, c: add(multiply(a, b), c))


def _addition(instruction: Instruction) -> Callable[[Array, Array], Array]:
    if "sat" not in instruction.modifiers:
        return cast(
            Callable[[Array, Array], Array], np.subtract if _is_sub(instruction) else np.add
        )
    return _saturated(np.subtract if _is_sub(instruction) else np.add)


def _is_sub(instruction: Instruction) -> bool:
    return instruction.opcode == "sub"


def _saturated(exact: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    """Return the sum or difference of s32, clamped to s32 (PTX has no other)."""
    limits = np.iinfo(np.int32)

    def clamped(a: Array, b: Array) -> Array:
        wide = exact(a, b, dtype=np.int64)
        return np.clip(wide, limits.min, limits.max).astype(np.int32)

    return clamped


def _sum(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind, kind), (kind,), _addition(instruction))


def _low_24(a: Array) -> Array:
    low: Array = (a << a.dtype.type(8)) >> a.dtype.type(8)
    return low


def _product_24(instruction: Instruction) -> Callable[[Array, Array], Array]:
    """`mul24`: return bits 0 to 31, or 16 to 47, of the product of two 24-bit numbers."""
    kind = instruction.type
    double = DTYPES[_WIDE[kind]]
    shift = 16 if "hi" in instruction.modifiers else 0

    def multiply(a: Array, b: Array) -> Array:
        wide = np.multiply(_low_24(a), _low_24(b), dtype=double)
        product_bits: Array = wide >> wide.dtype.type(shift)
        return product_bits.astype(DTYPES[kind])

    return multiply


def _mul24(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind, kind), (kind,), _product_24(instruction))


def _mad24(instruction: Instruction) -> Rule:
    kind = instruction.type
    multiply, add = _product_24(instruction), _addition(instruction)
    return Rule((kind,) * 3, (kind,), lambda a, b, c: add(multiply(a, b), c))


def _lanes_of_word(a: Array, signed: bool, width: int, place: int) -> Array:
    """Return one of the 8- or 16-bit numbers of a word, as int64."""
    up = np.uint32(32 - width * (place + 1))
    word = a << up
    return ((word.view(np.int32) if signed else word) >> (32 - width)).astype(np.int64)


def _dot(instruction: Instruction) -> Rule:
    """`dp4a`, `dp2a`: add up the products of bytes with bytes (or halves with two bytes)."""
    first_type, second_type = instruction.types
    signed = [kind[0] == "s" for kind in (first_type, second_type)]
    four = instruction.opcode == "dp4a"
    first = 2 if "hi" in instruction.modifiers else 0
    result = "s32" if any(signed) else "u32"

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        for k in range(4 if four else 2):
            factor = _lanes_of_word(a, signed[0], 8 if four else 16, k)
            total = total + factor * _lanes_of_word(b, signed[1], 8, first + k)
        return total.astype(np.uint32).view(DTYPES[result])

    return Rule(("b32", "b32", result), (result,), dot)


def _division(instruction: Instruction) -> Rule:
    """`div`, `rem`: divide toward zero as C does; by 0 return all ones, as the hardware's code
    does."""
    kind = instruction.type
    return Rule((kind, kind), (kind,), _divide(instruction.opcode, kind))


@cache
def _divide(opcode: str, kind: str) -> Callable[..., Array]:
    """Return the function. The lowest number by -1 is a special case, because processors trap at
    it."""
    dtype, sign = DTYPES[kind], "s" if kind[0] == "s" else "u"
    text = f"{sign}{opcode} i{_bits(kind)} {{}}, {{}}"

    def divide(a: Array, b: Array) -> Array:
        is_minus = b == (-1 if sign == "s" else 0)
        safe = np.where((b == 0) | is_minus, dtype.type(1), b)
        result = statement(text, dtype.str, a, safe)
        result = np.where(is_minus, -a if opcode == "div" else dtype.type(0), result)
        return np.where(b == 0, ~dtype.type(0), result)

    code = dtype.str[1:]
    return elementwise_of(f"{opcode}_{kind}", divide, (code, code), code)


def _absolute(a: Array) -> Array:
    return np.where(a < 0, -a, a)


def _distance(a: Array, b: Array, c: Array) -> Array:
    return c + np.where(a < b, b - a, a - b)


def _extreme(instruction: Instruction) -> Rule:
    kind = instruction.type
    pick = np.minimum if instruction.opcode == "min" else np.maximum
    if "relu" not in instruction.modifiers:
        return Rule((kind, kind), (kind,), pick)
    zero = DTYPES[kind].type(0)
    return Rule((kind, kind), (kind,), lambda a, b: np.maximum(pick(a, b), zero))


FAMILY = Family(
    "integer arithmetic",
    {
        "add": _sum,
        "sub": _sum,
        "mul": _mul,
        "mad": _mad,
        "mul24": _mul24,
        "mad24": _mad24,
        "div": _division,
        "rem": _division,
        "abs": same(1, _absolute),
        "neg": same(1, np.negative),
        "min": _extreme,
        "max": _extreme,
        "sad": same(3, _distance),
        "dp4a": _dot,
        "dp2a": _dot,
    },
    INTEGERS,
    "integer",
)
