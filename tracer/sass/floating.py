"""Floating-point arithmetic of machine code: f32, f64, pairs of f32, comparisons, MUFU."""

from collections.abc import Mapping
from dataclasses import replace

from .arithmetic import (
    JOINTS,
    ORDERS,
    as_register,
    choose,
    compare_into,
    split_operands,
)
from .conversion import source_value
from .lift import Handler, Lifter
from .operand import Operand

FLOAT_ORDERS = {
    **ORDERS,
    **{f"{name}U": f"{name.lower()}u" for name in ("EQ", "NE", "LT", "LE", "GT", "GE")},
    "NUM": "num",
    "NAN": "nan",
}


def compare_floats(lifter: Lifter) -> None:
    """FSETP and DSETP."""
    if lifter.opcode == "DSETP" and (name := lifter.one({"MIN": "min", "MAX": "max"}, "")):
        _choose_double(lifter, name)
        return
    joint, order, flush = lifter.one(JOINTS), lifter.one(FLOAT_ORDERS), lifter.has("FTZ")
    first, second, a, b, other = lifter.require(5)
    if lifter.opcode.startswith("D"):
        operation, values = f"setp.{order}.f64", (lifter.double(a), lifter.double(b))
    else:
        operation = f"setp.{order}{'.ftz' * flush}.f32"
        values = (lifter.single(a), lifter.single(b))
    name, _, kind = operation.rpartition(".")
    if flush:  # the joint stands before .ftz
        _compare_flushed(lifter, order, joint, [first, second], values, lifter.truth(other))
    else:
        compare_into(lifter, f"{name}.{kind}", joint, [first, second], values, lifter.truth(other))


def set_float(lifter: Lifter) -> None:
    """FSET: all bits, or with BF 1, where the comparison holds."""
    one = "0x3f800000" if lifter.has("BF") else "-1"
    to, *others = lifter.operands
    holds = Operand("P", lifter.new("p")[1:])
    lifter.operands = [holds, Operand("P", "PT", number=-1), *others]
    compare_floats(lifter)
    lifter.emit("selp.b32", lifter.to(to), one, "0", f"%{holds.text}")


def _choose_double(lifter: Lifter, name: str) -> None:
    """Lift DSETP.MIN: whether the least of two is the first, and whether both are no numbers.

    Zeros are in the order of their signs, and a number is before none.
    """
    lifter.one({"AND": "and"})
    selected, neither, a, b, other = lifter.require(5)
    lifter.refuse_if(lifter.truth(other) is not True)
    x, y = lifter.double(a), lifter.double(b)
    before = lifter.compute(f"setp.{'lt' if name == 'min' else 'gt'}.f64", x, y, kind="p")
    negative = lifter.compute("setp.lt.s64", x if name == "min" else y, "0", kind="p")
    zeros = lifter.compute("setp.eq.and.f64", x, y, negative, kind="p")
    number = lifter.compute("setp.eq.f64", x, x, kind="p")
    one = lifter.compute("setp.neu.and.f64", y, y, number, kind="p")
    two = lifter.compute("or.pred", before, zeros, kind="p")
    missing = lifter.compute("setp.neu.f64", x, x, kind="p")
    both = lifter.compute("setp.neu.and.f64", y, y, missing, kind="p")
    lifter.emit("or.pred", lifter.to(selected), one, two)
    lifter.emit("mov.pred", lifter.to(neither), both)


def _compare_flushed(
    lifter: Lifter, order: str, joint: str, written: list[Operand], values: tuple[str, str],
    other: str | bool,
) -> None:  # fmt: skip
    if other is True and joint == "and" and written[1].number < 0:
        lifter.emit(f"setp.{order}.ftz.f32", lifter.to(written[0]), *values)
        return
    result = lifter.compute(f"setp.{order}.ftz.f32", *values, kind="p")
    output = lifter.compute("selp.u32", "1", "0", result)
    compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), other)


