"""Arithmetic of machine code, an opcode a function: integers, bits, predicates, numbers.

A function takes the `Lifter` with its present instruction. It removes the modifiers that it knows,
and refuses the instruction if others are left. Uniform forms (UIADD3) have the same functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from .lift import SHARED_WINDOW, ZERO, Lifter, Operand, registers

Handler = Callable[[Lifter], None]

_AXES = {"X": "x", "Y": "y", "Z": "z"}
_SPECIAL = {
    **{f"SR_TID.{axis}": f"%tid.{low}" for axis, low in _AXES.items()},
    **{f"SR_CTAID.{axis}": f"%ctaid.{low}" for axis, low in _AXES.items()},
    "SR_LANEID": "%laneid",
    "SR_EQMASK": "%lanemask_eq",
    "SR_LTMASK": "%lanemask_lt",
    "SR_LEMASK": "%lanemask_le",
    "SR_GTMASK": "%lanemask_gt",
    "SR_GEMASK": "%lanemask_ge",
    "SR_CLOCKLO": "%clock",
    "SR_CLOCKHI": "%clock_hi",
    "SR_GLOBALTIMERLO": "%globaltimer_lo",
    "SR_GLOBALTIMERHI": "%globaltimer_hi",
    "SR_VIRTUALSMID": "%smid",
    "SR_CgaCtaId": "%cluster_ctarank",
    "SR_CgaSize": "0",
    "SR_SMEMSZ": "%total_smem_size",
}
_WIDE = {"SRZ": "0", "SR_CLOCKLO": "%clock64", "SR_GLOBALTIMERLO": "%globaltimer"}
_IN_SECOND_BYTE = {"SR_VIRTID": "%warpid", "SR_VIRTCFG": "%nwarpid"}
"""Registers of which the bits from 8 on are wanted."""


def nothing(lifter: Lifter) -> None:
    """Lift an instruction that has no effect here."""
    lifter.emit("nanosleep.u32", "0")


def load_place(lifter: Lifter) -> None:
    """LEPC: the address of this instruction, or another, as a return behind it expects."""
    to, *place = lifter.require(1, 2)
    lifter.put_wide(to, str(place[0].number if place else lifter.now.address))


def _split(lifter: Lifter, sources: int) -> tuple[list[Operand], list[Operand], list[Operand]]:
    """Return predicates that are written, the sources behind them, and predicates behind those."""
    if lifter.modifiers:
        lifter.require()
    operands = lifter.operands[1:]
    written: list[Operand] = []
    while operands and operands[0].kind == "P":
        written.append(operands.pop(0))
    between, predicates = operands[:sources], operands[sources:]
    lifter.refuse_if(
        len(between) != sources or any(o.kind != "P" for o in predicates) or len(written) > 2
    )
    return written, between, predicates


def _is_written(predicates: list[Operand]) -> bool:
    return any(o.number >= 0 for o in predicates)


def _extended(lifter: Lifter, value: str, signed: bool = False) -> str:
    output = lifter.new("d")
    if value[0] == "%":
        lifter.emit("cvt.s64.s32" if signed else "cvt.u64.u32", output, value)
        return output
    number = int(value, 0) & 0xFFFFFFFF
    return str(number - (1 << 32) if signed and number >> 31 else number)


def _summand(lifter: Lifter, operand: Operand, extended: bool) -> tuple[str, int]:
    """Return a summand of a sum with carries as 64 bits, and what its sign adds.

    A negative one is its complement and 1, both without a sign: -0 has a carry.
    """
    if operand.suffix or operand.absolute:
        raise lifter.refuse(f"cutrace does not know the operand `{operand.text}` here")
    value = lifter.plain(operand)
    if operand.negative or operand.inverted:
        value = lifter.compute("not.b32", value)
    return _extended(lifter, value), int(operand.negative)


def _carry_in(lifter: Lifter, operand: Operand, total: str) -> str:
    carry = lifter.number_if(operand, "1", 64)
    return total if carry == "0" else lifter.compute("add.u64", total, carry, kind="d")


def _put_carries(lifter: Lifter, written: list[Operand], total: str, unit: int = 32) -> None:
    for number, operand in enumerate(written, 1):
        if operand.number >= 0:
            lifter.emit("setp.ge.u64", lifter.to(operand), total, str(number << unit))


def add3(lifter: Lifter) -> None:
    """IADD3, IADD and VIADD: a + b + c, with carries."""
    if lifter.has("64"):
        return _add_wide(lifter)
    if lifter.has("16x2"):
        to, a, b = lifter.require(3)
        lifter.emit("add.u16x2", lifter.to(to), lifter.word(a), lifter.word(b))
        return None
    if lifter.has("U8x4", "S8x4"):
        to, a, b = lifter.require(3)
        words = [lifter.word(a), lifter.word(replace(b, negative=False)), "0"]
        verb = "vsub4" if b.negative else "vadd4"
        lifter.emit(f"{verb}.u32.u32.u32", lifter.to(to), *words)
        return None
    extended, saturates = lifter.has("X"), lifter.has("ISAT", "SAT")
    lifter.take("U32", "S32")
    sources = 3 if lifter.opcode.endswith("IADD3") else 2
    written, values, predicates = _split(lifter, sources)
    if saturates:
        zeros = [each for each in values if each.is_zero]
        others = [each for each in values if not each.is_zero]
        a, b, *third = sorted([*others, *zeros][:2], key=lambda each: each.negative) + others[2:]
        lifter.refuse_if(extended or _is_written(written) or a.negative or third)
        form = "sub.sat.s32" if b.negative else "add.sat.s32"
        lifter.emit(form, lifter.to(lifter.operands[0]), lifter.word(a),
                    lifter.word(replace(b, negative=False)))  # fmt: skip
        return None
    if not extended and not _is_written(written):
        first, *more = [o for o in values if not o.is_zero] or [ZERO]
        total = lifter.word(first)
        for number, each in enumerate(more):
            last = number == len(more) - 1
            output = lifter.to(lifter.operands[0]) if last else lifter.new()
            if each.negative and not each.inverted and not each.absolute:
                lifter.emit("sub.s32", output, total, lifter.plain(each))
            else:
                lifter.emit("add.s32", output, total, lifter.word(each))
            total = output
        if not more:
            lifter.emit("mov.b32", lifter.to(lifter.operands[0]), total)
        return None
    total, extra = "0", 0
    for each in values:
        if each.is_zero and not each.inverted and not each.negative:
            continue
        value, sign = _summand(lifter, each, extended)
        extra += sign
        total = lifter.compute("add.u64", total, value, kind="d")
    if extra:
        total = lifter.compute("add.u64", total, str(extra), kind="d")
    for each in predicates if extended else ():
        total = _carry_in(lifter, each, total)
    if total == "0":
        total = lifter.compute("mov.b64", "0", kind="d")
    if lifter.operands[0].number >= 0:
        lifter.emit("cvt.u32.u64", lifter.to(lifter.operands[0]), total)
    _put_carries(lifter, written, total)
    return None


def _add_wide(lifter: Lifter) -> None:
    extended = lifter.has("X")
    written, values, predicates = _split(lifter, 3 if lifter.opcode.endswith("3") else 2)
    if not _is_written(written) and not extended:
        total = lifter.wide(values[0])
        for each in values[1:]:
            total = lifter.compute("add.s64", total, lifter.wide(each), kind="d")
        lifter.put_wide(lifter.operands[0], total)
        return
    lifter.refuse_if(len(values) > 2 or len(written) > 1 or len(predicates) != extended)
    total, carries = "0", list[str]()
    for each in values:  # a negative one is its complement and 1
        value = lifter.wide(replace(each, negative=False, inverted=False))
        if each.negative or each.inverted:
            value = lifter.compute("not.b64", value, kind="d")
        total = _sum_with_carry(lifter, total, value, carries)
        if each.negative:
            total = _sum_with_carry(lifter, total, "1", carries)
    if extended:
        one = lifter.compute("selp.b64", "1", "0", lifter.predicate(predicates[0]), kind="d")
        total = _sum_with_carry(lifter, total, one, carries)
    if _is_written(written):
        holds = carries[0]
        for carry in carries[1:]:
            holds = lifter.compute("or.pred", holds, carry, kind="p")
        lifter.emit("mov.pred", lifter.to(written[0]), holds)
    lifter.put_wide(lifter.operands[0], total)


def _sum_with_carry(lifter: Lifter, total: str, value: str, carries: list[str]) -> str:
    if total == "0":
        return value
    output = lifter.compute("add.u64", total, value, kind="d")
    carry = lifter.compute("setp.lt.u64", output, value, kind="p")
    carries.append(carry)
    return output


def multiply_add(lifter: Lifter) -> None:
    """IMAD: a * b + c; the low or the high word, or all of it."""
    kinds = lifter.take("WIDE", "HI", "MOV", "SHL", "IADD")
    signed = not lifter.has("U32")
    extended = lifter.has("X")
    written, (a, b, c), predicates = _split(lifter, 3)
    if "WIDE" in kinds or "HI" in kinds:
        return _multiply_wide(
            lifter, "HI" in kinds, signed, extended, written, (a, b, c), predicates
        )
    lifter.refuse_if(written)
    to = lifter.to(lifter.operands[0])
    if extended:
        carry = lifter.number_if(predicates[0], "1") if predicates else "0"
        total = lifter.compute("mad.lo.s32", lifter.word(a), lifter.word(b), lifter.word(c))
        lifter.emit("add.s32", to, total, carry)
    elif a.is_zero or b.is_zero:
        lifter.emit("mov.b32", to, lifter.word(c))
    elif b.kind == "#" and b.number == 1:
        lifter.emit("add.s32", to, lifter.word(a), lifter.word(c))
    elif c.is_zero:
        lifter.emit("mul.lo.s32", to, lifter.word(a), lifter.word(b))
    else:
        lifter.emit("mad.lo.s32", to, lifter.word(a), lifter.word(b), lifter.word(c))
    return None


def _multiply_wide(
    lifter: Lifter, high: bool, signed: bool, extended: bool, written: list[Operand],
    sources: tuple[Operand, Operand, Operand], predicates: list[Operand],
) -> None:  # fmt: skip
    a, b, c = sources
    kind = "s" if signed else "u"
    product = lifter.compute(f"mul.wide.{kind}32", lifter.word(a), lifter.word(b), kind="d")
    total = product
    if not c.is_zero:
        total = lifter.compute("add.s64", product, lifter.wide(c), kind="d")
    if extended:
        for each in predicates:
            total = _carry_in(lifter, each, total)
    if _is_written(written):
        lifter.refuse_if(extended or len(written) > 1)
        lifter.emit("setp.lt.u64", lifter.to(written[0]), total, product)
    if high:
        lifter.emit(
            "mov.b64", f"{{{lifter.new()}, {lifter.to(lifter.operands[0])}}}", total, guarded=True
        )
    else:
        lifter.put_wide(lifter.operands[0], total)


def shifted_add(lifter: Lifter) -> None:
    """LEA: (a << n) + b, or with HI the upper word of the shifted pair and b.

    A sign of a is that of the shifted word.
    """
    high, extended, signed = lifter.has("HI"), lifter.has("X"), lifter.has("SX32")
    count = 4 if high and not signed else 3
    written, values, predicates = _split(lifter, count)
    a, b, *upper, shift = values
    lifter.refuse_if(shift.kind != "#" or a.absolute or a.suffix)
    to = lifter.operands[0]
    number = shift.number & 31
    part = lifter.new()
    if high:
        pair, shifted = lifter.new("d"), lifter.new("d")
        if signed:
            lifter.emit("mov.b64", pair, _extended(lifter, lifter.plain(a), signed=True))
        else:
            words = (lifter.plain(a), lifter.word(upper[0]))
            halves = ", ".join(_as_register(lifter, word) for word in words)
            lifter.emit("mov.b64", pair, f"{{{halves}}}")
        lifter.emit("shl.b64", shifted, pair, str(number))
        lifter.emit("mov.b64", f"{{{lifter.new()}, {part}}}", shifted, guarded=False)
    else:
        lifter.emit("shl.b32", part, lifter.plain(a), str(number))
    carries = extended or _is_written(written)
    if not carries and not a.negative and not a.inverted:
        lifter.emit("add.s32", lifter.to(to), part, lifter.word(b))
        return
    if a.negative or a.inverted:
        lifter.emit("not.b32", part, part)
    value, extra = _summand(lifter, b, extended)
    extra += a.negative
    total = lifter.compute("add.u64", _extended(lifter, part), value, kind="d")
    if extra:
        total = lifter.compute("add.u64", total, str(extra), kind="d")
    for each in predicates if extended else ():
        total = _carry_in(lifter, each, total)
    lifter.emit("cvt.u32.u64", lifter.to(to), total)
    _put_carries(lifter, written, total)


def _as_register(lifter: Lifter, value: str) -> str:
    if value[0] == "%":
        return value
    return lifter.compute("mov.b32", value)


_LOGIC = {0xC0: "and.b32", 0xFC: "or.b32", 0x3C: "xor.b32"}


def logic(lifter: Lifter) -> None:
    """LOP3: any function of three bits; before it a predicate, whether the result is not 0."""
    both = lifter.has("PAND")
    lifter.take("LUT")
    *written, to, a, b, c, table, other = lifter.require(6, 7)
    lifter.refuse_if(table.kind != "#" or any(o.kind != "P" for o in (*written, other)))
    number = table.number & 0xFF
    output = lifter.new() if _is_written(written) else lifter.to(to)
    if c.is_zero and not c.inverted and number in _LOGIC:
        lifter.emit(_LOGIC[number], output, lifter.word(a), lifter.word(b))
    else:
        lifter.emit("lop3.b32", output, lifter.word(a), lifter.word(b), lifter.word(c), str(number))
    if _is_written(written):
        if to.number >= 0:
            lifter.emit("mov.b32", lifter.to(to), output)
        joint = "and" if both else "or"
        _compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), lifter.truth(other))


def _compare_into(
    lifter: Lifter, operation: str, joint: str, written: list[Operand], values: tuple[str, str],
    other: str | bool,
) -> None:  # fmt: skip
    """Write a comparison, joined with a predicate, and its opposite, joined likewise."""
    name, _, kind = operation.rpartition(".")
    to = lifter.to(written[0])
    second = written[1] if len(written) > 1 and written[1].number >= 0 else None
    if isinstance(other, bool):
        neutral = (joint == "and") == other if joint != "xor" else not other
        if neutral and second is None:
            lifter.emit(operation, to, *values)
            return
        if neutral and second is not None:
            lifter.emit(operation, f"{to}|{lifter.to(second)}", *values, guarded=True)
            return
        other = lifter.compute(f"setp.{'eq' if other else 'ne'}.u32", "0", "0", kind="p")
    results = f"{to}|{lifter.to(second)}" if second else to
    lifter.emit(f"{name}.{joint}.{kind}", results, *values, other, guarded=True)


_JOINTS = {"AND": "and", "OR": "or", "XOR": "xor"}
_ORDERS = {name: name.lower() for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}
_FLOAT_ORDERS = {
    **_ORDERS,
    **{f"{name}U": f"{name.lower()}u" for name in ("EQ", "NE", "LT", "LE", "GT", "GE")},
    "NUM": "num",
    "NAN": "nan",
}


def compare_integers(lifter: Lifter) -> None:
    """ISETP: with EX it compares the upper words of a pair after the lower ones."""
    joint = lifter.one(_JOINTS)
    order = lifter.one(_ORDERS)
    wide = lifter.one({"U64": "u64", "S64": "s64", "64": "s64"}, "")
    kind = "u32" if lifter.has("U32") else "s32"
    extended = lifter.has("EX")
    first, second, a, b, other, *low = lifter.require(6 if extended else 5)
    written = [first, second]
    if wide:
        pairs = lifter.wide(a), lifter.wide(b)
        _compare_into(lifter, f"setp.{order}.{wide}", joint, written, pairs, lifter.truth(other))
        return
    x, y = lifter.word(a), lifter.word(b)
    if not extended:
        _compare_into(lifter, f"setp.{order}.{kind}", joint, written, (x, y), lifter.truth(other))
        return
    strict = order.replace("le", "lt").replace("ge", "gt")
    result = lifter.compute("setp.eq.and.u32", x, y, lifter.predicate(low[0]), kind="p")
    if order != "eq":
        above = lifter.compute(f"setp.{strict}.{kind}", x, y, kind="p")
        result = lifter.compute("or.pred", above, result, kind="p")
    output = lifter.compute("selp.u32", "1", "0", result)
    _compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), lifter.truth(other))


def compare_floats(lifter: Lifter) -> None:
    """FSETP and DSETP."""
    if lifter.opcode == "DSETP" and (name := lifter.one({"MIN": "min", "MAX": "max"}, "")):
        _choose_double(lifter, name)
        return
    joint, order, flush = lifter.one(_JOINTS), lifter.one(_FLOAT_ORDERS), lifter.has("FTZ")
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
        _compare_into(lifter, f"{name}.{kind}", joint, [first, second], values, lifter.truth(other))


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
    _compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), other)


def logic_of_predicates(lifter: Lifter) -> None:
    """PLOP3: any function of three predicates, and a second one of the same."""
    lifter.take("LUT")
    first, second, a, b, c, table, other = lifter.require(7)
    words = []
    for each in (a, b, c):
        if each.suffix == ("SIGN",):
            sign = lifter.compute("shr.s32", lifter.plain(each), "31")
            lifter.refuse_if(each.negative or each.absolute)
            if each.inverted:
                lifter.emit("not.b32", sign, sign)
            words.append(sign)
            continue
        words.append(lifter.number_if(each, "-1"))
    results = []
    for to, numbers in ((first, table), (second, other)):
        if to.number >= 0:
            output = lifter.compute("lop3.b32", *words, str(numbers.number & 0xFF))
            results.append((to, output))
    for to, output in results:
        lifter.emit("setp.ne.u32", lifter.to(to), output, "0")


def move(lifter: Lifter) -> None:
    """MOV, UMOV and R2UR."""
    if lifter.has("64"):
        to, value = lifter.require(2)
        lifter.put_wide(to, lifter.wide(value))
        return
    operands = lifter.require(2, 3)
    lifter.refuse_if(len(operands) == 3 and operands[2].number != 0xF)
    value = operands[1]
    if value.kind == "#" and not _is_integer(value.text):
        lifter.emit("mov.b32", lifter.to(operands[0]), str(lifter.now.immediate))
    else:
        lifter.emit("mov.b32", lifter.to(operands[0]), lifter.word(value))


def _is_integer(text: str) -> bool:
    return text.lstrip("-").startswith("0x") or text.lstrip("-").isdigit()


def select(lifter: Lifter) -> None:
    """SEL and FSEL: a if the predicate holds, else b."""
    lifter.take("FTZ")
    if lifter.has("64"):
        to, a, b, which = lifter.require(4)
        output, first, second = lifter.new("d"), lifter.wide(a), lifter.wide(b)
    else:
        to, a, b, which = lifter.require(4)
        output = lifter.to(to)
        read = lifter.single if lifter.opcode.endswith("FSEL") else lifter.word
        first, second = read(a), read(b)
    holds = lifter.truth(which)
    bits = "b64" if output.startswith("%td") else "f32" if lifter.opcode.endswith("FSEL") else "b32"
    if isinstance(holds, bool):
        lifter.emit(f"mov.{bits}", output, first if holds else second)
    else:
        if holds[0] == "!":
            first, second = second, first
        lifter.emit(f"selp.{bits}", output, first, second, holds.lstrip("!"))
    if bits == "b64":
        lifter.put_wide(to, output)


def shift(lifter: Lifter) -> None:
    """SHF: the pair of a and c, shifted by b."""
    left = lifter.one({"L": "L", "R": "R"}) == "L"
    kind = lifter.one({name: name for name in ("U32", "S32", "U64", "S64")})
    wraps, high = lifter.has("W"), lifter.has("HI")
    to, low, by, upper = lifter.require(4)
    signed = kind[0] == "S"
    if kind.endswith("32"):
        value = lifter.word(upper if high else low)
        count = lifter.word(by)
        if wraps and count[0] != "%":
            count = str(int(count, 0) & 31)
        elif wraps:
            count = lifter.compute("and.b32", count, "31")
        if high == left:  # bits of the other word
            other = lifter.word(low if high else upper)
            lower, over = (other, value) if high else (value, other)
            if not (low if high else upper).is_zero:
                form = "wrap" if wraps else "clamp"
                lifter.emit(
                    f"shf.{'l' if left else 'r'}.{form}.b32", lifter.to(to), lower, over, count
                )
                return
        operation = "shl.b32" if left else f"shr.{'s' if signed else 'u'}32"
        lifter.emit(operation, lifter.to(to), value, count)
        return
    pair = lifter.compute(
        "mov.b64",
        f"{{{_as_register(lifter, lifter.word(low))}, {_as_register(lifter, lifter.word(upper))}}}",
        kind="d",
    )
    count = lifter.word(by)
    if wraps:
        count = lifter.compute("and.b32", count, "63")
    moved = lifter.new("d")
    operation = "shl.b64" if left else f"shr.{'s' if signed else 'u'}64"
    lifter.emit(operation, moved, pair, count)
    halves = [lifter.new(), lifter.to(to)] if high else [lifter.to(to), lifter.new()]
    lifter.emit("mov.b64", f"{{{', '.join(halves)}}}", moved, guarded=True)


def permute(lifter: Lifter) -> None:
    """PRMT: bytes of a and c that b selects."""
    forms = {"F4E": ".f4e", "B4E": ".b4e", "RC8": ".rc8", "ECL": ".ecl", "ECR": ".ecr"}
    form = lifter.one({**forms, "RC16": ".rc16"}, "")
    to, a, by, c = lifter.require(4)
    lifter.emit(f"prmt.b32{form}", lifter.to(to), lifter.word(a), lifter.word(c), lifter.word(by))


def extreme(lifter: Lifter) -> None:
    """IMNMX, VIMNMX, VIMNMX3, VIADDMNMX: the least if the predicate holds, else the greatest."""
    if kind := lifter.one({"U8x4": "u32", "S8x4": "s32"}, ""):
        to, *pair, which = lifter.require(4)
        words = [lifter.word(each) for each in pair]
        lifter.operands = [to]
        _choose(lifter, which, lambda name: f"v{name}4.{kind}.{kind}.{kind}", words, "b32", "0")
        return
    kinds = {"U32": "u32", "S32": "s32", "U16x2": "u16x2", "S16x2": "s16x2"}
    kind = ".relu." * lifter.has("RELU") + lifter.one(kinds, "s32")
    sources = 3 if lifter.opcode.endswith(("3", "VIADDMNMX")) else 2
    wide = lifter.one({"U64": "u64", "S64": "s64", "64": "s64"}, "")
    if wide and lifter.operands[0].kind == "P" and len(lifter.operands) == 7:
        first, second, to, a, b, which, other = lifter.operands
        if lifter.truth(other) is False:
            lifter.operands = [to, first, second, a, b, which]
    written, values, (which,) = _split(lifter, sources)
    lifter.refuse_if(_is_written(written) or (wide and len(values) > 2))
    if wide:
        least, most = (
            lifter.compute(f"{name}.{wide}", *map(lifter.wide, values), kind="d")
            for name in ("min", "max")
        )
        limit = lifter.compute("selp.b64", least, most, lifter.predicate(which), kind="d")
        lifter.put_wide(lifter.operands[0], limit)
        return
    words = [lifter.word(each) for each in values]
    if lifter.opcode.endswith("VIADDMNMX"):
        output = lifter.compute("add.s32", words[0], words[1])
        words = [output, words[2]]
    _choose(lifter, which, lambda name: f"{name}.{kind}".replace("..", "."), words, "b32")


def extreme_float(lifter: Lifter) -> None:
    """FMNMX and FMNMX3."""
    flush, spreads, signs = lifter.has("FTZ"), lifter.has("NAN"), lifter.has("XORSIGN")
    sources = 3 if lifter.opcode.endswith("3") else 2
    _, values, (which,) = _split(lifter, sources)
    values = _without_signs(lifter, values) if signs else values
    suffix = f"{'.ftz' * flush}{'.NaN' * spreads}{'.xorsign.abs' * signs}.f32"
    _choose(
        lifter, which, lambda name: f"{name}{suffix}", [lifter.single(v) for v in values], "b32"
    )


def _without_signs(lifter: Lifter, values: list[Operand]) -> list[Operand]:
    """Return the operands of a comparison of absolute values, without that modifier."""
    lifter.refuse_if(not all(each.absolute and not each.negative for each in values))
    return [replace(each, absolute=False) for each in values]


def _choose(
    lifter: Lifter, which: Operand, named: Callable[[str], str], values: list[str], bits: str,
    *more: str,
) -> None:  # fmt: skip
    to, holds = lifter.to(lifter.operands[0]), lifter.truth(which)
    names = [("min" if holds else "max")] if isinstance(holds, bool) else ["min", "max"]
    results = []
    for name in names:
        total = values[0]
        for number, each in enumerate(values[1:]):
            ends = number == len(values) - 2 and len(names) == 1
            output = to if ends else lifter.new()
            lifter.emit(named(name), output, total, each, *more)
            total = output
        results.append(total)
    if not isinstance(holds, bool):
        if holds[0] == "!":
            results.reverse()
        lifter.emit(f"selp.{bits}", to, *results, holds.lstrip("!"))


def _unary(operation: str) -> Handler:
    def lift(lifter: Lifter) -> None:
        to, value = lifter.require(2)
        lifter.emit(operation, lifter.to(to), lifter.word(value))

    return lift


def find_leading(lifter: Lifter) -> None:
    """FLO: the highest bit that is set, or its distance from the top."""
    signed = not lifter.has("U32")
    form = ".shiftamt" if lifter.has("SH") else ""
    _, (value,), _ = _split(lifter, 1)
    lifter.emit(
        f"bfind{form}.{'s' if signed else 'u'}32", lifter.to(lifter.operands[0]), lifter.word(value)
    )


def extend_sign(lifter: Lifter) -> None:
    """SGXT: the lowest b bits of a, with its sign or zeros above."""
    signed, wraps = not lifter.has("U32"), lifter.has("W")
    to, value, width = lifter.require(3)
    if width.kind == "#":
        bits = str(width.number & 31 if wraps else min(width.number & 0xFFFFFFFF, 32))
    else:
        bits = lifter.compute("and.b32" if wraps else "min.u32", lifter.word(width), "31" if wraps
                    else "32")  # fmt: skip
    lifter.emit(f"bfe.{'s' if signed else 'u'}32", lifter.to(to), lifter.word(value), "0", bits)


def mask_of_bits(lifter: Lifter) -> None:
    """BMSK: b ones from bit a on."""
    wraps = lifter.has("W")
    to, start, width = lifter.require(3)
    lifter.emit(
        f"bmsk.{'wrap' if wraps else 'clamp'}.b32",
        lifter.to(to),
        lifter.word(start),
        lifter.word(width),
    )


def special(lifter: Lifter) -> None:
    """S2R, S2UR and CS2R: a special register."""
    wide = lifter.opcode == "CS2R" and not lifter.has("32")
    to, _ = lifter.operands
    name = lifter.now.operands[1]
    if wide and name in _WIDE:
        output = lifter.compute("mov.u64", _WIDE[name], kind="d")
        lifter.put_wide(to, output)
    elif name == "SRZ":
        lifter.emit("mov.u32", lifter.to(to), "0")
    elif name == "SR_SWINHI":
        lifter.emit("mov.u32", lifter.to(to), str(SHARED_WINDOW))
    elif name in _IN_SECOND_BYTE:
        warp = lifter.compute("mov.u32", _IN_SECOND_BYTE[name])
        lifter.emit("shl.b32", lifter.to(to), warp, "8")
    elif name in _SPECIAL and not wide:
        lifter.emit("mov.u32", lifter.to(to), _SPECIAL[name])
    else:
        raise lifter.refuse("cutrace does not know this special register")


_NARROW = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}


def load_constant(lifter: Lifter) -> None:
    """LDC, ULDC and LDCU: a constant."""
    narrow = lifter.take(*_NARROW)
    wide, widest = lifter.has("64"), lifter.has("128")
    to, place = lifter.require(2)
    if widest:
        _load_four(lifter, to, place)
        return
    lifter.refuse_if(place.kind != "c" or place.suffix or len(narrow) + wide > 1)
    if wide:
        lifter.put_wide(to, lifter.wide(place))
    elif narrow:
        value = lifter.constant(place.text, _NARROW[narrow[0]], narrow[0].lower())
        lifter.emit("mov.b32", lifter.to(to), value)
    else:
        lifter.emit("mov.b32", lifter.to(to), lifter.word(place))


def _load_four(lifter: Lifter, to: Operand, place: Operand) -> None:
    bank, _, offset = place.text.rstrip("]").rpartition("[")
    lifter.refuse_if(place.kind != "c" or place.suffix or to.is_zero or not offset.startswith("0x"))
    names = registers(to, 4)
    for more, pair in ((0, names[:2]), (8, names[2:])):
        value = lifter.constant(f"{bank}[{int(offset, 16) + more:#x}]", 8)
        lifter.emit("mov.b64", f"{{{', '.join(pair)}}}", value, guarded=True)


def _all_predicates(lifter: Lifter) -> tuple[list[Operand], int]:
    """Return the operands without PR, all predicates, which nvdisasm may leave out, and the first
    bit of the byte that is meant."""
    byte = 8 * int(lifter.one({f"B{n}": str(n) for n in range(4)}, "0"))
    operands = lifter.require(2, 3, 4)
    pairs = zip(operands, lifter.now.operands, strict=True)
    return [o for o, text in pairs if text not in ("PR", "UPR") and text[0] != "@"], byte


def pack_predicates(lifter: Lifter) -> None:
    """P2R: the predicates that a mask selects, in the bits of a register's byte."""
    (to, others, mask), byte = _all_predicates(lifter)
    bits = mask.number & 0x7F
    total = lifter.compute("and.b32", lifter.word(others), str(~(bits << byte) & 0xFFFFFFFF))
    uniform = "U" * lifter.opcode.startswith("U")
    for number in (n for n in range(7) if bits >> n & 1):
        output = lifter.compute("selp.u32", str(1 << number + byte), "0", f"%{uniform}P{number}")
        total = lifter.compute("or.b32", total, output)
    lifter.emit("mov.b32", lifter.to(to), total)


