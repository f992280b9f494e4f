"""From one floating-point format, or an integer, to another format: compiled, rounded once.

Numbers go through float64, which holds every other format exactly.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

from ....lazy_dataclass import dataclass
from ....native.statement import DECLARATIONS, Lines
from ....native.traced import trace
from ....native.ufunc import elementwise
from ..lanes import DTYPES, Array
from . import assembly
from .assembly import define

FLOATS = frozenset({"f16", "bf16", "f32", "f64", "tf32", "e4m3", "e5m2"})
_STORAGE = {"f64": "b64", "f32": "b32", "tf32": "b32", "f16": "b16", "bf16": "b16"}
_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@dataclass(frozen=True, slots=True)
class Reformat:
    """One conversion: PTX types, rounding mode, to a whole number, and what the modifiers ask."""

    source: str
    to: str
    mode: str = "rn"
    whole: str = ""
    ftz: bool = False
    sat: bool = False
    relu: bool = False
    finite: bool = False

    @property
    def name(self) -> str:
        """A name of its own for the compiled function."""
        flags = ("ftz", self.ftz), ("sat", self.sat), ("relu", self.relu), ("finite", self.finite)
        words = [self.source, self.to, self.mode, self.whole, *(w for w, on in flags if on)]
        return "_".join(word for word in words if word)


def storage(kind: str) -> str:
    """Return the PTX type of bits in which values of a floating-point type travel."""
    return _STORAGE.get(kind, "b8")


def _bits(kind: str) -> int:
    return 8 * DTYPES[storage(kind)].itemsize


def _source(kind: str, ftz: bool) -> str:
    """Define @source(bits) -> double."""
    parameter = f"i{_bits(kind)} %x"
    if kind == "f64":
        return define("double", "source", parameter, """
  %y = bitcast i64 %x to double
  ret double %y""")  # fmt: skip
    if kind in ("f32", "tf32"):
        flushed = "call float @flush(float %c)" if ftz else "fadd float %f, -0.0"
        text = assembly.flush("f32") + assembly.canonical()
        return text + define("double", "source", parameter, f"""
  %f = bitcast i32 %x to float
  %c = call float @canonical(float %f)
  %g = {flushed}
  %y = fpext float %g to double
  ret double %y""")  # fmt: skip
    return assembly.widen(kind) + define("double", "source", parameter, f"""
  %z = zext i{_bits(kind)} %x to i64
  %y = call double @widen_{kind}(i64 %z)
  ret double %y""")  # fmt: skip


def _target(form: Reformat) -> str:
    """Define @target(double) -> bits."""
    kind = form.to
    whole = f"i{_bits(kind)}"
    if kind == "f64":
        return define("i64", "target", "double %x", """
  %y = bitcast double %x to i64
  ret i64 %y""")  # fmt: skip
    left = 13 if kind == "tf32" else 0
    text = assembly.narrow(
        kind, form.mode, form.finite, payload=form.source == "f64"
    ) + define(whole, "pattern", "double %x", f"""
  %n = call i64 @narrow_{kind}(double %x)
  %s = shl i64 %n, {left}
  %y = trunc i64 %s to {whole}
  ret {whole} %y""".replace("trunc i64 %s to i64", "or i64 %s, 0"))  # fmt: skip
    if not (form.ftz and kind == "f32"):
        return text.replace("@pattern", "@target")
    return text + define("i32", "target", "double %x", """
  %p = call i32 @pattern(double %x)
  %f = bitcast i32 %p to float
  %g = call float @flush_result(float %f)
  %y = bitcast float %g to i32
  ret i32 %y""") + assembly.flush("f32").replace("@flush", "@flush_result")  # fmt: skip


_RELU = define("double", "relu", "double %x", """
  %b = fcmp ole double %x, 0.0
  %y = select i1 %b, double 0.0, double %x
  ret double %y""")  # fmt: skip


@cache
def reformat(form: Reformat) -> Callable[[Array], Array]:
    """Return the function from bits of one format to bits of another."""
    declarations = _source(form.source, form.ftz) + _target(form)
    lines = [f"%v0 = call double @source(i{_bits(form.source)} %x0)"]
    steps = []
    if form.whole:
        intrinsic = f"llvm.{_WHOLE[form.whole]}.f64"
        declarations += f"declare double @{intrinsic}(double)\n"
        steps.append(intrinsic)
    if form.sat:
        declarations += assembly.saturate("f64")
        steps.append("saturate")
    if form.relu:
        declarations += _RELU
        steps.append("relu")
    lines += [f"%v{k + 1} = call double @{step}(double %v{k})" for k, step in enumerate(steps)]
    lines.append(f"%y0 = call i{_bits(form.to)} @target(double %v{len(steps)})")
    sources, results = (f"u{_bits(form.source) // 8}",), (f"u{_bits(form.to) // 8}",)
    return elementwise(f"cvt_{form.name}", sources, results, "\n  ".join(lines), declarations)


def through_double(kind: str, arity: int, formula: Callable[..., Array]) -> str:
    """Define @one, which takes bits of `arity` numbers to bits of what a float64 formula gives."""
    whole, double, text = f"i{_bits(kind)}", DTYPES["f64"], Lines()
    found = trace(text, formula, [f"%w{k}" for k in range(arity)], ([double] * arity, [double]))
    assert found is not None
    before = [f"%w{k} = call double @source({whole} %x{k})" for k in range(arity)]
    after = [f"%y = call {whole} @target(double {found[0]})", f"ret {whole} %y"]
    parameters = ", ".join(f"{whole} %x{k}" for k in range(arity))
    body = "  " + "\n  ".join([*before, *text.lines, *after])
    form = Reformat(kind, kind)
    declarations = "".join(f"{line}\n" for line in DECLARATIONS)
    definitions = _source(kind, False) + _target(form)
    return declarations + definitions + define(whole, "one", parameters, body)


@cache
def reformat_integer(form: Reformat) -> Callable[[Array], Array]:
    """Return the function from integers to bits of a format."""
    dtype = DTYPES[form.source]
    bits = 8 * dtype.itemsize
    extend = "sext" if dtype.kind == "i" else "zext"
    lines = [f"%w = {extend} i{bits} %x0 to i64" if bits < 64 else "%w = or i64 %x0, 0"]
    lines += [
        "%below = icmp slt i64 %w, 0" if dtype.kind == "i" else "%below = icmp ult i64 %w, 0",
        "%minus = sub i64 0, %w",
        "%size = select i1 %below, i64 %minus, i64 %w",
        "%sign = zext i1 %below to i64",
    ]
    if form.sat:
        lines += [
            "%some = icmp ne i64 %size, 0",
            "%one = zext i1 %some to i64",
            "%clamped = select i1 %below, i64 0, i64 %one",
        ]
    given = "i64 %clamped, i64 0" if form.sat else "i64 %size, i64 %sign"
    lines.append(f"%bits = call i64 @narrow_integer({given})")
    to = _bits(form.to)
    lines.append(f"%y0 = trunc i64 %bits to i{to}" if to < 64 else "%y0 = or i64 %bits, 0")
    declarations = assembly.narrow_integer(form.to, form.mode)
    compute = elementwise(
        f"cvt_{form.name}", (f"u{bits // 8}",), (f"u{to // 8}",), "\n  ".join(lines), declarations
    )
    return cast(Callable[[Array], Array], lambda a: compute(a.view(f"u{bits // 8}")))
