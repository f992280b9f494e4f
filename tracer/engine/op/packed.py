"""Two 16-bit values in a register: the loop around a function of one, and packed integers."""

from collections.abc import Callable
from functools import cache

from ....native.ufunc import elementwise
from ...ptx.kernel import Instruction
from ..lanes import DTYPES, Array
from .assembly import define
from .rule import Family, Rule


def halves(name: str, kind: str, arity: int, text: str) -> Callable[..., Array]:
    """Return the loop of `@one`, defined in `text`: on values of `kind`, or on both halves.

    `@one` takes and gives the bits of one element; sources and result are unsigned integers.
    """
    if not kind.endswith("x2"):
        bits = 8 * DTYPES[kind].itemsize
        given = ", ".join(f"i{bits} %x{k}" for k in range(arity))
        code = f"u{bits // 8}"
        body = f"%y0 = call i{bits} @one({given})"
        return elementwise(name, (code,) * arity, (code,), body, text)
    lines = []
    for k in range(arity):
        lines += [
            f"%l{k} = trunc i32 %x{k} to i16",
            f"%s{k} = lshr i32 %x{k}, 16",
            f"%h{k} = trunc i32 %s{k} to i16",
        ]
    for half in "lh":
        given = ", ".join(f"i16 %{half}{k}" for k in range(arity))
        lines.append(f"%{half}r = call i16 @one({given})")
        lines.append(f"%{half}w = zext i16 %{half}r to i32")
    lines += ["%up = shl i32 %hw, 16", "%y0 = or i32 %lw, %up"]
    return elementwise(name, ("u4",) * arity, ("u4",), "\n  ".join(lines), text)


@cache
def _integer(opcode: str, kind: str, relu: bool) -> Callable[..., Array]:
    order = {"min": "lt", "max": "gt"}.get(opcode)
    if order is None:
        body = "  %r = add i16 %a, %b"
    else:
        body = f"  %c = icmp {kind[0]}{order} i16 %a, %b\n  %r = select i1 %c, i16 %a, i16 %b"
    if relu:
        body += "\n  %n = icmp slt i16 %r, 0\n  %y = select i1 %n, i16 0, i16 %r"
    text = define("i16", "one", "i16 %a, i16 %b", f"{body}\n  ret i16 {'%y' if relu else '%r'}")
    return halves(f"{opcode}_{kind}{'_relu' * relu}", kind, 2, text)


def _packed(instruction: Instruction) -> Rule:
    compute = _integer(instruction.opcode, instruction.type, "relu" in instruction.modifiers)
    return Rule(("b32", "b32"), ("b32",), compute)


FAMILY = Family(
    "packed integers, u16x2 and s16x2",
    dict.fromkeys(("add", "min", "max"), _packed),
    frozenset({"u16x2", "s16x2"}),
)