def unpack_predicates(lifter: Lifter) -> None:
    """R2P: bits of a register's byte to the predicates that a mask selects."""
    (value, mask), byte = _all_predicates(lifter)
    if value.suffix:
        byte, value = 8 * int(value.suffix[0][1:]), replace(value, suffix=())
    word = lifter.word(value)
    for number in (n for n in range(7) if mask.number >> n & 1):
        bit = lifter.compute("and.b32", word, str(1 << number + byte))
        uniform = "U" * lifter.opcode.startswith("U")
        lifter.emit("setp.ne.u32", f"%{uniform}P{number}", bit, "0")


_ROUNDINGS = {"RM": ".rm", "RP": ".rp", "RZ": ".rz"}


def _float(name: str) -> Handler:
    """Return the function of FADD, FMUL or FFMA."""

    def lift(lifter: Lifter) -> None:
        rounding = lifter.one(_ROUNDINGS, ".rn")
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
        rounding, half = lifter.one(_ROUNDINGS, ".rn"), lifter.one({"BF16": "bf16"}, "f16")
        form = f"{name}{rounding}{'.sat' * lifter.has('SAT')}.f32.{half}"
        to, *halves, last = lifter.require(4 if name == "fma" else 3)
        values = [_source_value(lifter, each, half) for each in halves]
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
        rounding = lifter.one(_ROUNDINGS, ".rn")
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
            f"{{{_as_register(lifter, '0')}, {_as_register(lifter, lifter.single(value))}}}",
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
            f"{name}{flush}.{half}", _source_value(lifter, value, half), kind="h"
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


