"""Logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.8)."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import cast

import numpy as np

from ....jit.ufunc import elementwise
from ...ptx.kernel import Instruction
from .compare import COMBINE
from .lanes import DTYPES, Array
from .rule import Family, Rule, same

INTEGERS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64))


def _bits(kind: str) -> int:
    return 8 * DTYPES[kind].itemsize


def _shift(instruction: Instruction) -> Rule:
    kind = instruction.type
    function = np.left_shift if instruction.opcode == "shl" else np.right_shift
    limit = np.uint32(_bits(kind))

    def shift(a: Array, amount: Array) -> Array:
        return cast(Array, function(a, np.minimum(amount, limit).astype(a.dtype)))

    return Rule((kind, "u32"), (kind,), shift)


def _funnel(instruction: Instruction) -> Rule:
    is_left, clamp = "l" in instruction.modifiers, "clamp" in instruction.modifiers

    def funnel(low: Array, high: Array, amount: Array) -> Array:
        count = (np.minimum(amount, 32) if clamp else amount & 31).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        back = np.uint64(32 if is_left else 0)
        moved: Array = (np.left_shift if is_left else np.right_shift)(both, count) >> back
        return moved.astype(np.uint32)

    return Rule(("b32", "b32", "u32"), ("b32",), funnel)


def _count(instruction: Instruction) -> Rule:
    kind = instruction.type

    def population(a: Array) -> Array:
        ones: Array = np.bitwise_count(a)
        return ones.astype(np.uint32)

    def leading(a: Array) -> Array:
        return _bit_function("ctlz", kind)(a).astype(np.uint32)

    return Rule((kind,), ("u32",), population if instruction.opcode == "popc" else leading)


@cache
def _bit_function(name: str, kind: str) -> Callable[[Array], Array]:
    """Return one of LLVM's bit functions of an integer; `ctlz` counts leading zeros."""
    whole, flag = f"i{_bits(kind)}", name == "ctlz"
    body = f"%y0 = call {whole} @llvm.{name}.{whole}({whole} %x0{', i1 false' * flag})"
    declaration = f"declare {whole} @llvm.{name}.{whole}({whole}{', i1' * flag})\n"
    code = DTYPES[kind].str[1:]
    return elementwise(f"{name}_{kind}", (code,), (code,), body, declaration)


def _reverse(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind,), (kind,), _bit_function("bitreverse", kind))


def _amount(count: Array, bits: int) -> Array:
    """Return a position or length as int64: the low byte in 32-bit instructions, all bits in 64-bit
    ones."""
    return (count & np.uint32(0xFF)).astype(np.int64) if bits == 32 else count.astype(np.int64)


def _ones(count: Array) -> Array:
    """Return int64 with the low `count` bits set; all for 64."""
    width = np.clip(count, 0, 64)
    return np.where(width == 64, np.int64(-1), (np.int64(1) << np.minimum(width, 63)) - 1)


def _extract(instruction: Instruction) -> Rule:
    """`bfe`: bits of the field beyond the number are its sign (zero for unsigned types)."""
    kind = instruction.type
    bits, signed = _bits(kind), kind[0] == "s"

    def extract(a: Array, position: Array, length: Array) -> Array:
        start, count = _amount(position, bits), _amount(length, bits)
        wide = a.view(f"u{bits // 8}").astype(np.uint64).view(np.int64)
        ones = _ones(np.minimum(count, bits - start))
        field = np.right_shift(wide, np.minimum(start, 63)) & ones
        if signed:
            top = np.clip(start + count - 1, 0, bits - 1)
            sign = (np.right_shift(wide, top) & 1).astype(np.bool_) & (count > 0)
            field = np.where(sign, field | ~ones, field)
        return field.astype(f"i{bits // 8}").view(DTYPES[kind])

    return Rule((kind, "u32", "u32"), (kind,), extract)


def _insert(instruction: Instruction) -> Rule:
    kind = instruction.type
    bits = _bits(kind)

    def insert(a: Array, b: Array, position: Array, length: Array) -> Array:
        start, count = _amount(position, bits), _amount(length, bits)
        field = np.left_shift(_ones(count), np.minimum(start, 63))
        moved = np.left_shift(a.astype(np.int64), np.minimum(start, 63))
        under = b.astype(np.int64)
        merged = (moved & field) | (under & ~field)
        return np.where(start < bits, merged, under).astype(DTYPES[kind])

    return Rule((kind, kind, "u32", "u32"), (kind,), insert)


_SELECTORS: Mapping[str, Callable[[Array, int], Array]] = {
    "f4e": lambda c, byte: c + np.uint64(byte),
    "b4e": lambda c, byte: (c - np.uint64(byte)) & np.uint64(7),
    "rc8": lambda c, byte: c,
    "ecl": lambda c, byte: np.maximum(c, np.uint64(byte)),
    "ecr": lambda c, byte: np.minimum(c, np.uint64(byte)),
    "rc16": lambda c, byte: ((c & np.uint64(1)) << np.uint64(1)) + np.uint64(byte & 1),
}
"""The source byte (0 to 7) of a result byte, by the low two bits of the selector."""


