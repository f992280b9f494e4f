"""Integer arithmetic, shifts and bit fields (PTX ISA 9.7.1, 9.7.8)."""

from typing import cast

import numpy as np

from ...ptx.kernel import Instruction
from ..array import DTYPES, Array
from .rule import Rule, Table, same

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _bits(kind: str) -> int:
    return 8 * DTYPES[kind].itemsize


def _is_integer(kind: str) -> bool:
    return kind[:1] in ("u", "s", "b") and "x" not in kind and kind[1:].isdigit()


def _multiply_wide(kind: str, a: Array, b: Array) -> Array:
    return np.multiply(a, b, dtype=DTYPES[_WIDE[kind]])


def _multiply_high(kind: str, a: Array, b: Array) -> Array:
    if kind in _WIDE:
        return (_multiply_wide(kind, a, b) >> _bits(kind)).astype(DTYPES[kind])
    high = _multiply_high_u64(a.view(np.uint64), b.view(np.uint64))
    if kind == "s64":
        high = high - np.where(a < 0, b.view(np.uint64), np.uint64(0))
        high = high - np.where(b < 0, a.view(np.uint64), np.uint64(0))
    return high.view(DTYPES[kind])


def _multiply_high_u64(a: Array, b: Array) -> Array:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    carry = (a_low * b_high + (middle & low)) >> half
    return cast(Array, a_high * b_high + (middle >> half) + carry)


def _mul(instruction: Instruction) -> Rule | None:
    kind = instruction.type
    if not _is_integer(kind):
        return None
    if "wide" in instruction.modifiers:
        return Rule((kind, kind), (_WIDE[kind],), lambda a, b: _multiply_wide(kind, a, b))
    if "hi" in instruction.modifiers:
        return Rule((kind, kind), (kind,), lambda a, b: _multiply_high(kind, a, b))
    return Rule((kind, kind), (kind,), np.multiply)


def _mad(instruction: Instruction) -> Rule | None:
    product = _mul(instruction)
    if product is None:
        return None
    result = product.results[0]
    multiply = product.compute
    return Rule((*product.sources, result), (result,), lambda a, b, c: multiply(a, b) + c)


def truncated_quotient(a: Array, b: Array) -> Array:
    """Divide as C does, toward zero; x / 0 gives all ones, as the hardware's sequence does."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    quotient = (a if a.dtype.kind == "u" else a - np.fmod(a, safe)) // safe
    return np.where(zero, ~a.dtype.type(0), quotient)


def truncated_remainder(a: Array, b: Array) -> Array:
    """Take C's remainder, of the sign of `a`; x % 0 gives x."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def _shift(instruction: Instruction) -> Rule:
    kind = instruction.type
    function = np.left_shift if instruction.opcode == "shl" else np.right_shift
    limit = np.uint32(_bits(kind))

    def shift(a: Array, amount: Array) -> Array:
        return cast(Array, function(a, np.minimum(amount, limit).astype(a.dtype)))

    return Rule((kind, "u32"), (kind,), shift)


def _funnel(instruction: Instruction) -> Rule:
    left, clamp = "l" in instruction.modifiers, "clamp" in instruction.modifiers

    def funnel(low: Array, high: Array, amount: Array) -> Array:
        count = (np.minimum(amount, 32) if clamp else amount & 31).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        back = np.uint64(32 if left else 0)
        moved: Array = (np.left_shift if left else np.right_shift)(both, count) >> back
        return moved.astype(np.uint32)

    return Rule(("b32", "b32", "u32"), ("b32",), funnel)


def _count(instruction: Instruction) -> Rule:
    kind = instruction.type

    def population(a: Array) -> Array:
        ones: Array = np.bitwise_count(a)
        return ones.astype(np.uint32)

    def leading(a: Array) -> Array:
        return np.uint32(_bits(kind)) - bit_length(a)

    return Rule((kind,), ("u32",), population if instruction.opcode == "popc" else leading)


def bit_length(a: Array) -> Array:
    """Return the place of the highest one bit, counted from 1, as uint32; 0 for 0."""
    bits = a.view(f"u{a.dtype.itemsize}")
    for step in (1, 2, 4, 8, 16, 32):
        if step < 8 * a.dtype.itemsize:
            bits = bits | (bits >> bits.dtype.type(step))
    length: Array = np.bitwise_count(bits)
    return length.astype(np.uint32)


def _reverse(instruction: Instruction) -> Rule:
    kind = instruction.type

    def reverse(a: Array) -> Array:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, a.dtype.itemsize)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., ::-1]
        return np.packbits(bits, axis=-1, bitorder="little").view(a.dtype).reshape(a.shape)

    return Rule((kind,), (kind,), reverse)