_TYPES = {
    **{f"{kind}{size}": f"{kind.lower()}{size}" for kind in "US" for size in (8, 16, 32, 64)},
    **{"F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64"},
}
_WHOLE = {"TRUNC": ".rzi", "FLOOR": ".rmi", "CEIL": ".rpi", "ROUND": ".rni"}
_STEPS = {"RM": ".rm", "RP": ".rp", "RZ": ".rz", "RN": ".rn"}


def _source_value(lifter: Lifter, operand: Operand, kind: str) -> str:
    if kind in ("f64", "u64", "s64"):
        return lifter.double(operand) if kind == "f64" else lifter.wide(operand)
    if kind == "f32":
        return lifter.single(operand)
    if kind in ("u32", "s32"):
        return lifter.word(operand)
    if kind in ("f16", "bf16", "u16", "s16", "u8", "s8"):
        part = operand.suffix[0] if operand.suffix else ""
        signed = operand.negative or operand.absolute
        lifter.refuse_if((signed and "f" not in kind) or operand.kind != "R" or len(part) > 2)
        shift_by = {"": 0, "H0": 0, "H1": 16, "B0": 0, "B1": 8, "B2": 16, "B3": 24}.get(part)
        if shift_by is None:
            raise lifter.refuse("cutrace does not know this form")
        moved, half = lifter.new(), lifter.new("h")
        plain = "0" if operand.is_zero else f"%{operand.text.partition('.')[0]}"
        lifter.emit("shr.u32", moved, plain, str(shift_by))
        if operand.absolute:
            lifter.emit("and.b32", moved, moved, "0x7fff")
        if operand.negative:
            lifter.emit("xor.b32", moved, moved, "0x8000")
        lifter.emit("cvt.u16.u32", half, moved)
        return half
    raise lifter.refuse("cutrace does not know this type")


