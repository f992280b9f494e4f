"""Arithmetic of machine code on pairs of f16 or bf16."""

from collections.abc import Mapping
from dataclasses import replace

from .arithmetic import JOINTS, choose, compare_into
from .floating import FLOAT_ORDERS, without_signs
from .lift import Handler, Lifter
from .operand import Operand

_HALVES = {"H0_H0": (0, 0), "H1_H1": (1, 1), "H1_H0": (1, 0), "H0_NH1": None}


def _packed(lifter: Lifter, operand: Operand) -> str:
    """Return a pair of halves."""
    if operand.kind == "#":
        return str(lifter.now.immediate)
    if operand.inverted:
        raise lifter.refuse(f"cutrace does not know the operand `{operand.text}` here")
    if operand.is_zero:
        value = "0"
    elif operand.kind == "c":
        value = lifter.constant(operand.text.partition(".")[0], 4)
    else:
        value = f"%{operand.text.partition('.')[0]}"
    if operand.suffix == ("F32",):  # of 7.5: an f32, cut off
        half, value = lifter.new("h"), lifter.single(replace(operand, suffix=()))
        lifter.emit("cvt.rz.f16.f32", half, value)
        return lifter.compute("mov.b32", f"{{{half}, {half}}}")
    halves = _HALVES.get(operand.suffix[0]) if operand.suffix else (1, 0)
    if halves is None or len(operand.suffix) > 1:
        raise lifter.refuse(f"cutrace does not know the operand `{operand.text}` here")
    if halves != (1, 0) and value != "0":
        value = lifter.compute("prmt.b32", value, "0", "0x1010" if halves == (0, 0) else "0x3232")
    if operand.absolute:
        value = lifter.compute("and.b32", value, "0x7fff7fff")
    if operand.negative:
        value = lifter.compute("xor.b32", value, "0x80008000")
    return value


def _half(name: str) -> Handler:
    """Return the function of HADD2, HMUL2 or HFMA2."""

    def lift(lifter: Lifter) -> None:
        operands = _joined_immediates(lifter)
        lifter.take("MMA")
        is_wide = name == "add" and lifter.has("F32")
        kind = "bf16x2" if lifter.has("BF16_V2", "BF16") else "f16x2"
        form = "".join(f".{m.lower()}" for m in ("FTZ", "SAT", "OOB", "RELU") if lifter.has(m))
        lifter.operands = operands
        to, *values = lifter.require(4 if name == "fma" else 3)
        if is_wide:
            _widen(lifter, to, values, "sat" in form)
            return
        if name == "fma" and values[0].is_zero and values[1].is_zero and values[2].kind == "#":
            lifter.emit("mov.b32", lifter.to(to), str(lifter.now.immediate))  # a constant
            return
        lifter.emit(f"{name}.rn{form}.{kind}", lifter.to(to), *(_packed(lifter, v) for v in values))

    return lift


def _compared_halves(lifter: Lifter) -> tuple[list[Operand], str, list[tuple[str, str]], str]:
    """Return the results of HSETP2 or HSET2, how to join, the two pairs of f32, and the type."""
    joint, order = lifter.one(JOINTS), lifter.one(FLOAT_ORDERS)
    kind = "bf16" if lifter.has("BF16_V2", "BF16") else "f16"
    flushes = kind == "f16" and lifter.has("FTZ")
    lifter.operands = _joined_immediates(lifter)
    *written, a, b, _ = lifter.require(5 if lifter.opcode == "HSETP2" else 4)
    pairs = [_packed(lifter, each) for each in (a, b)]
    if flushes:
        pairs = [lifter.compute("mul.rn.ftz.f16x2", pair, "0x3c003c00") for pair in pairs]
    low, high = zip(*(_floats(lifter, each, kind) for each in pairs), strict=True)
    return written, joint, [low, high], f"setp.{order}.f32"


def _floats(lifter: Lifter, pair: str, kind: str) -> list[str]:
    """Return the two halves of a pair as f32."""
    values = []
    for by in ("0", "16"):
        moved = lifter.compute("shr.u32", pair, by)
        half = lifter.compute("cvt.u16.u32", moved, kind="h")
        value = lifter.compute(f"cvt.f32.{kind}", half)
        values.append(value)
    return values


