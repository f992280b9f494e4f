"""Arithmetic of machine code, an opcode a function: integers, bits, comparisons.

A function takes the `Lifter` with its present instruction. It removes the modifiers that it knows,
and refuses the instruction if others are left. Uniform forms (UIADD3) have the same functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..ptx.link import is_pair_mask
from .lift import Handler, Lifter
from .operand import ZERO, Operand


def split_operands(
    lifter: Lifter, sources: int
) -> tuple[list[Operand], list[Operand], list[Operand]]:
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


def is_written(predicates: list[Operand]) -> bool:
    """Return whether any of these predicates is written."""
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
    written, values, predicates = split_operands(lifter, sources)
    if saturates:
        zeros = [each for each in values if each.is_zero]
        others = [each for each in values if not each.is_zero]
        a, b, *third = sorted([*others, *zeros][:2], key=lambda each: each.negative) + others[2:]
        lifter.refuse_if(extended or is_written(written) or a.negative or third)
        form = "sub.sat.s32" if b.negative else "add.sat.s32"
        lifter.emit(form, lifter.to(lifter.operands[0]), lifter.word(a),
                    lifter.word(replace(b, negative=False)))  # fmt: skip
        return None
    if not extended and not is_written(written):
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
    written, values, predicates = split_operands(lifter, 3 if lifter.opcode.endswith("3") else 2)
    if not is_written(written) and not extended:
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
    if is_written(written):
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
    written, (a, b, c), predicates = split_operands(lifter, 3)
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
    if is_written(written):
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
    written, values, predicates = split_operands(lifter, count)
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
            halves = ", ".join(as_register(lifter, word) for word in words)
            lifter.emit("mov.b64", pair, f"{{{halves}}}")
        lifter.emit("shl.b64", shifted, pair, str(number))
        lifter.emit("mov.b64", f"{{{lifter.new()}, {part}}}", shifted, guarded=False)
    else:
        lifter.emit("shl.b32", part, lifter.plain(a), str(number))
    carries = extended or is_written(written)
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


def as_register(lifter: Lifter, value: str) -> str:
    """Return a value as a register: a constant is moved to a new one."""
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
    output = lifter.new() if is_written(written) else lifter.to(to)
    # The linker takes `and` with this mask for PTX's first block of a pair.
    is_pair = any(o.kind == "#" and is_pair_mask(o.number) for o in (a, b))
    if c.is_zero and not c.inverted and number in _LOGIC and not is_pair:
        lifter.emit(_LOGIC[number], output, lifter.word(a), lifter.word(b))
    else:
        lifter.emit("lop3.b32", output, lifter.word(a), lifter.word(b), lifter.word(c), str(number))
    if is_written(written):
        if to.number >= 0:
            lifter.emit("mov.b32", lifter.to(to), output)
        joint = "and" if both else "or"
        compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), lifter.truth(other))


def compare_into(
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


JOINTS = {"AND": "and", "OR": "or", "XOR": "xor"}

ORDERS = {name: name.lower() for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}


def compare_integers(lifter: Lifter) -> None:
    """ISETP: with EX it compares the upper words of a pair after the lower ones."""
    joint = lifter.one(JOINTS)
    order = lifter.one(ORDERS)
    wide = lifter.one({"U64": "u64", "S64": "s64", "64": "s64"}, "")
    kind = "u32" if lifter.has("U32") else "s32"
    extended = lifter.has("EX")
    first, second, a, b, other, *low = lifter.require(6 if extended else 5)
    written = [first, second]
    if wide:
        pairs = lifter.wide(a), lifter.wide(b)
        compare_into(lifter, f"setp.{order}.{wide}", joint, written, pairs, lifter.truth(other))
        return
    x, y = lifter.word(a), lifter.word(b)
    if not extended:
        compare_into(lifter, f"setp.{order}.{kind}", joint, written, (x, y), lifter.truth(other))
        return
    strict = order.replace("le", "lt").replace("ge", "gt")
    result = lifter.compute("setp.eq.and.u32", x, y, lifter.predicate(low[0]), kind="p")
    if order != "eq":
        above = lifter.compute(f"setp.{strict}.{kind}", x, y, kind="p")
        result = lifter.compute("or.pred", above, result, kind="p")
    output = lifter.compute("selp.u32", "1", "0", result)
    compare_into(lifter, "setp.ne.u32", joint, written, (output, "0"), lifter.truth(other))


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
        f"{{{as_register(lifter, lifter.word(low))}, {as_register(lifter, lifter.word(upper))}}}",
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
        choose(lifter, which, lambda name: f"v{name}4.{kind}.{kind}.{kind}", words, "b32", "0")
        return
    kinds = {"U32": "u32", "S32": "s32", "U16x2": "u16x2", "S16x2": "s16x2"}
    kind = ".relu." * lifter.has("RELU") + lifter.one(kinds, "s32")
    sources = 3 if lifter.opcode.endswith(("3", "VIADDMNMX")) else 2
    wide = lifter.one({"U64": "u64", "S64": "s64", "64": "s64"}, "")
    if wide and lifter.operands[0].kind == "P" and len(lifter.operands) == 7:
        first, second, to, a, b, which, other = lifter.operands
        if lifter.truth(other) is False:
            lifter.operands = [to, first, second, a, b, which]
    written, values, (which,) = split_operands(lifter, sources)
    lifter.refuse_if(is_written(written) or (wide and len(values) > 2))
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
    choose(lifter, which, lambda name: f"{name}.{kind}".replace("..", "."), words, "b32")


def choose(
    lifter: Lifter, which: Operand, named: Callable[[str], str], values: list[str], bits: str,
    *more: str,
) -> None:  # fmt: skip
    """Lift a minimum or maximum, by a predicate that says which."""
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
    _, (value,), _ = split_operands(lifter, 1)
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
    **dict.fromkeys(("SEL", "FSEL"), select),
    "SHF": shift,
    "PRMT": permute,
    **dict.fromkeys(("IMNMX", "VIMNMX", "VIMNMX3", "VIADDMNMX"), extreme),
    "IABS": _unary("abs.s32"),
    "POPC": _unary("popc.b32"),
    "BREV": _unary("brev.b32"),
    "FLO": find_leading,
    "SGXT": extend_sign,
    "BMSK": mask_of_bits,
    "IDP": dot_product,
    "VABSDIFF": difference,
    "VABSDIFF4": byte_differences,
}