def convert(lifter: Lifter) -> None:
    """F2F, F2I, I2F, I2FP, FRND: conversions by type and rounding."""
    flush = ".ftz" * lifter.has("FTZ")
    lifter.take("NTZ")
    steps = lifter.take(*_STEPS)
    whole = lifter.take(*_WHOLE)
    types = [_TYPES[m] for m in lifter.modifiers if m in _TYPES]
    lifter.take(*_TYPES)
    kind = lifter.opcode.removeprefix("U")
    if kind == "F2I":
        floats = [t for t in types if "f" in t] or ["f32"]
        integers = [t for t in types if "f" not in t] or ["s32"]
        target, source, rounding = integers[0], floats[0], _WHOLE[whole[0]] if whole else ".rni"
    elif kind in ("I2F", "I2FP"):
        floats = [t for t in types if "f" in t] or ["f32"]
        integers = [t for t in types if "f" not in t] or ["s32"]
        target, source, rounding = floats[0], integers[0], _STEPS[steps[0]] if steps else ".rn"
    elif kind == "F2F":
        if len(types) != 2:
            raise lifter.refuse("cutrace does not know these types")
        target, source = types
        grows = int(target.strip("bf")) > int(source.strip("bf"))
        rounding = "" if grows else _STEPS[steps[0]] if steps else ".rn"
    else:
        target = source = types[0] if types else "f32"
        rounding = _WHOLE[whole[0]] if whole else ".rni"
    if "f64" in (target, source) or target in ("f16", "bf16"):
        flush = ""
    to, value = lifter.require(2)
    read = _source_value(lifter, value, source)
    operation = f"cvt{rounding}{flush}.{target}.{source}"
    if target.endswith("64"):
        output = lifter.compute(operation, read, kind="d")
        lifter.put_wide(to, output)
    elif target in ("f16", "bf16"):
        output = lifter.compute(operation, read, kind="h")
        lifter.emit("cvt.u32.u16", lifter.to(to), output)
    else:
        lifter.emit(operation, lifter.to(to), read)