def compare_halves(lifter: Lifter) -> None:
    """HSETP2: the first predicate compares the lower halves, the second the upper ones."""
    written, joint, pairs, operation = _compared_halves(lifter)
    other = lifter.truth(lifter.operands[-1])
    if isinstance(other, str):  # the first result may be the predicate that both are joined with
        other = lifter.compute(
            "not.pred" if other[0] == "!" else "mov.pred", other.lstrip("!"), kind="p"
        )
    for to, pair in zip(written, pairs, strict=True):
        if to.number >= 0:
            compare_into(lifter, operation, joint, [to], pair, other)


def set_halves(lifter: Lifter) -> None:
    """HSET2: all bits of each half, or with BF 1, where the comparison holds."""
    is_float = lifter.has("BF")
    one = ("0x3f80" if "BF16_V2" in lifter.modifiers else "0x3c00") if is_float else "0xffff"
    (to,), joint, pairs, operation = _compared_halves(lifter)
    other, parts = lifter.truth(lifter.operands[-1]), []
    for pair, by in zip(pairs, ("", "0000"), strict=True):
        holds, part = Operand("P", lifter.new("p")[1:]), lifter.new()
        compare_into(lifter, operation, joint, [holds], pair, other)
        lifter.emit("selp.b32", part, one + by, "0", f"%{holds.text}")
        parts.append(part)
    lifter.emit("or.b32", lifter.to(to), *parts)


def extreme_halves(lifter: Lifter) -> None:
    """HMNMX2, and VHMNMX of three."""
    kind = "bf16x2" if lifter.has("BF16_V2", "BF16") else "f16x2"
    signs = lifter.has("XORSIGN")
    form = f"{'.ftz' * lifter.has('FTZ')}{'.NaN' * lifter.has('NAN')}"
    form = f"{form}{'.xorsign.abs' * signs}.{kind}"
    lifter.operands = _joined_immediates(lifter)
    _, *values, which = lifter.require(5 if lifter.opcode == "VHMNMX" else 4)
    values = without_signs(lifter, values) if signs else values
    pairs = [_packed(lifter, each) for each in values]
    choose(lifter, which, lambda name: f"{name}{form}", pairs, "b32")


def _joined_immediates(lifter: Lifter) -> list[Operand]:
    """Return the operands, with the two halves of an immediate as one."""
    joined: list[Operand] = []
    for each in lifter.operands:
        if each.kind == "#" and joined and joined[-1].kind == "#":
            continue
        joined.append(each)
    return joined


def _widen(lifter: Lifter, to: Operand, values: list[Operand], saturates: bool) -> None:
    """Lift HADD2.F32: one half as an f32, for the other summand is -0."""
    zero, value = values if values[0].is_zero else reversed(values)
    lifter.refuse_if(not zero.is_zero or not zero.negative or not value.suffix)
    lifter.refuse_if(saturates and (value.negative or value.absolute))
    half, moved = lifter.new("h"), lifter.new()
    by = {"H0_H0": "0", "H1_H1": "16"}.get(value.suffix[0])
    if by is None:
        raise lifter.refuse("cutrace does not know this form")
    lifter.emit("shr.u32", moved, f"%{value.text.partition('.')[0]}", by)
    lifter.emit("cvt.u16.u32", half, moved)
    if saturates:
        lifter.emit("cvt.sat.f32.f16", lifter.to(to), half)
        return
    output = lifter.to(to) if not (value.negative or value.absolute) else lifter.new()
    lifter.emit("cvt.f32.f16", output, half)
    if value.absolute:
        lifter.emit("abs.f32", output if value.negative else lifter.to(to), output)
    if value.negative:
        lifter.emit("neg.f32", lifter.to(to), output)


HANDLERS: Mapping[str, Handler] = {
    "HADD2": _half("add"),
    "HMUL2": _half("mul"),
    "HFMA2": _half("fma"),
    "HSETP2": compare_halves,
    "HSET2": set_halves,
    **dict.fromkeys(("HMNMX2", "VHMNMX"), extreme_halves),
}
