"""Codegen of warp-level instructions: `shfl`, `vote`, `activemask`, `match`, `redux`, matrix
products.

It emits calls of routines that `jit` compiles from the Python functions of this module. They give
what tracer/simt/decode/shuffle_vote.py gives with arrays.
"""

from collections.abc import Callable
from functools import cache

from ....jit.loop_codegen import translate
from ....jit.structure import I64, U8, U32
from ....jit.value import trailing_zeros
from ...ptx.kernel import Bucket, Immediate, Instruction, Not, Operand, Pair, Register
from ..decode.decoder import immediate
from ..decode.shuffle_vote import ALL_LANES
from .emit_access import keep_lanes, same_size
from .emit_lane import Refuse
from .emit_lines import WarpText
from .emit_mma import add_product

IDX, UP, DOWN, BFLY = range(4)
_MODES = {"idx": IDX, "up": UP, "down": DOWN, "bfly": BFLY}
ALL, ANY, UNI, BALLOT = range(4)
_VOTES = {"all": ALL, "any": ANY, "uni": UNI, "ballot": BALLOT}


def add_warp(text: WarpText, instruction: Instruction, refuse: Refuse) -> None:
    """Emit a `shfl`, `vote`, `activemask`, `match`, `redux` or matrix product."""
    add = _ADDERS.get(instruction.opcode)
    if add is None:
        raise refuse("this instruction")
    add(text, instruction, text.lanes_on(instruction), refuse)


def shuffle(
    mode: int, values: U32, steps: U32, clamps: U32, active: int, to: U32, valid: U8
) -> None:
    """Write the value of each lane's source lane to `to`, 0 from lanes not `active`, and to `valid`
    whether the source lane is in range (PTX ISA, shfl.sync)."""
    for lane in range(32):
        offset = steps[lane] & 31
        segment = (clamps[lane] >> 8) & 31
        last = (lane & segment) | (clamps[lane] & 31 & ~segment)
        source = (lane & segment) | (offset & ~segment)
        if mode == UP:
            source = lane - offset
        if mode == DOWN:
            source = lane + offset
        if mode == BFLY:
            source = lane ^ offset
        holds = 0
        if (mode == UP and source >= last) or (mode != UP and source <= last):
            holds = 1
        else:
            source = lane
        to[lane] = values[source] if (active >> source) & 1 else 0
        valid[lane] = holds


def vote_lanes(mode: int, yes: int, active: int, masks: U32, to: U32, holds: U8) -> None:
    """Write the vote of each lane's mask to `to` as a word, and to `holds` as a boolean."""
    for lane in range(32):
        others = masks[lane] & active
        outcome = yes & others
        if mode != BALLOT:
            every = 1 if outcome == others else 0
            some = 1 if outcome != 0 else 0
            outcome = every if mode == ALL else some
            if mode == UNI:
                outcome = every | (1 - some)
        to[lane] = outcome
        holds[lane] = outcome


def match_lanes(everyone: int, values: I64, active: int, masks: U32, to: U32, holds: U8) -> None:
    """Write to `to` the lanes of each lane's mask that have the same value as it.

    With `everyone` write all lanes of the mask or none, and to `holds` whether they agree.
    """
    for lane in range(32):
        others = masks[lane] & active
        peers = 0
        for other in range(32):
            if (others >> other) & 1 and values[other] == values[lane]:
                peers = peers | (1 << other)
        agree = 1 if peers == others else 0
        if everyone and not agree:
            peers = 0
        to[lane] = peers
        holds[lane] = agree


ADD, MIN, MAX, AND, OR, XOR = range(6)
_REDUCTIONS = {"add": ADD, "min": MIN, "max": MAX, "and": AND, "or": OR, "xor": XOR}


def reduce_lanes(operation: int, values: I64, active: int, masks: U32, to: U32) -> None:
    """Write to `to` the reduction of the active lanes in each lane's mask."""
    remainder = active
    while remainder:
        first = trailing_zeros(remainder)
        mask = masks[first]
        total = reduce_some(operation, values, (active & mask) | (1 << first))
        for lane in range(first, 32):
            if (remainder >> lane) & 1 and masks[lane] == mask:
                to[lane] = total
                remainder = remainder & ~(1 << lane)


