"""Integer arithmetic, logic and bit fields as text for one lane; see op/integer.py, op/bits.py."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ....ptx.kernel import Immediate, Instruction
from .lane_text import Lane, width

Emitter: TypeAlias = Callable[[Lane, Instruction, list[str]], list[str] | None]
"""Adds the statements of an instruction with these sources; returns its results, or None where it
does not know this form."""


def is_signed(instruction: Instruction) -> bool:
    """Whether the instruction's type is a signed integer."""
    return instruction.type[0] == "s"


def _type(instruction: Instruction) -> str:
    return f"i{width(instruction.type)}"


def _plain(operation: str) -> Emitter:
    def emit(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
        return [lane.emit(f"{operation} {_type(instruction)} {', '.join(given)}")]

    return emit


def _sum(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    operation = instruction.opcode
    if "sat" not in instruction.modifiers:
        return [lane.emit(f"{operation} {_type(instruction)} {given[0]}, {given[1]}")]
    name = f"@llvm.s{operation}.sat.i32"
    return [lane.emit(f"call i32 {name}(i32 {given[0]}, i32 {given[1]})")]


def product(lane: Lane, instruction: Instruction, a: str, b: str) -> str:
    """Return the product in a `mul` or `mad`: low, high or wide."""
    kind, modifiers = _type(instruction), instruction.modifiers
    if "wide" not in modifiers and "hi" not in modifiers:
        return lane.emit(f"mul {kind} {a}, {b}")
    bits = width(instruction.type)
    grow = "sext" if is_signed(instruction) else "zext"
    wide = f"i{2 * bits}"
    a, b = (lane.emit(f"{grow} {kind} {x} to {wide}") for x in (a, b))
    whole = lane.emit(f"mul {wide} {a}, {b}")
    if "wide" in modifiers:
        return whole
    high = lane.emit(f"lshr {wide} {whole}, {bits}")
    return lane.emit(f"trunc {wide} {high} to {kind}")


def _mul(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    return [product(lane, instruction, *given)]


def _mad(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    a, b, c = given
    bits = width(instruction.type) * (2 if "wide" in instruction.modifiers else 1)
    whole = product(lane, instruction, a, b)
    if "sat" in instruction.modifiers:
        return [lane.emit(f"call i32 @llvm.sadd.sat.i32(i32 {whole}, i32 {c})")]
    return [lane.emit(f"add i{bits} {whole}, {c}")]


def _divide(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    """Divide toward zero; by 0 all ones, the lowest number by -1 itself."""
    a, b = given
    kind, sign = _type(instruction), "s" if is_signed(instruction) else "u"
    zero = lane.emit(f"icmp eq {kind} {b}, 0")
    minus = lane.emit(f"icmp eq {kind} {b}, -1")
    odd = lane.emit(f"or i1 {zero}, {minus}") if sign == "s" else zero
    safe = lane.emit(f"select i1 {odd}, {kind} 1, {kind} {b}")
    result = lane.emit(f"{sign}{instruction.opcode} {kind} {a}, {safe}")
    if sign == "s" and instruction.opcode == "div":
        opposite = lane.emit(f"sub {kind} 0, {a}")
        result = lane.emit(f"select i1 {minus}, {kind} {opposite}, {kind} {result}")
    return [lane.emit(f"select i1 {zero}, {kind} -1, {kind} {result}")]


def _absolute(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    kind, (a,) = _type(instruction), given
    below = lane.emit(f"icmp slt {kind} {a}, 0")
    minus = lane.emit(f"sub {kind} 0, {a}")
    return [lane.emit(f"select i1 {below}, {kind} {minus}, {kind} {a}")]


def _negative(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    return [lane.emit(f"sub {_type(instruction)} 0, {given[0]}")]


def _extreme(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    kind, sign = _type(instruction), "s" if is_signed(instruction) else "u"
    order = f"{sign}{'lt' if instruction.opcode == 'min' else 'gt'}"
    first = lane.emit(f"icmp {order} {kind} {given[0]}, {given[1]}")
    result = lane.emit(f"select i1 {first}, {kind} {given[0]}, {kind} {given[1]}")
    if "relu" in instruction.modifiers:
        above = lane.emit(f"icmp sgt {kind} {result}, 0")
        result = lane.emit(f"select i1 {above}, {kind} {result}, {kind} 0")
    return [result]


def _distance(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    a, b, c = given
    kind, sign = _type(instruction), "s" if is_signed(instruction) else "u"
    less = lane.emit(f"icmp {sign}lt {kind} {a}, {b}")
    up, down = lane.emit(f"sub {kind} {b}, {a}"), lane.emit(f"sub {kind} {a}, {b}")
    size = lane.emit(f"select i1 {less}, {kind} {up}, {kind} {down}")
    return [lane.emit(f"add {kind} {c}, {size}")]


def _not(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    ones = "true" if instruction.type == "pred" else "-1"
    return [lane.emit(f"xor {_type(instruction)} {given[0]}, {ones}")]


def _conditional_not(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    kind = _type(instruction)
    zero = lane.emit(f"icmp eq {kind} {given[0]}, 0")
    return [lane.emit(f"zext i1 {zero} to {kind}")]


def _resized(lane: Lane, value: str, source: int, to: int) -> str:
    if source == to:
        return value
    word = "zext" if to > source else "trunc"
    return lane.emit(f"{word} i{source} {value} to i{to}")


def _shift(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    """Shift; by the width or more nothing is left but the sign."""
    a, amount = given
    bits, kind = width(instruction.type), _type(instruction)
    far = lane.emit(f"icmp ugt i32 {amount}, {bits - 1}")
    near = lane.emit(f"select i1 {far}, i32 {bits - 1}, i32 {amount}")
    count = _resized(lane, near, 32, bits)
    if instruction.opcode == "shr" and is_signed(instruction):
        return [lane.emit(f"ashr {kind} {a}, {count}")]
    operation = "shl" if instruction.opcode == "shl" else "lshr"
    moved = lane.emit(f"{operation} {kind} {a}, {count}")
    return [lane.emit(f"select i1 {far}, {kind} 0, {kind} {moved}")]


def _funnel(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    low, high, amount = given
    left = "l" in instruction.modifiers
    if "clamp" in instruction.modifiers:
        count = lane.emit(f"call i32 @llvm.umin.i32(i32 {amount}, i32 32)")
    else:
        count = lane.emit(f"and i32 {amount}, 31")
    wide = [lane.emit(f"zext i32 {x} to i64") for x in (low, high, count)]
    up = lane.emit(f"shl i64 {wide[1]}, 32")
    both = lane.emit(f"or i64 {up}, {wide[0]}")
    moved = lane.emit(f"{'shl' if left else 'lshr'} i64 {both}, {wide[2]}")
    if left:
        moved = lane.emit(f"lshr i64 {moved}, 32")
    return [lane.emit(f"trunc i64 {moved} to i32")]


def _count(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    bits, kind = width(instruction.type), _type(instruction)
    name, flag = ("ctpop", "") if instruction.opcode == "popc" else ("ctlz", ", i1 false")
    counted = lane.emit(f"call {kind} @llvm.{name}.{kind}({kind} {given[0]}{flag})")
    return [_resized(lane, counted, bits, 32)]


def _find_leading(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    """The place of the highest bit that is not the sign, or what shifts it up; -1 without one."""
    bits, kind, value = width(instruction.type), _type(instruction), given[0]
    if is_signed(instruction):
        sign = lane.emit(f"ashr {kind} {value}, {bits - 1}")
        value = lane.emit(f"xor {kind} {value}, {sign}")
    above = lane.emit(f"call {kind} @llvm.ctlz.{kind}({kind} {value}, i1 false)")
    above = _resized(lane, above, bits, 32)
    if "shiftamt" not in instruction.modifiers:
        return [lane.emit(f"sub i32 {bits - 1}, {above}")]
    none = lane.emit(f"icmp eq i32 {above}, {bits}")
    return [lane.emit(f"select i1 {none}, i32 -1, i32 {above}")]


def _dot(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    """Products of bytes with bytes (dp4a), or of halves with two bytes (dp2a), all added up."""
    signed = [kind[0] == "s" for kind in instruction.types[:2]]
    count, size = (4, 8) if instruction.opcode == "dp4a" else (2, 16)
    first = 2 if "hi" in instruction.modifiers else 0
    total = given[2]
    for k in range(count):
        left = _piece(lane, given[0], size, k, signed[0])
        right = _piece(lane, given[1], 8, first + k, signed[1])
        total = lane.emit(f"add i32 {total}, {lane.emit(f'mul i32 {left}, {right}')}")
    return [total]


def _piece(lane: Lane, word: str, size: int, place: int, signed: bool) -> str:
    """Return the bits of a word at `place`, counted in pieces of `size`, extended."""
    up = lane.emit(f"shl i32 {word}, {32 - size * (place + 1)}")
    return lane.emit(f"{'ashr' if signed else 'lshr'} i32 {up}, {32 - size}")


def _reverse(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    kind = _type(instruction)
    return [lane.emit(f"call {kind} @llvm.bitreverse.{kind}({kind} {given[0]})")]


def _amount(lane: Lane, value: str, bits: int) -> str:
    """Return a place or length as i64: its low byte in 32-bit instructions, whole in 64-bit."""
    if bits == 32:
        value = lane.emit(f"and i32 {value}, 255")
    return lane.emit(f"zext i32 {value} to i64")


def _ones(lane: Lane, count: str) -> str:
    """Return i64 with the low `count` bits set: none below 1, all from 64 on."""
    low = lane.emit(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
    kept = lane.emit(f"call i64 @llvm.smin.i64(i64 {low}, i64 63)")
    power = lane.emit(f"shl i64 1, {kept}")
    ones = lane.emit(f"sub i64 {power}, 1")
    full = lane.emit(f"icmp sgt i64 {count}, 63")
    return lane.emit(f"select i1 {full}, i64 -1, i64 {ones}")


def _extract(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    """`bfe`: what of the field lies beyond the number is its sign (zero for unsigned ones)."""
    bits = width(instruction.type)
    wide = _resized(lane, given[0], bits, 64)
    start, count = (_amount(lane, x, bits) for x in given[1:])
    room = lane.emit(f"sub i64 {bits}, {start}")
    ones = _ones(lane, lane.emit(f"call i64 @llvm.smin.i64(i64 {count}, i64 {room})"))
    down = lane.emit(f"call i64 @llvm.umin.i64(i64 {start}, i64 63)")
    moved = lane.emit(f"ashr i64 {wide}, {down}")
    field = lane.emit(f"and i64 {moved}, {ones}")
    if is_signed(instruction):
        end = lane.emit(f"add i64 {start}, {count}")
        last = lane.emit(f"sub i64 {end}, 1")
        low = lane.emit(f"call i64 @llvm.smax.i64(i64 {last}, i64 0)")
        top = lane.emit(f"call i64 @llvm.smin.i64(i64 {low}, i64 {bits - 1})")
        bit = lane.emit(f"ashr i64 {wide}, {top}")
        sign = lane.emit(f"trunc i64 {bit} to i1")
        some = lane.emit(f"icmp sgt i64 {count}, 0")
        negative = lane.emit(f"and i1 {sign}, {some}")
        above = lane.emit(f"xor i64 {ones}, -1")
        filled = lane.emit(f"or i64 {field}, {above}")
        field = lane.emit(f"select i1 {negative}, i64 {filled}, i64 {field}")
    return [_resized(lane, field, 64, bits)]


def _insert(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    bits = width(instruction.type)
    a, under = (_resized(lane, x, bits, 64) for x in given[:2])
    start, count = (_amount(lane, x, bits) for x in given[2:])
    up = lane.emit(f"call i64 @llvm.umin.i64(i64 {start}, i64 63)")
    field = lane.emit(f"shl i64 {_ones(lane, count)}, {up}")
    moved = lane.emit(f"shl i64 {a}, {up}")
    inside = lane.emit(f"and i64 {moved}, {field}")
    around = lane.emit(f"and i64 {under}, {lane.emit(f'xor i64 {field}, -1')}")
    merged = lane.emit(f"or i64 {inside}, {around}")
    fits = lane.emit(f"icmp ult i64 {start}, {bits}")
    result = lane.emit(f"select i1 {fits}, i64 {merged}, i64 {under}")
    return [_resized(lane, result, 64, bits)]


def _permute(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    if instruction.modifiers != ("b32",):
        return None
    a, b, selector = given
    low, high = (lane.emit(f"zext i32 {x} to i64") for x in (a, b))
    both = lane.emit(f"or i64 {lane.emit(f'shl i64 {high}, 32')}, {low}")
    wide = lane.emit(f"zext i32 {selector} to i64")
    result = "0"
    for byte in range(4):
        choice = lane.emit(f"lshr i64 {wide}, {4 * byte}")
        place = lane.emit(f"shl i64 {lane.emit(f'and i64 {choice}, 7')}, 3")
        value = lane.emit(f"and i64 {lane.emit(f'lshr i64 {both}, {place}')}, 255")
        top = lane.emit(f"icmp ugt i64 {value}, 127")
        signs = lane.emit(f"select i1 {top}, i64 255, i64 0")
        wants = lane.emit(f"icmp ne i64 {lane.emit(f'and i64 {choice}, 8')}, 0")
        value = lane.emit(f"select i1 {wants}, i64 {signs}, i64 {value}")
        result = lane.emit(f"or i64 {result}, {lane.emit(f'shl i64 {value}, {8 * byte}')}")
    return [lane.emit(f"trunc i64 {result} to i32")]


def _logic3(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    table = instruction.operands[-1]
    if len(given) != 4 or not isinstance(table, Immediate):
        return None
    straight = given[:3]
    turned = [lane.emit(f"xor i32 {x}, -1") for x in straight]
    result = "0"
    for row in range(8):
        if table.bits >> row & 1:
            a, b, c = (straight[k] if row >> 2 - k & 1 else turned[k] for k in range(3))
            term = lane.emit(f"and i32 {lane.emit(f'and i32 {a}, {b}')}, {c}")
            result = lane.emit(f"or i32 {result}, {term}")
    return [result]


INTEGER: Mapping[str, Emitter] = {
    "add": _sum,
    "sub": _sum,
    "mul": _mul,
    "mad": _mad,
    "div": _divide,
    "rem": _divide,
    "abs": _absolute,
    "neg": _negative,
    "min": _extreme,
    "max": _extreme,
    "sad": _distance,
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "not": _not,
    "cnot": _conditional_not,
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "popc": _count,
    "clz": _count,
    "bfind": _find_leading,
    "dp4a": _dot,
    "dp2a": _dot,
    "brev": _reverse,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "lop3": _logic3,
}
"""By opcode, for integer types and predicates."""