_EIGHTS = {"E4M3": "e4m3x2", "E5M2": "e5m2x2", "E2M3": "e2m3x2", "E3M2": "e3m2x2",
           "E8": "ue8m0x2", "E2M1": "e2m1x2"}  # fmt: skip


def convert_integer(lifter: Lifter) -> None:
    """I2I: an integer, cut to the range of a smaller one."""
    lifter.one({"SAT": ""})
    types = [_TYPES[m] for m in lifter.modifiers if m in _TYPES]
    lifter.take(*_TYPES)
    to, value = lifter.require(2)
    if len(types) != 2 or types[1] not in ("u32", "s32") or types[0] not in ("u8", "s8", "u16",
                                                                            "s16"):  # fmt: skip
        raise lifter.refuse("cutrace does not know these types")
    if types[0][1:] == "8":
        lifter.emit(f"cvt.sat.{types[0]}.{types[1]}", lifter.to(to), lifter.word(value))
        return
    output = lifter.compute(f"cvt.sat.{types[0]}.{types[1]}", lifter.word(value), kind="h")
    lifter.emit(f"cvt.{types[0][0]}32.{types[0]}", lifter.to(to), output)


def convert_packed(lifter: Lifter) -> None:
    """F2FP: two f32 to a pair of halves, or from and to pairs of floats of at most 8 bits."""
    relu, eight = ".relu" * lifter.has("RELU"), lifter.one(_EIGHTS, "")
    if lifter.has("RS"):
        _convert_at_random(lifter, relu, eight)
        return
    lifter.refuse_if(eight == "e2m1x2")
    if lifter.has("UNPACK_B"):
        wide = lifter.one({"BF16": "bf16x2"} if eight == "ue8m0x2" else {"F16": "f16x2"})
        to, pair = lifter.require(2)
        half = _source_value(lifter, pair, "u16")
        lifter.emit(f"cvt.rn{relu}.{wide}.{eight}", lifter.to(to), half)
        return
    if eight:
        exponent = eight == "ue8m0x2"
        rounding = lifter.one({"RZ": ".rz", "RP": ".rp"}) if exponent else ".rn"
        limit = lifter.one({"SATFINITE": ".satfinite"}, *([""] * exponent))
        output = lifter.new("h")
        form = f"cvt{rounding}{limit}{relu}.{eight}"
        if lifter.has("UNPACK_B_MERGE_C"):
            wide = lifter.one({"BF16": "bf16x2"} if exponent else {"F16": "f16x2"})
            to, pair, before = lifter.require(3)
            lifter.emit(f"{form}.{wide}", output, lifter.word(pair))
        else:
            lifter.one({"PACK_AB_MERGE_C": ""})
            lifter.one({"F32": ""})
            to, a, b, before = lifter.require(4)
            lifter.emit(f"{form}.f32", output, lifter.single(a), lifter.single(b))
        low = lifter.compute("cvt.u32.u16", output)
        high = lifter.compute("shl.b32", lifter.word(before), "16")
        lifter.emit("or.b32", lifter.to(to), low, high)
        return
    lifter.take("F32")
    if lifter.has("TF32"):
        lifter.one({"PACK_B": ""})
        rounding, limit = lifter.one({"RZ": ".rz"}, ".rn"), ".satfinite" * lifter.has("SATFINITE")
        to, value = lifter.require(2)
        form = f"cvt{rounding}{limit}{relu}.tf32.f32"
        lifter.emit(form, lifter.to(to), lifter.single(value))
        return
    kind = lifter.one({"F16": "f16", "BF16": "bf16"}, "f16")
    rounding, limit = lifter.one({"RZ": ".rz"}, ".rn"), ".satfinite" * lifter.has("SATFINITE")
    if lifter.has("MERGE_C"):
        to, value, before = lifter.require(3)
        output = lifter.compute(
            f"cvt{rounding}{relu}{limit}.{kind}.f32", lifter.single(value), kind="h"
        )
        low = lifter.compute("cvt.u32.u16", output)
        high = lifter.compute("shl.b32", lifter.word(before), "16")
        lifter.emit("or.b32", lifter.to(to), low, high)
        return
    lifter.one({"PACK_AB": ""})
    to, a, b = lifter.require(3)
    form = f"cvt{rounding}{relu}{limit}.{kind}x2.f32"
    lifter.emit(form, lifter.to(to), lifter.single(a), lifter.single(b))