def reduce_some(operation: int, values: I64, lanes: int) -> int:
    """Return the reduction of the values of some lanes."""
    first = trailing_zeros(lanes)
    total = values[first]
    for lane in range(first + 1, 32):
        if (lanes >> lane) & 1:
            total = combine(operation, total, values[lane])
    return int(total)


def combine(operation: int, a: int, b: int) -> int:
    """Return the reduction of two values."""
    if operation == ADD:
        return a + b
    if operation == MIN:
        return min(a, b)
    if operation == MAX:
        return max(a, b)
    if operation == AND:
        return a & b
    return a | b if operation == OR else a ^ b


@cache
def _written(routine: Callable[..., int | None]) -> str:
    return translate([routine])


def _shuffle(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    to, value, step, clamp = instruction.operands[:4]
    mode = next(_MODES[m] for m in instruction.modifiers if m in _MODES)
    places = [
        same_size(text, "b32", operand, scratch, refuse)
        for operand, scratch in ((value, "%values"), (step, "%values0"), (clamp, "%values1"))
    ]
    parameters = "i64, ptr, ptr, ptr, i64, ptr, ptr"
    called = text.fragments.once("shuffle", parameters, _written(shuffle), "i64")
    arguments = f"i64 {mode}, {', '.join(f'ptr {place}' for place in places)}, i64 {mask}"
    _call_and_keep(text, to, mask, f"{called}({arguments}", refuse)


def _call_and_keep(text: WarpText, to: Operand, mask: str, call: str, refuse: Refuse) -> None:
    """Emit a call of a routine that returns words in `%olds` and booleans after them.

    Write them to a register, or a pair of a register and a predicate, in the lanes `mask`.
    """
    valid = text.emit("getelementptr i8, ptr %olds, i64 128")
    text.emit(f"call i64 @{call}, ptr %olds, ptr {valid})")
    first, second = (to.first, to.second) if isinstance(to, Pair) else (to, Bucket())
    if isinstance(first, Register) and first.type == "pred":
        _keep_predicate(text, first, mask, valid, refuse)
    elif isinstance(first, Register):
        keep_lanes(text, first, "b32", mask, refuse)
    elif not isinstance(first, Bucket):
        raise refuse("a result that is no register")
    if isinstance(second, Register):
        _keep_predicate(text, second, mask, valid, refuse)


def _masks(text: WarpText, instruction: Instruction, refuse: Refuse) -> str:
    """Return the place of the mask of each lane."""
    return same_size(text, "b32", instruction.operands[2], "%values0", refuse)


def _match(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    to, source = instruction.operands[:2]
    kind = instruction.type
    if kind not in ("b32", "b64"):
        raise refuse("this form")
    masks = _masks(text, instruction, refuse)
    place = same_size(text, kind, source, "%values", refuse)
    if kind == "b32":
        place = text.widened(place, "zext")
    parameters = "i64, ptr, i64, ptr, ptr, ptr"
    called = text.fragments.once("match_lanes", parameters, _written(match_lanes), "i64")
    everyone = int("all" in instruction.modifiers)
    arguments = f"i64 {everyone}, ptr {place}, i64 {mask}, ptr {masks}"
    _call_and_keep(text, to, mask, f"{called}({arguments}", refuse)


def _reduce(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    to, source = instruction.operands[:2]
    if instruction.type not in ("u32", "s32", "b32"):
        raise refuse("this form")
    operation = next(_REDUCTIONS[m] for m in instruction.modifiers if m in _REDUCTIONS)
    masks = _masks(text, instruction, refuse)
    place = same_size(text, "b32", source, "%values", refuse)
    place = text.widened(place, "sext" if instruction.type == "s32" else "zext")
    parameters = "i64, ptr, i64, ptr, ptr"
    called = text.fragments.once("reduce_lanes", parameters, _written(reduce_lanes), "i64")
    arguments = f"i64 {operation}, ptr {place}, i64 {mask}, ptr {masks}"
    text.emit(f"call i64 @{called}({arguments}, ptr %olds)")
    if isinstance(to, Register):
        keep_lanes(text, to, instruction.type, mask, refuse)
    elif not isinstance(to, Bucket):
        raise refuse("a result that is no register")


def _keep_predicate(text: WarpText, to: Register, mask: str, valid: str, refuse: Refuse) -> None:
    if to.type != "pred":
        raise refuse("a second result that is no predicate")
    called = text.fragments.once("keep_predicate", "i64, ptr, ptr", """
define void @keep_predicate(i64 %mask, ptr %from, ptr %to) {
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %x = load <32 x i8>, ptr %from, align 1
  %old = load <32 x i8>, ptr %to, align 8
  %y = select <32 x i1> %m, <32 x i8> %x, <32 x i8> %old
  store <32 x i8> %y, ptr %to, align 8
  ret void
}
""")  # fmt: skip
    text.add(f"call void @{called}(i64 {mask}, ptr {valid}, ptr {text.place(to)})")


def _vote(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    to, source = instruction.operands[:2]
    mode = next(m for m in instruction.modifiers if m in _VOTES)
    register = source.register if isinstance(source, Not) else source
    if not isinstance(register, Register):
        raise refuse("an operand that it does not know")
    yes = text.emit(f"zext i32 {text.packed(register, isinstance(source, Not))} to i64")
    yes = text.emit(f"and i64 {yes}, {mask}")
    if not _names_all(instruction):
        parameters = "i64, i64, i64, ptr, ptr, ptr"
        called = text.fragments.once("vote_lanes", parameters, _written(vote_lanes), "i64")
        masks = _masks(text, instruction, refuse)
        arguments = f"i64 {_VOTES[mode]}, i64 {yes}, i64 {mask}, ptr {masks}"
        _call_and_keep(text, to, mask, f"{called}({arguments}", refuse)
        return
    if mode == "ballot":
        _give(text, to, mask, yes, refuse)
        return
    every = text.emit(f"icmp eq i64 {yes}, {mask}")
    some = text.emit(f"icmp ne i64 {yes}, 0")
    outcome = {"all": every, "any": some}.get(mode)
    if outcome is None:
        none = text.emit(f"xor i1 {some}, true")
        outcome = text.emit(f"or i1 {every}, {none}")
    _give(text, to, mask, text.emit(f"zext i1 {outcome} to i64"), refuse)


def _names_all(instruction: Instruction) -> bool:
    """Return whether a vote is one of all lanes: without `.sync`, or by its mask."""
    if "sync" not in instruction.modifiers:
        return True
    mask = instruction.operands[2]
    return isinstance(mask, Immediate) and int(immediate(mask, "b32").flat[0]) == ALL_LANES


def _give(text: WarpText, to: Operand, mask: str, value: str, refuse: Refuse) -> None:
    """Write one value to the lanes `mask` of a register."""
    if isinstance(to, Bucket):
        return
    if not isinstance(to, Register):
        raise refuse("a result that is no register")
    bits = 8 * text.frame.place(text.function, to.name).size
    if to.type != "pred" and bits < 32:
        raise refuse("a register narrower than its type")
    called = text.fragments.once(f"give{bits}", "i64, i64, ptr", f"""
define void @give{bits}(i64 %mask, i64 %value, ptr %to) {{
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %x = trunc i64 %value to i{bits}
  %i = insertelement <32 x i{bits}> poison, i{bits} %x, i64 0
  %v = shufflevector <32 x i{bits}> %i, <32 x i{bits}> poison, <32 x i32> zeroinitializer
  %old = load <32 x i{bits}>, ptr %to, align 8
  %y = select <32 x i1> %m, <32 x i{bits}> %v, <32 x i{bits}> %old
  store <32 x i{bits}> %y, ptr %to, align 8
  ret void
}}
""".replace("trunc i64 %value to i64", "or i64 %value, 0"))  # fmt: skip
    text.add(f"call void @{called}(i64 {mask}, i64 {value}, ptr {text.place(to)})")


def _active(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    _give(text, instruction.operands[0], mask, mask, refuse)


_ADDERS = {
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _active,
    "match": _match,
    "redux": _reduce,
    "mma": add_product,
    "wmma": add_product,
}
