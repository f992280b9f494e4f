"""Conversion between types (PTX ISA 9.7.9.21, 9.7.9.22): the rule for the types of an instruction.

Where the ISA leaves results open they are the hardware's: a NaN becomes 0 as a narrow integer, and
the lowest signed pattern as a 64-bit one or from f64.
"""

from collections.abc import Callable

import numpy as np

from ...ptx.kernel import Instruction
from .format import FLOATS, TO_WHOLE, Reformat, reformat, reformat_integer, storage
from .lanes import DTYPES, Array
from .rule import Family, Rule

_PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2"}
_MODES = ("rn", "rz", "rm", "rp", "rna")


def _cvt(instruction: Instruction) -> Rule | None:
    types, modifiers = instruction.types, instruction.modifiers
    if "pack" in modifiers:
        return _pack(instruction)
    if len(types) != 2 or "rs" in modifiers:
        return None
    to, source = types
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
    """Convert two values into a register, the first source to the upper half; or both halves."""
    narrow, wide = _PAIRS.get(to), _PAIRS.get(source)
    if narrow is None:
        return None
    one = reformat(_form(instruction, narrow, wide or source))
    result = f"b{16 if to[0] == 'e' else 32}"
    shift = DTYPES[result].type(8 * DTYPES[result].itemsize // 2)

    def join(high: Array, low: Array) -> Array:
        joined: Array = (one(high).astype(DTYPES[result]) << shift) | one(low)
        return joined

    if wide is None:
        return Rule((storage(source),) * 2, (result,), join)
    part = DTYPES[storage(wide)]

    def both(a: Array) -> Array:
        half = a.dtype.type(8 * part.itemsize)
        return join((a >> half).astype(part), a.astype(part))

    return Rule((f"b{16 * part.itemsize}",), (result,), both)


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
