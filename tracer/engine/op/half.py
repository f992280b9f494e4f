"""Half precision and brain floats, one or two in a register (PTX ISA 9.7.4).

Sources are widened to float64, where products are exact and sums keep a sticky bit, and the result
is rounded once to nearest. Every NaN becomes 0x7fff.
"""

from collections.abc import Callable
from functools import cache

from ....native.statement import literal
from ...ptx.kernel import Instruction
from ..lanes import Array
from .assembly import FORMATS, ODD_SUM, define, narrow, widen
from .packed import halves
from .rule import Builder, Family, Rule

TYPES = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
_ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
_BODY = {
    "add": "%r = call double @odd_sum(double %w0, double %w1)",
    "sub": "%n1 = fneg double %w1\n  %r = call double @odd_sum(double %w0, double %n1)",
    "mul": "%r = fmul double %w0, %w1",
    "fma": "%p = fmul double %w0, %w1\n  %r = call double @odd_sum(double %p, double %w2)",
}
_OUTSIDE = 0x7FF7
"""The NaN that stands for an element outside of a tensor, of either sign (`.oob`)."""
_FLUSH, _SAT, _RELU, _OOB = "ftz", "sat", "relu", "oob"


def _flush(kind: str) -> str:
    form = FORMATS[kind]
    return define("i64", "flush", "i64 %x", f"""
  %e = and i64 %x, {form.infinity}
  %s = and i64 %x, {1 << (form.bits - 1)}
  %tiny = icmp eq i64 %e, 0
  %y = select i1 %tiny, i64 %s, i64 %x
  ret i64 %y""")  # fmt: skip


def _one(operation: str, kind: str, flags: frozenset[str]) -> str:
    """Define @one, the operation on single elements."""
    form, arity = FORMATS[kind], _ARITY[operation]
    lines = []
    for k in range(arity):
        lines.append(f"%z{k} = zext i16 %x{k} to i64")
        if _FLUSH in flags:
            lines.append(f"%f{k} = call i64 @flush(i64 %z{k})")
        source = f"%{'f' if _FLUSH in flags else 'z'}{k}"
        lines.append(f"%w{k} = call double @widen_{kind}(i64 {source})")
    lines += [_BODY[operation], f"%b0 = call i64 @narrow_{kind}(double %r)"]
    last = "%b0"
    tiny = 2.0 ** (1 - form.bias) * (1 - 2.0 ** (-form.fraction - 2))
    for flag, statements in _FINISH.items():
        if flag in flags:
            names = {
                "i": last,
                "o": f"%{flag}",
                "top": 1 << 15,
                "nan": form.nan,
                "outside": _OUTSIDE,
            }
            names |= {"one": form.bias << form.fraction, "tiny": literal(tiny)}
            lines.append(statements.format(**names))
            last = f"%{flag}"
    lines += [f"%y = trunc i64 {last} to i16", "ret i16 %y"]
    parameters = ", ".join(f"i16 %x{k}" for k in range(arity))
    return define("i16", "one", parameters, "  " + "\n  ".join(lines))


_FINISH = {
    _FLUSH: """%fsize = call double @llvm.fabs.f64(double %r)
  %ftiny = fcmp olt double %fsize, {tiny}
  %fsign = and i64 {i}, {top}
  {o} = select i1 %ftiny, i64 %fsign, i64 {i}""",
    _SAT: """%sneg = icmp uge i64 {i}, {top}
  %snan = icmp eq i64 {i}, {nan}
  %szero = or i1 %sneg, %snan
  %sone = icmp ugt i64 {i}, {one}
  %smin = select i1 %sone, i64 {one}, i64 {i}
  {o} = select i1 %szero, i64 0, i64 %smin""",
    _RELU: """%rneg = icmp uge i64 {i}, {top}
  {o} = select i1 %rneg, i64 0, i64 {i}""",
    _OOB: """%m0 = and i16 %x0, 32767
  %m1 = and i16 %x1, 32767
  %o0 = icmp eq i16 %m0, {outside}
  %o1 = icmp eq i16 %m1, {outside}
  %oany = or i1 %o0, %o1
  {o} = select i1 %oany, i64 0, i64 {i}""",
}


def element(operation: str, kind: str, flags: frozenset[str] = frozenset()) -> str:
    """Define @one, an operation on the bits of single elements of f16 or bf16."""
    definitions = widen(kind) + narrow(kind) + _flush(kind) + ODD_SUM
    if _FLUSH in flags:
        definitions += "declare double @llvm.fabs.f64(double)\n"
    return definitions + _one(operation, kind, flags)


@cache
def _function(operation: str, kind: str, flags: frozenset[str]) -> Callable[..., Array]:
    name = "_".join([operation, kind, *sorted(flags)])
    return halves(name, kind, _ARITY[operation], element(operation, kind.removesuffix("x2"), flags))


def _arithmetic(operation: str) -> Builder:
    def build(instruction: Instruction) -> Rule | None:
        kind = instruction.type
        flags = frozenset(instruction.modifiers) & {_FLUSH, _SAT, _RELU, _OOB}
        bits = "b32" if kind.endswith("x2") else "b16"
        if len(set(instruction.types)) > 1:
            return None
        return Rule((bits,) * _ARITY[operation], (bits,), _function(operation, kind, flags))

    return build


FAMILY = Family(
    "half precision and brain floats", {name: _arithmetic(name) for name in _ARITY}, TYPES
)