def _permute(instruction: Instruction) -> Rule:
    mode = _SELECTORS.get(instruction.modifiers[-1])

    def permute(a: Array, b: Array, selector: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), dtype=np.uint32)
        for byte in range(4):
            choice = (selector >> np.uint32(4 * byte)).astype(np.uint64) & np.uint64(15)
            if mode is not None:
                choice = mode(selector.astype(np.uint64) & np.uint64(3), byte)
            value = (both >> ((choice & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            sign = np.where(value > 127, np.uint64(0xFF), np.uint64(0))
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


def _lop3(instruction: Instruction) -> Rule:
    combine = next((COMBINE[m] for m in instruction.modifiers if m in COMBINE), None)

    def lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
        return logic3(a, b, c, int(table.flat[0]) & 0xFF)

    def with_predicate(a: Array, b: Array, c: Array, table: Array, q: Array) -> tuple[Array, Array]:
        result = lop3(a, b, c, table)
        return result, combine(result != 0, q) if combine else result

    sources = ("b32", "b32", "b32", "u32")
    if combine is None:
        return Rule(sources, ("b32",), lop3)
    return Rule((*sources, "pred"), ("b32", "pred"), with_predicate)


def _logical_not(instruction: Instruction) -> Rule:
    kind = instruction.type
    if kind == "pred":
        return Rule((kind,), (kind,), np.logical_not)
    return Rule((kind,), (kind,), np.bitwise_not)


def _conditional_not(a: Array) -> Array:
    zero: Array = a == 0
    return zero.astype(a.dtype)


def _find_leading(instruction: Instruction) -> Rule:
    """`bfind`: return the position of the highest bit that differs from the sign; all ones if none
    does."""
    kind = instruction.type
    bits, none = np.uint32(_bits(kind)), np.uint32(0xFFFF_FFFF)
    zeros_above = _bit_function("ctlz", kind)
    amount = "shiftamt" in instruction.modifiers

    def find(a: Array) -> Array:
        magnitude = np.where(a < 0, ~a, a) if kind[0] == "s" else a
        above = zeros_above(magnitude).astype(np.uint32)
        return np.where(above == bits, none, above) if amount else bits - np.uint32(1) - above

    return Rule((kind,), ("u32",), find)


def _find_nth(mask: Array, base: Array, offset: Array) -> Array:
    """`fns`: search from bit `base`, up or down by the sign of `offset`, for the n-th one bit."""
    shape = np.broadcast_shapes(mask.shape, base.shape, offset.shape)
    step = np.where(offset < 0, -1, 1)
    countdown = np.broadcast_to(np.maximum(np.abs(offset.astype(np.int64)), 1), shape).copy()
    place = np.broadcast_to(base.astype(np.int64), shape).copy()
    positions: Array = np.full(shape, 0xFFFFFFFF, dtype=np.uint32)
    for _ in range(32):
        inside = (place >= 0) & (place < 32)
        is_one = inside & ((mask >> (place & 31).astype(np.uint32)) & np.uint32(1)).astype(np.bool_)
        countdown -= is_one
        positions = np.where(is_one & (countdown == 0), place.astype(np.uint32), positions)
        place += np.where(offset == 0, 32, step)
    return positions


def _extend(instruction: Instruction) -> Rule:
    """`szext`: zero- or sign-extend the low bits; the second source is their number."""
    wrap, signed = "wrap" in instruction.modifiers, instruction.type == "s32"

    def extend(a: Array, count: Array) -> Array:
        keep = (count & np.uint32(31) if wrap else np.minimum(count, 32)).astype(np.int64)
        up = 64 - keep
        wide = a.astype(np.int64) << np.minimum(up, 63)
        down = wide >> np.minimum(up, 63)
        if not signed:
            down = down & ((np.int64(1) << keep) - 1)
        return np.where(keep == 0, 0, down).astype(np.uint32).view(a.dtype)

    return Rule((instruction.type, "u32"), (instruction.type,), extend)


def _mask(instruction: Instruction) -> Rule:
    """`bmsk`: return a run of ones from a first bit on."""
    wrap = "wrap" in instruction.modifiers

    def limit(a: Array) -> Array:
        return (a & np.uint32(31) if wrap else np.minimum(a, 32)).astype(np.uint64)

    def mask(start: Array, count: Array) -> Array:
        one = np.uint64(1)
        ones: Array = ((one << limit(count)) - one) << limit(start)
        return ones.astype(np.uint32)

    return Rule(("b32", "b32"), ("b32",), mask)


FAMILY = Family(
    "logic, shifts and bit fields",
    {
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
        "bfind": _find_leading,
        "fns": lambda instruction: Rule(("b32", "u32", "s32"), ("b32",), _find_nth),
        "szext": _extend,
        "bmsk": _mask,
        "prmt": _permute,
        "lop3": _lop3,
    },
    INTEGERS | {"pred"},
    "integer",
)
