"""Single and double precision arithmetic (PTX ISA 9.7.3), in every rounding mode.

Each row is one compiled loop: it flushes sources under `.ftz`, executes one operation of the
processor (in its own rounding mode for `.rz`, `.rm` or `.rp`), and applies the hardware's NaN,
`.ftz` and `.sat` to the result. Single precision has one NaN, 0x7fffffff; double precision keeps
the payload of the source, and makes 0xfff8000000000000.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ....jit.numpy_tracer import elementwise_of, statement
from ...ptx.kernel import Instruction
from .format import canonical, flush, odd_sum, quiet_nan, saturate
from .lanes import DTYPES, Array
from .rule import Builder, Family, Rule

ROUNDING: Mapping[str, int] = {"rn": 1, "rz": 0, "rp": 2, "rm": 3}
"""LLVM's numbers of PTX's rounding modes."""

_REAL = {"f32": "float", "f64": "double"}
_CODE = {"f32": "f4", "f64": "f8"}
_ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}


@cache
def arithmetic(
    operation: str, kind: str, mode: str = "rn", ftz: bool = False, sat: bool = False
) -> Callable[..., Array]:
    """Return the function of one operation in one form."""
    is_inverse = operation == "rcp"
    base_operation = "div" if is_inverse else operation
    text, declarations = _operation(base_operation, kind, mode)

    def compute(*operands: Array) -> Array:
        sources = tuple(flush(x) for x in operands) if ftz else operands
        factors = (_ONE[kind], *sources) if is_inverse else sources
        result: Array = statement(text, _CODE[kind], *factors)
        if kind == "f32":
            result = canonical(result, of_root=operation == "sqrt")
        else:
            result = quiet_nan(result, sources, first=operation == "div")
        if ftz:
            result = flush(_without_tiny(base_operation, mode, result, factors))
        return saturate(result) if sat else result

    code = _CODE[kind]
    name = f"{operation}_{kind}_{mode}{'_ftz' * ftz}{'_sat' * sat}"
    sources = (code,) * _ARITY[operation]
    return elementwise_of(name, compute, sources, code, declarations, ROUNDING[mode])


_ONE: Mapping[str, Any] = {"f32": np.float32(1), "f64": np.float64(1)}


def _without_tiny(operation: str, mode: str, result: Array, sources: tuple[Any, ...]) -> Array:
    """Return a float32 result under `.ftz`, with tiny results flushed to zero.

    A result is tiny if, at full precision and with unlimited exponents, it rounds to less than the
    least normal number. A subnormal result always is; the least normal one may be. So products and
    quotients are tested in float64, fused multiply-adds with a sticky bit. Sums are never in
    between.
    """
    if operation not in ("mul", "fma", "div"):
        return result
    wide = [source.astype(np.float64) for source in sources]
    if operation == "fma" and mode == "rn":
        whole = odd_sum(wide[0] * wide[1], wide[2])
    elif operation == "fma":
        whole = statement(_WIDE_FMA, "f8", *wide)
    else:
        whole = (np.multiply if operation == "mul" else np.divide)(*wide)
    bound = 2.0**-126 * (1 - 2.0 ** (-25 if mode == "rn" else -24))
    size = np.abs(whole)
    is_tiny = size < bound if mode == "rn" else size <= bound
    return np.where(is_tiny, np.copysign(np.float32(0), result), result)


_WIDE_FMA = "call double @llvm.fma.f64(double {}, double {}, double {})"


def _operation(operation: str, kind: str, mode: str) -> tuple[str, str]:
    """Return the statement of one operation, and the declarations of its callees."""
    real, count = _REAL[kind], _ARITY[operation]
    is_plain = operation in ("add", "sub", "mul", "div")
    declared = "declare double @llvm.fma.f64(double, double, double)\n"
    if mode == "rn" and is_plain:
        return f"f{operation} {real} {', '.join(['{}'] * count)}", declared
    parameters, types = ", ".join([f"{real} {{}}"] * count), ", ".join([real] * count)
    if mode == "rn":
        name = f"@llvm.{operation}.{kind}"
        if (operation, kind) == ("fma", "f32"):
            declared += f"declare {real} {name}({types})\n"
        return f"call {real} {name}({parameters})", declared
    name = f"@llvm.experimental.constrained.{'f' * is_plain}{operation}.{kind}"
    heed = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
    return (
        f"call {real} {name}({parameters}, {heed}) strictfp",
        f"{declared}declare {real} {name}({types}, metadata, metadata)\n",
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