def extreme_float(lifter: Lifter) -> None:
    """FMNMX and FMNMX3."""
    flush, spreads, signs = lifter.has("FTZ"), lifter.has("NAN"), lifter.has("XORSIGN")
    sources = 3 if lifter.opcode.endswith("3") else 2
    _, values, (which,) = split_operands(lifter, sources)
    values = without_signs(lifter, values) if signs else values
    suffix = f"{'.ftz' * flush}{'.NaN' * spreads}{'.xorsign.abs' * signs}.f32"
    choose(lifter, which, lambda name: f"{name}{suffix}", [lifter.single(v) for v in values], "b32")


def without_signs(lifter: Lifter, values: list[Operand]) -> list[Operand]:
    """Return the operands of a comparison of absolute values, without that modifier."""
    lifter.refuse_if(not all(each.absolute and not each.negative for each in values))
    return [replace(each, absolute=False) for each in values]


ROUNDINGS = {"RM": ".rm", "RP": ".rp", "RZ": ".rz"}


def _float(name: str) -> Handler:
    """Return the function of FADD, FMUL or FFMA."""

    def lift(lifter: Lifter) -> None:
        rounding = lifter.one(ROUNDINGS, ".rn")
        if name == "mul" and (times := lifter.one(_SCALES, "")):
            _multiply_scaled(lifter, rounding, times)
            return
        suffix = f"{rounding}{'.ftz' * lifter.has('FTZ')}{'.sat' * lifter.has('SAT')}.f32"
        count = 4 if name == "fma" else 3
        to, *values = lifter.require(count)
        lifter.emit(name + suffix, lifter.to(to), *map(lifter.single, values))

    return lift


def _mixed(name: str) -> Handler:
    """Return the function of FHADD or FHFMA: halves, and the last summand an f32."""

    def lift(lifter: Lifter) -> None:
        rounding, half = lifter.one(ROUNDINGS, ".rn"), lifter.one({"BF16": "bf16"}, "f16")
        form = f"{name}{rounding}{'.sat' * lifter.has('SAT')}.f32.{half}"
        to, *halves, last = lifter.require(4 if name == "fma" else 3)
        values = [source_value(lifter, each, half) for each in halves]
        lifter.emit(form, lifter.to(to), *values, lifter.single(last))

    return lift


_SCALES = {**{f"D{2**n}": f"0d{0x3FF - n << 52:016X}" for n in (1, 2, 3)},
           **{f"M{2**n}": f"0d{0x3FF + n << 52:016X}" for n in (1, 2, 3)}}  # fmt: skip


def _multiply_scaled(lifter: Lifter, rounding: str, times: str) -> None:
    """FMUL.D2: a product divided by 2, 4, 8, or times that, rounded once."""
    to, a, b = lifter.require(3)
    wide = [lifter.compute("cvt.f64.f32", lifter.single(each), kind="d") for each in (a, b)]
    product = lifter.compute("mul.rn.f64", *wide, kind="d")
    scaled = lifter.compute("mul.rn.f64", product, times, kind="d")
    lifter.emit(f"cvt{rounding}.f32.f64", lifter.to(to), scaled)


def _double(name: str) -> Handler:
    """Return the function of DADD, DMUL or DFMA."""

    def lift(lifter: Lifter) -> None:
        rounding = lifter.one(ROUNDINGS, ".rn")
        to, *values = lifter.require(4 if name == "fma" else 3, 5)
        values = [v for v in values if not (name != "fma" and v.is_zero and len(values) > 2)]
        output = lifter.new("d")
        form = f"{name}{rounding}.f64"
        if name == "add" and values[1].negative:  # a NaN keeps its sign
            form, values[1] = f"sub{rounding}.f64", replace(values[1], negative=False)
        elif name == "add" and values[0].negative:
            form = f"sub{rounding}.f64"
            values = [values[1], replace(values[0], negative=False)]
        lifter.emit(form, output, *map(lifter.double, values))
        lifter.put_wide(to, output)

    return lift


_FUNCTIONS = {
    "RCP": "rcp.approx.ftz.f32",
    "RSQ": "rsqrt.approx.ftz.f32",
    "SQRT": "sqrt.approx.ftz.f32",
    "EX2": "ex2.approx.ftz.f32",
    "LG2": "lg2.approx.ftz.f32",
    "SIN": "sin.approx.turns.f32",
    "COS": "cos.approx.turns.f32",
    "TANH": "tanh.approx.f32",
}

