"""Conversion between types (PTX ISA 9.7.9.21, 9.7.9.22): the rule for the types of an instruction.

Where the ISA leaves results open they are the hardware's: a NaN becomes 0 as a narrow integer, and
the lowest signed pattern as a 64-bit one or from f64.
"""

from collections.abc import Callable

import numpy as np

from ...ptx.kernel import Instruction
from .format import (
    FLOATS,
    FORMATS,
    TO_WHOLE,
    Reformat,
    reformat,
    reformat_at_random,
    reformat_integer,
    storage,
)
from .lanes import DTYPES, Array
from .rule import Family, Rule

_PAIRS = {
    **{"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2"},
    **{"e2m1x2": "e2m1", "e2m3x2": "e2m3", "e3m2x2": "e3m2"},
}
_FOURS = {f"{kind}x4": kind for kind in ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")}
_MODES = ("rn", "rz", "rm", "rp", "rna")


def _cvt(instruction: Instruction) -> Rule | None:
    types, modifiers = instruction.types, instruction.modifiers
    if "pack" in modifiers:
        return _pack(instruction)
    if len(types) != 2:
        return None
    to, source = types
    if "rs" in modifiers:
        return _at_random(instruction, to)
    if "ue8m0x2" in types:
        return _to_exponents(instruction, source) if to == "ue8m0x2" else _from_exponents()
    if to in _PAIRS or source in _PAIRS:
        return _pair(instruction, to, source)
    if source in FLOATS and to in FLOATS:
        return _float_to_float(instruction, to, source)
    if source in FLOATS:
        return _float_to_integer(instruction, to, source)
    if to in FLOATS:
        return _integer_to_float(instruction, to, source)
    return Rule((source,), (to,), _integer_to_integer(instruction, to))


def _form(instruction: Instruction, to: str, source: str) -> Reformat:
    """Read the modifiers. An H200 keeps subnormal f32 in conversions to f16, with or without
    `.ftz`: rounded up, they become the least f16."""
    modifiers = instruction.modifiers
    return Reformat(
        source=source,
        to=to,
        mode=next((m for m in modifiers if m in _MODES), "rn"),
        whole=next((m for m in modifiers if m in TO_WHOLE), ""),
        ftz="ftz" in modifiers and (to, source) != ("f16", "f32"),
        sat="sat" in modifiers,
        relu="relu" in modifiers,
        finite="satfinite" in modifiers,
    )


def _float_to_float(instruction: Instruction, to: str, source: str) -> Rule:
    modifiers = instruction.modifiers
    if (to, source) == ("f32", "bf16") and "ftz" not in modifiers and "sat" not in modifiers:
        return Rule(("b16",), ("b32",), lambda a: a.astype(np.uint32) << np.uint32(16))
    if "rna" in modifiers:
        return Rule(("b32",), ("b32",), _nearest_tf32("satfinite" in modifiers))
    compute = reformat(_form(instruction, to, source))
    return Rule((storage(source),), (storage(to),), compute)


def _nearest_tf32(finite: bool) -> Callable[[Array], Array]:
    """Return the rounding of f32 to tf32, ties away from zero, by an integer addition; NaNs are
    only truncated."""
    exponent, last = np.uint32(0x7F80_0000), np.uint32(0x2000)

    def convert(a: Array) -> Array:
        rounded = np.where(a & exponent == exponent, a, a + np.uint32(0x1000))
        rounded = rounded & ~(last - np.uint32(1))
        if finite:
            rounded = np.where(rounded & exponent == exponent, rounded - last, rounded)
        return rounded

    return convert


def _pair(instruction: Instruction, to: str, source: str) -> Rule | None:
    """Convert two values into a register, the first source to the upper half; or both halves. Two
    numbers of 4 bits share a byte, those of 6 bits have one each."""
    narrow, wide = _PAIRS.get(to), _PAIRS.get(source)
    if narrow is None:
        return None
    one = reformat(_form(instruction, narrow, wide or source))
    result = "b8" if narrow == "e2m1" else f"b{16 if to[0] == 'e' else 32}"
    shift = DTYPES[result].type(8 * DTYPES[result].itemsize // 2)

    def join(high: Array, low: Array) -> Array:
        joined: Array = (one(high).astype(DTYPES[result]) << shift) | one(low)
        return joined

    if wide is None:
        return Rule((storage(source),) * 2, (result,), join)
    part = DTYPES[storage(wide)]
    bits = 4 if wide == "e2m1" else 8 * part.itemsize

    def both(a: Array) -> Array:
        return join((a >> a.dtype.type(bits)).astype(part), a.astype(part))

    return Rule((f"b{2 * bits}",), (result,), both)


def _to_exponents(instruction: Instruction, source: str) -> Rule:
    """Convert two numbers to powers of two, `ue8m0`: their signs are dropped, and what is below
    2^-127 becomes that."""
    form = _form(instruction, "f32", source)
    upward, finite = form.mode == "rp", form.finite

    def one(bits: Array) -> Array:
        magnitude = bits & np.uint32(0x7FFF_FFFF)
        field, rest = magnitude >> np.uint32(23), magnitude & np.uint32(0x7F_FFFF)
        if upward:
            half = np.where(field == 0, np.uint32(0x40_0000), np.uint32(0))
            field = field + ((rest > half) & (field < 255)).astype(np.uint32)
        if finite:
            field = np.minimum(field, np.uint32(254))
        return np.where(magnitude > np.uint32(0x7F80_0000), np.uint32(255), field)

    def join(high: Array, low: Array) -> Array:
        joined: Array = (one(high) << np.uint32(8) | one(low)).astype(np.uint16)
        return joined

    if source == "f32":
        return Rule(("b32", "b32"), ("b16",), join)
    high = np.uint32(0xFFFF_0000)
    return Rule(("b32",), ("b16",), lambda a: join(a & high, a << np.uint32(16)))


def _from_exponents() -> Rule:
    """Convert two powers of two to bf16; that of 255 is no number."""

    def one(field: Array) -> Array:
        number = np.where(field == 0, np.uint32(0x40), field << np.uint32(7))
        return np.where(field == 255, np.uint32(0x7FFF), number)

    def both(a: Array) -> Array:
        wide = a.astype(np.uint32)
        high, low = one(wide >> np.uint32(8)), one(wide & np.uint32(255))
        joined: Array = high << np.uint32(16) | low
        return joined

    return Rule(("b16",), ("b32",), both)


def _at_random(instruction: Instruction, to: str) -> Rule | None:
    """`cvt.rs`: add random bits, the last source, below the last bit that is kept, and cut off.

    Of two numbers each has the bits that it drops: 13 for f16, in the lower bits of a half of the
    source, 16 for bf16. Of four each pair shares a half, the first with its bits in reverse order;
    numbers of 4 bits have the odd or even bytes. Found on a B200 by others; the ISA draws it.
    """
    modifiers = instruction.modifiers
    kind = _FOURS.get(to) or _PAIRS.get(to)
    if kind is None or instruction.types[1] != "f32":
        return None
    count = 4 if to in _FOURS else 2
    form, bits = FORMATS[kind], 13 if kind == "f16" else 16
    width = 4 if kind == "e2m1" else 8 if count == 4 else 16
    result = f"b{count * width}"
    convert = reformat_at_random(form, bits, "relu" in modifiers, "satfinite" in modifiers)

    def join(*sources: Array) -> Array:
        numbers, word = sources[:-1], sources[-1].astype(np.uint64)
        high, low = word >> np.uint64(16), word & np.uint64(0xFFFF)
        if kind == "e2m1":
            octet = np.uint64(255)
            high, low = (
                (word >> np.uint64(at) & octet)
                | (word >> np.uint64(at + 16) & octet) << np.uint64(8)
                for at in (8, 0)
            )
        halves = [high, low] if count == 2 else [_reversed(high), high, _reversed(low), low]
        joined = convert(numbers[0], halves[0])
        for number, half in zip(numbers[1:], halves[1:], strict=True):
            joined = joined << np.uint64(width) | convert(number, half)
        return joined.astype(DTYPES[result])

    return Rule(("b32",) * (count + 1), (result,), join)


def _reversed(bits: Array) -> Array:
    """Return 16 bits in reverse order."""
    for step, mask in ((1, 0x5555), (2, 0x3333), (4, 0x0F0F), (8, 0x00FF)):
        by, keep = np.uint64(step), np.uint64(mask)
        bits = (bits & keep) << by | bits >> by & keep
    return bits


def _float_to_integer(instruction: Instruction, to: str, source: str) -> Rule:
    form = _form(instruction, "f64", source)
    whole = TO_WHOLE.get(form.whole, np.trunc)
    widen = reformat(Reformat(source, "f64", ftz=form.ftz))
    info = np.iinfo(DTYPES[to])
    low_half = DTYPES[to].type(-1 << (info.bits - 1) if to[0] == "s" else 1 << (info.bits - 1))
    of_nan = low_half if source == "f64" or info.bits == 64 else DTYPES[to].type(0)

    def convert(a: Array) -> Array:
        value = whole(widen(a).view(np.float64))
        inside = (value >= info.min) & (value < float(info.max) + (info.bits != 64))
        result = np.where(inside, value, 0.0).astype(DTYPES[to])
        beyond = np.where(value > 0, DTYPES[to].type(info.max), DTYPES[to].type(info.min))
        beyond = np.where(np.isnan(value), of_nan, beyond)
        return np.where(inside, result, beyond)

    return Rule((storage(source),), (to,), convert)


def _integer_to_float(instruction: Instruction, to: str, source: str) -> Rule:
    form = _form(instruction, to, source)
    if form.mode == "rn" and to in ("f32", "f64") and not form.sat:
        return Rule((source,), (to,), lambda a: a.astype(DTYPES[to]))
    return Rule((source,), (storage(to),), reformat_integer(form))


def _integer_to_integer(instruction: Instruction, to: str) -> Callable[[Array], Array]:
    info = np.iinfo(DTYPES[to])

    def clamp(a: Array) -> Array:
        limits = np.iinfo(a.dtype)
        low, high = max(info.min, limits.min), min(info.max, limits.max)
        return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(DTYPES[to])

    if "sat" in instruction.modifiers:
        return clamp
    return lambda a: a.astype(DTYPES[to])


def _pack(instruction: Instruction) -> Rule:
    """`cvt.pack`: clamp two integers and pack them above the low half of the third source."""
    kind = next(m for m in instruction.modifiers if m[1:].isdigit())
    bits, signed = int(kind[1:]), kind[0] == "s"
    low, high = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    keep = np.uint32((1 << bits) - 1)

    def pack(a: Array, b: Array, *c: Array) -> Array:
        upper, lower = (np.clip(x, low, high).view(np.uint32) & keep for x in (a, b))
        packed: Array = (upper << np.uint32(bits)) | lower
        return packed | (c[0] << np.uint32(2 * bits)) if c else packed

    sources = ("s32", "s32", "b32")[: max(len(instruction.operands) - 1, 2)]
    return Rule(sources, ("b32",), pack)


FAMILY = Family("conversion", {"cvt": _cvt})