def _extract(instruction: Instruction) -> Rule:
    kind = instruction.type
    bits, signed = _bits(kind), kind[0] == "s"

    def extract(a: Array, position: Array, length: Array) -> Array:
        start = (position & 0xFF).astype(np.int64)
        count = (length & 0xFF).astype(np.int64)
        wide = a.astype(np.int64) if signed else a.view(f"u{bits // 8}").astype(np.uint64)
        shifted = np.right_shift(wide, np.minimum(start, 63).astype(wide.dtype))
        shifted = np.where(start >= bits, wide.dtype.type(0), shifted)
        keep = np.minimum(count, 64)
        ones = np.where(keep >= 64, -1, (np.int64(1) << np.minimum(keep, 63)) - 1)
        field = shifted.view(np.int64) & ones
        if signed:
            field = _sign_extend(a.astype(np.int64), field, start, count, bits, ones)
        return field.astype(f"i{bits // 8}").view(DTYPES[kind])

    return Rule((kind, "u32", "u32"), (kind,), extract)


def _sign_extend(
    a: Array, field: Array, start: Array, count: Array, bits: int, ones: Array
) -> Array:
    top = np.minimum(start + count - 1, bits - 1)
    sign = (np.right_shift(a, np.maximum(top, 0)) & 1).astype(np.bool_) & (count > 0)
    return np.where(sign, field | ~ones, field)


def _insert(instruction: Instruction) -> Rule:
    kind = instruction.type
    bits = _bits(kind)

    def insert(a: Array, b: Array, position: Array, length: Array) -> Array:
        start = (position & 0xFF).astype(np.uint64)
        count = (length & 0xFF).astype(np.uint64)
        one, all_ones = np.uint64(1), ~np.uint64(0)
        keep = np.where(count >= 64, all_ones, (one << np.minimum(count, 63)) - one)
        field = np.left_shift(keep, np.minimum(start, np.uint64(64)))
        moved = np.left_shift(a.astype(np.uint64), np.minimum(start, np.uint64(64)))
        merged = (moved & field) | (b.astype(np.uint64) & ~field)
        inside = start < np.uint64(bits)
        return np.where(inside, merged, b.astype(np.uint64)).astype(DTYPES[kind])

    return Rule((kind, kind, "u32", "u32"), (kind,), insert)


def _permute(instruction: Instruction) -> Rule | None:
    if len(instruction.modifiers) != 1:
        return None

    def permute(a: Array, b: Array, selector: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), dtype=np.uint32)
        for byte in range(4):
            choice = (selector >> np.uint32(4 * byte)).astype(np.uint64)
            value = (both >> ((choice & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            sign = np.where(value & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
            value = np.where(choice & np.uint64(8), sign, value)
            result |= (value << np.uint64(8 * byte)).astype(np.uint32)
        return result

    return Rule(("b32", "b32", "b32"), ("b32",), permute)


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Combine three words by a truth table of eight bits (PTX ISA, lop3)."""
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), dtype=a.dtype)
    for row in range(8):
        if table >> row & 1:
            term = a if row & 4 else ~a
            term = term & (b if row & 2 else ~b)
            result |= term & (c if row & 1 else ~c)
    return result


def _lop3(instruction: Instruction) -> Rule | None:
    if instruction.type != "b32" or len(instruction.modifiers) != 1:
        return None

    def lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
        return logic3(a, b, c, int(table.flat[0]) & 0xFF)

    return Rule(("b32", "b32", "b32", "u32"), ("b32",), lop3)


def _absolute(a: Array) -> Array:
    return np.where(a < 0, -a, a)


def _distance(a: Array, b: Array, c: Array) -> Array:
    return c + np.where(a < b, b - a, a - b)


def _logical_not(instruction: Instruction) -> Rule:
    kind = instruction.type
    if kind == "pred":
        return Rule((kind,), (kind,), np.logical_not)
    return Rule((kind,), (kind,), np.bitwise_not)


def _conditional_not(a: Array) -> Array:
    zero: Array = a == 0
    return zero.astype(a.dtype)


TABLE: Table = {
    "add": same(2, np.add),
    "sub": same(2, np.subtract),
    "mul": _mul,
    "mad": _mad,
    "div": same(2, truncated_quotient),
    "rem": same(2, truncated_remainder),
    "abs": same(1, _absolute),
    "neg": same(1, np.negative),
    "min": same(2, np.minimum),
    "max": same(2, np.maximum),
    "sad": same(3, _distance),
    "and": same(2, np.bitwise_and),
    "or": same(2, np.bitwise_or),
    "xor": same(2, np.bitwise_xor),
    "not": _logical_not,
    "cnot": same(1, _conditional_not),
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "popc": _count,
    "clz": _count,
    "brev": _reverse,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "lop3": _lop3,
}

TYPES = frozenset({*(f"{k}{b}" for k in "bus" for b in (8, 16, 32, 64)), "pred"})