_UPPER_FUNCTIONS = {"RCP64H": "rcp.approx.ftz.f64", "RSQ64H": "rsqrt.approx.ftz.f64"}


def function(lifter: Lifter) -> None:
    """MUFU: an approximate function; of RCP64H and RSQ64H the upper word of an f64."""
    if (upper := lifter.one(_UPPER_FUNCTIONS, "")) != "":
        to, value = lifter.require(2)
        pair = lifter.compute(
            "mov.b64",
            f"{{{as_register(lifter, '0')}, {as_register(lifter, lifter.single(value))}}}",
            kind="d",
        )
        output = lifter.compute(upper, pair, kind="d")
        lifter.emit("mov.b64", f"{{{lifter.new()}, {lifter.to(to)}}}", output, guarded=True)
        return
    half = lifter.one({"F16": "f16", "BF16": "bf16"}, "")
    if half:
        name = lifter.one({"TANH": "tanh.approx", "EX2": "ex2.approx"})
        flush = ".ftz" * (half == "bf16" and name[0] == "e")
        to, value = lifter.require(2)
        output = lifter.compute(
            f"{name}{flush}.{half}", source_value(lifter, value, half), kind="h"
        )
        lifter.emit("cvt.u32.u16", lifter.to(to), output)
        return
    operation = lifter.one(_FUNCTIONS)
    to, value = lifter.require(2)
    lifter.emit(operation, lifter.to(to), lifter.single(value))


def check_division(lifter: Lifter) -> None:
    """FCHK: whether a / b needs the slow way: exponents at the ends, or too far apart."""
    to, a, b = lifter.require(3)
    exponents = []
    for each in (a, b):
        bits = lifter.compute("mov.b32", lifter.single(each))
        exponent = lifter.compute("bfe.u32", bits, "23", "8")
        exponents.append(exponent)
    difference = lifter.compute("sub.s32", *exponents)
    total = lifter.compute("setp.ge.s32", difference, "126", kind="p")
    tests = (
        ("setp.le.or.s32", difference, "-126"),
        ("setp.le.or.u32", exponents[0], "24"),
        ("setp.eq.or.u32", exponents[0], "255"),
        ("setp.eq.or.u32", exponents[1], "0"),
        ("setp.ge.or.u32", exponents[1], "253"),
    )
    for operation, *values in tests:
        total = lifter.compute(operation, *values, total, kind="p")
    lifter.emit("mov.pred", lifter.to(to), total)


def _pair(name: str) -> Handler:
    """Return the function of FADD2, FMUL2 or FFMA2: of two f32."""

    def lift(lifter: Lifter) -> None:
        rounding, flush = lifter.one(ROUNDINGS, ".rn"), ".ftz" * lifter.has("FTZ")
        to, *sources = lifter.require(4 if name == "fma" else 3)
        values = []
        for each in sources:
            if each.suffix != ("F32x2", "HI_LO") or each.absolute:
                raise lifter.refuse(f"cutrace does not know the operand `{each.text}` here")
            value = lifter.wide(replace(each, suffix=(), negative=False))
            if each.negative:
                value = lifter.compute("xor.b64", value, "0x8000000080000000", kind="d")
            values.append(value)
        output = lifter.compute(f"{name}{rounding}{flush}.f32x2", *values, kind="d")
        lifter.put_wide(to, output)

    return lift


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("FSETP", "DSETP"), compare_floats),
    "FSET": set_float,
    **dict.fromkeys(("FMNMX", "FMNMX3"), extreme_float),
    "FADD": _float("add"),
    "FADD2": _pair("add"),
    "FMUL2": _pair("mul"),
    "FFMA2": _pair("fma"),
    "FMUL": _float("mul"),
    "FFMA": _float("fma"),
    "FHADD": _mixed("add"),
    "FHFMA": _mixed("fma"),
    "DADD": _double("add"),
    "DMUL": _double("mul"),
    "DFMA": _double("fma"),
    "MUFU": function,
    "FCHK": check_division,
}