def _convert_at_random(lifter: Lifter, relu: str, eight: str) -> None:
    """Lift F2FP.RS: random bits are added to the bits that rounding drops.

    A pair of small numbers takes those in the upper half of the third source. Those below, or for
    numbers of 4 bits all, move up for the next pair: `cvt.rs` converts two such pairs.
    """
    limit = ".satfinite" * lifter.has("SATFINITE")
    lifter.one({"F32": ""})
    if not eight:
        kind = lifter.one({"F16": "f16x2", "BF16": "bf16x2"})
        lifter.one({"PACK_AB": ""})
        to, a, b, random = lifter.require(4)
        lifter.emit(f"cvt.rs{relu}{limit}.{kind}.f32", lifter.to(to), lifter.single(a),
               lifter.single(b), lifter.word(random))  # fmt: skip
        return
    lifter.one({"PACK_AB_MERGE_C": ""})
    to, a, b, before = lifter.require(4)
    pair, bits = f"{lifter.single(a)}, {lifter.single(b)}", lifter.word(before)
    kind, width = ("h", "8") if eight == "e2m1x2" else ("r", "16")
    form = f"cvt.rs{relu}{limit}.{eight[:-1]}4.f32"
    four = lifter.compute(form, f"{{{pair}, {pair}}}", bits, kind=kind)
    if kind == "h":
        four = lifter.compute("cvt.u32.u16", four)
    upper = lifter.compute("shr.u32", four, width)
    lifter.emit("or.b32", lifter.to(to), upper, lifter.compute("shl.b32", bits, width))


