"""Minimum, maximum, absolute value and negation of floating-point numbers (PTX ISA 9.7.3, 9.7.4).

They work on bits, so that one text serves every format: numbers that are not NaN are in the order
of their bits once those below the sign are turned around for negative ones, -0 below +0.
"""

from collections.abc import Callable
from functools import cache

from ...ptx.kernel import Instruction
from ..lanes import Array
from .assembly import define
from .packed import halves
from .rule import Family, Rule

_EXPONENT = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF << 52}
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFF_FFFF, "f64": 0xFFF8 << 48}
_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def _flush(kind: str) -> str:
    whole, bits = f"i{_BITS[kind]}", _BITS[kind]
    return define(whole, "flush", f"{whole} %x", f"""
  %e = and {whole} %x, {_EXPONENT[kind]}
  %s = and {whole} %x, {1 << (bits - 1)}
  %tiny = icmp eq {whole} %e, 0
  %y = select i1 %tiny, {whole} %s, {whole} %x
  ret {whole} %y""")  # fmt: skip


def element(kind: str, smaller: bool, nan: bool = False, xorsign: bool = False) -> str:
    """Define @one(a, b): the smaller or larger one."""
    bits = _BITS[kind]
    t, top, quiet = f"i{bits}", (1 << (bits - 1)) - 1, _NAN[kind]
    order = "slt" if smaller else "sgt"
    magnitude = f"and {t}" if xorsign else f"or {t}"
    mask = top if xorsign else 0
    either = f"select i1 %ua, {t} %b, {t} %a1"
    return define(t, "one", f"{t} %a0, {t} %b0", f"""
  %a = {magnitude} %a0, {mask}
  %b = {magnitude} %b0, {mask}
  %am = and {t} %a, {top}
  %bm = and {t} %b, {top}
  %ua = icmp ugt {t} %am, {_EXPONENT[kind]}
  %ub = icmp ugt {t} %bm, {_EXPONENT[kind]}
  %as = ashr {t} %a, {bits - 1}
  %bs = ashr {t} %b, {bits - 1}
  %at = and {t} %as, {top}
  %bt = and {t} %bs, {top}
  %ak = xor {t} %a, %at
  %bk = xor {t} %b, %bt
  %first = icmp {order} {t} %ak, %bk
  %c = select i1 %first, {t} %a, {t} %b
  %a1 = select i1 %ub, {t} %a, {t} %c
  %number = {either}
  %both = and i1 %ua, %ub
  %any = or i1 %ua, %ub
  %differ = xor {t} %a0, %b0
  %sign = and {t} %differ, {(1 << (bits - 1)) if xorsign else 0}
  %signed = or {t} %number, %sign
  %is_nan = or i1 {"%any" if nan else "%both"}, false
  %quiet = {f"or {t} %b, {1 << 51}" if kind == "f64" else f"add {t} {quiet}, 0"}
  %y = select i1 %is_nan, {t} %quiet, {t} %signed
  ret {t} %y""")  # fmt: skip


@cache
def chooser(
    kind: str, smaller: bool, ftz: bool = False, nan: bool = False, xorsign: bool = False
) -> Callable[..., Array]:
    """Return the minimum or maximum of bits; with `nan` one NaN makes the result one."""
    single = kind.removesuffix("x2")
    t = f"i{_BITS[single]}"
    name = f"{'min' if smaller else 'max'}_{kind}{'_ftz' * ftz}{'_nan' * nan}{'_xor' * xorsign}"
    text = element(single, smaller, nan, xorsign)
    if ftz:
        text = text.replace("@one", "@pick") + _flush(single)
        text += define(t, "one", f"{t} %a, {t} %b", f"""
  %fa = call {t} @flush({t} %a)
  %fb = call {t} @flush({t} %b)
  %y = call {t} @pick({t} %fa, {t} %fb)
  ret {t} %y""")  # fmt: skip
    return halves(name, kind, 2, text)


def _minimum(instruction: Instruction) -> Rule:
    kind, modifiers = instruction.type, instruction.modifiers
    compute = chooser(
        kind, instruction.opcode == "min",
        "ftz" in modifiers, "NaN" in modifiers, "xorsign" in modifiers,
    )  # fmt: skip
    bits = f"b{_BITS.get(kind, 32)}"
    if len(instruction.operands) == 4:
        return Rule((bits,) * 3, (bits,), lambda a, b, c: compute(compute(a, b), c))
    return Rule((bits, bits), (bits,), compute)


@cache
def _sign(kind: str, opcode: str, ftz: bool) -> Callable[..., Array]:
    """Return the negation or absolute value; a NaN becomes the hardware's, in f64 a quiet one."""
    single = kind.removesuffix("x2")
    bits = _BITS[single]
    t, top = f"i{bits}", (1 << (bits - 1)) - 1
    change = f"xor {t} %f, {top + 1}" if opcode == "neg" else f"and {t} %f, {top}"
    text = _flush(single) + define(t, "one", f"{t} %x", f"""
  %f = {f"call {t} @flush({t} %x)" if ftz else f"or {t} %x, 0"}
  %c = {change}
  %m = and {t} %x, {top}
  %nan = icmp ugt {t} %m, {_EXPONENT[single]}
  %q = {f"or {t} %x, {1 << 51}" if kind == "f64" else f"add {t} {_NAN[single]}, 0"}
  %y = select i1 %nan, {t} %q, {t} %c
  ret {t} %y""")  # fmt: skip
    return halves(f"{opcode}_{kind}{'_ftz' * ftz}", kind, 1, text)


def _signed(instruction: Instruction) -> Rule:
    kind = instruction.type
    bits = f"b{_BITS.get(kind, 32)}"
    compute = _sign(kind, instruction.opcode, "ftz" in instruction.modifiers)
    return Rule((bits,), (bits,), compute)


FAMILY = Family(
    "minimum, maximum and sign of floating-point numbers",
    {"min": _minimum, "max": _minimum, "abs": _signed, "neg": _signed},
    frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}),
)
