"""Minimum, maximum, absolute value and negation of floating-point numbers (PTX ISA 9.7.3, 9.7.4).

They operate on bits, so that one text serves every format: numbers other than NaN are in the order
of their bits once the bits below the sign of negative numbers are inverted, with -0 below +0.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...ptx.kernel import Instruction
from .format import FORMATS, Format, flush_bits
from .lanes import DTYPES, Array
from .packed import halves
from .rule import Family, Rule


def _key(bits: Array, magnitude_mask: int) -> Array:
    """Return a signed integer that sorts like the number."""
    signed = bits.view(f"i{bits.dtype.itemsize}")
    key: Array = signed ^ (signed >> (8 * bits.dtype.itemsize - 1)) & magnitude_mask
    return key


def _quiet(bits: Array, form: Format) -> Any:
    """Return the NaN that the hardware makes of a NaN of these bits."""
    if form.name == "f64":
        return bits | (1 << 51)
    return bits.dtype.type(form.nan)


def element(
    kind: str, smaller: bool, nan: bool = False, xorsign: bool = False
) -> Callable[[Array, Array], Array]:
    """Return the minimum or maximum of single elements."""
    form = FORMATS[kind]
    magnitude_mask = form.sign - 1
    order = np.less if smaller else np.greater

    def one(a0: Array, b0: Array) -> Array:
        a, b = (a0 & magnitude_mask, b0 & magnitude_mask) if xorsign else (a0, b0)
        a_nan, b_nan = (a & magnitude_mask) > form.infinity, (b & magnitude_mask) > form.infinity
        extremum = np.where(order(_key(a, magnitude_mask), _key(b, magnitude_mask)), a, b)
        number = np.where(a_nan, b, np.where(b_nan, a, extremum))
        if xorsign:
            number = number | (a0 ^ b0) & form.sign
        return np.where(a_nan | b_nan if nan else a_nan & b_nan, _quiet(b, form), number)

    return one


@cache
def chooser(
    kind: str, smaller: bool, ftz: bool = False, nan: bool = False, xorsign: bool = False
) -> Callable[..., Array]:
    """Return the minimum or maximum of bits; with `nan`, a NaN source makes the result a NaN."""
    single = kind.removesuffix("x2")
    name = f"{'min' if smaller else 'max'}_{kind}{'_ftz' * ftz}{'_nan' * nan}{'_xor' * xorsign}"
    pick, form = element(single, smaller, nan, xorsign), FORMATS[single]
    return halves(name, kind, 2, _flushing(pick, form) if ftz else pick)


def _flushing(one: Callable[..., Array], form: Format) -> Callable[..., Array]:
    return lambda *sources: one(*(flush_bits(bits, form) for bits in sources))


def _minimum(instruction: Instruction) -> Rule:
    kind, modifiers = instruction.type, instruction.modifiers
    compute = chooser(
        kind, instruction.opcode == "min",
        "ftz" in modifiers, "NaN" in modifiers, "xorsign" in modifiers,
    )  # fmt: skip
    bits = f"b{8 * DTYPES[kind].itemsize}"
    if len(instruction.operands) == 4:
        return Rule((bits,) * 3, (bits,), lambda a, b, c: compute(compute(a, b), c))
    return Rule((bits, bits), (bits,), compute)


@cache
def _sign(kind: str, opcode: str, ftz: bool) -> Callable[..., Array]:
    """Return the negation or absolute value; a NaN becomes the hardware's, in f64 a quiet one."""
    form = FORMATS[kind.removesuffix("x2")]

    def one(bits: Array) -> Array:
        flushed = flush_bits(bits, form) if ftz else bits
        changed = flushed ^ form.sign if opcode == "neg" else flushed & form.sign - 1
        return np.where((bits & form.sign - 1) > form.infinity, _quiet(bits, form), changed)

    return halves(f"{opcode}_{kind}{'_ftz' * ftz}", kind, 1, one)


def _signed(instruction: Instruction) -> Rule:
    kind = instruction.type
    bits = f"b{8 * DTYPES[kind].itemsize}"
    compute = _sign(kind, instruction.opcode, "ftz" in instruction.modifiers)
    return Rule((bits,), (bits,), compute)


FAMILY = Family(
    "minimum, maximum and sign of floating-point numbers",
    {"min": _minimum, "max": _minimum, "abs": _signed, "neg": _signed},
    frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}),
)