_LOWER = (("24",), ("28",), ("16",))
"""Bits of a register that stay, below those that are shifted out."""


def convert_bytes(lifter: Lifter) -> None:
    """I2IP: two integers, cut to the range of small ones, below those that are there."""
    kind = lifter.one({name: name.lower() for name in ("U8", "S8", "U4", "S4", "U2", "S2")}, "")
    half = lifter.one({"U16": "u16", "S16": "s16"}, "")
    lifter.one({"SAT": ""})
    lifter.take("S32")
    to, a, b, *before = lifter.require(3, 4)
    form = f"cvt.pack.sat.{half or kind}.s32"
    before = [replace(o, suffix=()) if o.suffix in _LOWER else o for o in before]
    words = [lifter.word(each) for each in (a, b, *([] if half else before))]
    lifter.refuse_if(bool(half) == bool(kind) or (half and before and not before[0].is_zero))
    lifter.emit(form + ".b32" * (not half), lifter.to(to), *words)


def convert_to_byte(lifter: Lifter) -> None:
    """F2IP: an f32, rounded and cut to the range of a byte, zero-extended.

    It packs bytes, but ptxas makes it of one conversion: the places of others are RZ.
    """
    kind, rounding = lifter.one({"U8": "u8"}), lifter.one(_WHOLE, ".rni")
    lifter.one({"F32": ""})
    lifter.take("NTZ")
    to, high, value, before = lifter.require(4)
    lifter.refuse_if(not (high.is_zero and before.is_zero))
    lifter.emit(f"cvt{rounding}.sat.{kind}.f32", lifter.to(to), lifter.single(value))


