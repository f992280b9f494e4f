"""Single and double precision arithmetic (PTX ISA 9.7.3), in every rounding mode.

Each row is one compiled loop: sources flushed under `.ftz`, one operation of the processor (under
its own rounding mode where `.rz`, `.rm` or `.rp` asks for another than to nearest), the
hardware's NaN, `.ftz` and `.sat` of the result. Single precision has one NaN, 0x7fffffff; double
precision keeps the payload of the source, and makes 0xfff8000000000000.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ....native.statement import literal
from ....native.ufunc import elementwise
from ...ptx.kernel import Instruction
from ..lanes import DTYPES, Array
from . import assembly
from .rule import Builder, Family, Rule

ROUNDING: Mapping[str, int] = {"rn": 1, "rz": 0, "rp": 2, "rm": 3}
"""PTX's rounding modes as LLVM numbers them."""

_REAL = {"f32": "float", "f64": "double"}
_CODE = {"f32": "f4", "f64": "f8"}
_ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}


@cache
def arithmetic(
    operation: str, kind: str, mode: str = "rn", ftz: bool = False, sat: bool = False
) -> Callable[..., Array]:
    """Return the function of one operation in one form."""
    real, arity = _REAL[kind], _ARITY[operation]
    sources = [f"%f{k}" if ftz else f"%x{k}" for k in range(arity)]
    lines = [f"%f{k} = call {real} @flush({real} %x{k})" for k in range(arity)] if ftz else []
    statement, declarations = _operation(operation, kind, mode, sources)
    lines.append(f"%r = {statement}")
    if kind == "f32":
        declarations += assembly.canonical(of_root=operation == "sqrt")
        lines.append("%v0 = call float @canonical(float %r)")
    else:
        declarations += assembly.quiet_nan(arity, first=operation == "div")
        given = "".join(f", double {name}" for name in sources)
        lines.append(f"%v0 = call double @quiet(double %r{given})")
    flushed, definition = _flushed_result(operation, mode, sources) if ftz else ([], "")
    lines += flushed
    last = "%vf" if ftz else "%v0"
    step = f"call {real} @saturate({real} {last})" if sat else f"bitcast {real} {last} to {real}"
    lines.append(f"%y0 = {step}")
    declarations += assembly.flush(kind) * ftz + assembly.saturate(kind) * sat + definition
    code = _CODE[kind]
    name = f"{operation}_{kind}_{mode}{'_ftz' * ftz}{'_sat' * sat}"
    body = "\n  ".join(lines)
    return elementwise(name, (code,) * arity, (code,), body, declarations, ROUNDING[mode])


def _flushed_result(operation: str, mode: str, sources: list[str]) -> tuple[list[str], str]:
    """Return what makes %vf of the float32 result %v0 under `.ftz`, and what it calls.

    A result is tiny if it would round below the least normal number were there smaller ones in
    full precision: a subnormal one always is, and the least normal one may be. So products and
    quotients are looked at in float64, sums of products with a sticky bit. Sums are never in
    between.
    """
    if operation not in ("mul", "fma", "div", "rcp"):
        return ["%vf = call float @flush(float %v0)"], ""
    if operation == "rcp":
        operation, sources = "div", ["1.0", *sources]
    lines, wide = [], []
    for k, source in enumerate(sources):
        lines.append(f"%w{k} = fpext float {source} to double")
        wide.append(f"%w{k}")
    if operation == "fma" and mode == "rn":
        lines.append(f"%p = fmul double {wide[0]}, {wide[1]}")
        lines.append(f"%w = call double @odd_sum(double %p, double {wide[2]})")
    elif operation == "fma":
        given = ", ".join(f"double {name}" for name in wide)
        lines.append(f"%w = call double @llvm.fma.f64({given})")
    else:
        lines.append(f"%w = f{operation} double {', '.join(wide)}")
    bound = 2.0**-126 * (1 - 2.0 ** (-25 if mode == "rn" else -24))
    lines += [
        "%size = call double @llvm.fabs.f64(double %w)",
        f"%tiny = fcmp {'olt' if mode == 'rn' else 'ole'} double %size, {literal(bound)}",
        "%zero = call float @llvm.copysign.f32(float 0.0, float %v0)",
        "%vn = select i1 %tiny, float %zero, float %v0",
        "%vf = call float @flush(float %vn)",
    ]
    return lines, _WIDE_DECLARATIONS + assembly.ODD_SUM


_WIDE_DECLARATIONS = """declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fabs.f64(double)
declare float @llvm.copysign.f32(float, float)
"""


def _operation(operation: str, kind: str, mode: str, sources: list[str]) -> tuple[str, str]:
    """Return the statement of one operation, and the declaration of what it calls."""
    real = _REAL[kind]
    if operation == "rcp":
        operation, sources = "div", ["1.0", *sources]
    given = ", ".join(f"{real} {source}" for source in sources)
    is_plain = operation in ("add", "sub", "mul", "div")
    if mode == "rn" and is_plain:
        return f"f{operation} {real} {', '.join(sources)}", ""
    types = ", ".join([real] * len(sources))
    if mode == "rn":
        name = f"@llvm.{operation}.{kind}"
        return f"call {real} {name}({given})", f"declare {real} {name}({types})\n"
    name = f"@llvm.experimental.constrained.{'f' * is_plain}{operation}.{kind}"
    heed = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
    return (
        f"call {real} {name}({given}, {heed}) strictfp",
        f"declare {real} {name}({types}, metadata, metadata)\n",
    )


def forms(instruction: Instruction) -> tuple[str, bool, bool]:
    """Return the rounding mode, `.ftz` and `.sat` of an instruction."""
    modifiers = instruction.modifiers
    mode = next((m for m in modifiers if m in ROUNDING), "rn")
    return mode, "ftz" in modifiers, "sat" in modifiers


def _arithmetic(operation: str) -> Builder:
    def build(instruction: Instruction) -> Rule | None:
        kind = instruction.type
        if len(set(instruction.types)) > 1:
            return None
        compute = arithmetic(operation, kind, *forms(instruction))
        return Rule((kind,) * _ARITY[operation], (kind,), compute)

    return build


def _copy_sign(a: Array, b: Array) -> Array:
    whole = f"u{a.dtype.itemsize}"
    sign = np.dtype(whole).type(1 << (8 * a.dtype.itemsize - 1))
    bits: Array = (a.view(whole) & sign) | (b.view(whole) & ~sign)
    return bits.view(a.dtype)


def _test(instruction: Instruction) -> Rule | None:
    kind = instruction.type
    tiny = np.finfo(DTYPES[kind]).tiny  # zero counts as normal, as on the hardware
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    test = tests.get(instruction.modifiers[0])
    return Rule((kind,), ("pred",), test) if test else None


def _copysign(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind, kind), (kind,), _copy_sign)


FAMILY = Family(
    "floating point, f32 and f64",
    {
        **{opcode: _arithmetic(opcode) for opcode in ("add", "sub", "mul", "fma")},
        "mad": _arithmetic("fma"),
        "copysign": _copysign,
        "testp": _test,
    },
    frozenset({"f32", "f64"}),
)