def _pair(name: str) -> Handler:
    """Return the function of FADD2, FMUL2 or FFMA2: of two f32."""

    def lift(lifter: Lifter) -> None:
        rounding, flush = lifter.one(_ROUNDINGS, ".rn"), ".ftz" * lifter.has("FTZ")
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
    joint, order = lifter.one(_JOINTS), lifter.one(_FLOAT_ORDERS)
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
            _compare_into(lifter, operation, joint, [to], pair, other)


def set_halves(lifter: Lifter) -> None:
    """HSET2: all bits of each half, or with BF 1, where the comparison holds."""
    is_float = lifter.has("BF")
    one = ("0x3f80" if "BF16_V2" in lifter.modifiers else "0x3c00") if is_float else "0xffff"
    (to,), joint, pairs, operation = _compared_halves(lifter)
    other, parts = lifter.truth(lifter.operands[-1]), []
    for pair, by in zip(pairs, ("", "0000"), strict=True):
        holds, part = Operand("P", lifter.new("p")[1:]), lifter.new()
        _compare_into(lifter, operation, joint, [holds], pair, other)
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
    values = _without_signs(lifter, values) if signs else values
    pairs = [_packed(lifter, each) for each in values]
    _choose(lifter, which, lambda name: f"{name}{form}", pairs, "b32")


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


def difference(lifter: Lifter) -> None:
    """VABSDIFF: |a - b| + c."""
    kind = "u32" if lifter.has("U32") else "s32"
    to, a, b, c = lifter.require(4)
    lifter.emit(f"sad.{kind}", lifter.to(to), lifter.word(a), lifter.word(b), lifter.word(c))


def byte_differences(lifter: Lifter) -> None:
    """VABSDIFF4: |a - b| of each of four bytes; with ACC their sum plus c."""
    kind = lifter.one({"U8": "u32", "S8": "s32"}, "s32")
    add = ".add" * lifter.has("ACC")
    to, *values = lifter.require(4)
    form = f"vabsdiff4.u32.{kind}.{kind}{add}"
    lifter.emit(form, lifter.to(to), *map(lifter.word, values))


def dot_product(lifter: Lifter) -> None:
    """IDP.4A: the dot product of four bytes, plus c; IDP.2A: of two halves and two of the bytes."""
    name = lifter.one({"4A": "dp4a", "2A": "dp2a"})
    part = lifter.one({"LO": ".lo", "HI": ".hi"}) if name == "dp2a" else ""
    kinds = [m.lower() for m in lifter.modifiers if m in ("U8", "S8", "U16", "S16")]
    lifter.take("U8", "S8", "U16", "S16")
    first, second = (f"{kind[0]}32" for kind in [*kinds, "s8", "s8"][:2])
    to, *values = lifter.require(4)
    form = f"{name}{part}.{first}.{second}"
    lifter.emit(form, lifter.to(to), *map(lifter.word, values))


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("IADD3", "IADD", "VIADD"), add3),
    "IMAD": multiply_add,
    "LEA": shifted_add,
    "LOP3": logic,
    "PLOP3": logic_of_predicates,
    "ISETP": compare_integers,
    **dict.fromkeys(("FSETP", "DSETP"), compare_floats),
    "FSET": set_float,
    **dict.fromkeys(("MOV", "R2UR"), move),
    **dict.fromkeys(("SEL", "FSEL"), select),
    "SHF": shift,
    "PRMT": permute,
    **dict.fromkeys(("IMNMX", "VIMNMX", "VIMNMX3", "VIADDMNMX"), extreme),
    **dict.fromkeys(("FMNMX", "FMNMX3"), extreme_float),
    "IABS": _unary("abs.s32"),
    "POPC": _unary("popc.b32"),
    "BREV": _unary("brev.b32"),
    "FLO": find_leading,
    "SGXT": extend_sign,
    "BMSK": mask_of_bits,
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), load_constant),
    **dict.fromkeys(("P2R", "UP2UR"), pack_predicates),
    **dict.fromkeys(("R2P", "UR2UP"), unpack_predicates),
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
    **dict.fromkeys(("F2F", "F2I", "I2F", "I2FP", "FRND"), convert),
    "F2FP": convert_packed,
    "I2IP": convert_bytes,
    "F2IP": convert_to_byte,
    "I2I": convert_integer,
    "HADD2": _half("add"),
    "HMUL2": _half("mul"),
    "HFMA2": _half("fma"),
    "HSETP2": compare_halves,
    "HSET2": set_halves,
    **dict.fromkeys(("HMNMX2", "VHMNMX"), extreme_halves),
    "IDP": dot_product,
    "VABSDIFF": difference,
    "VABSDIFF4": byte_differences,
    **dict.fromkeys(
        (
            "NOP",
            "BSSY",
            "BSYNC",
            "BREAK",
            "BMOV",
            "YIELD",
            "DEPBAR",
            "ERRBAR",
            "CGAERRBAR",
            "ENDCOLLECTIVE",
        ),
        nothing,
    ),
    "LEPC": load_place,
    **dict.fromkeys(("CCTL", "MEMBAR", "NANOSLEEP", "PMTRIG"), nothing),
}
