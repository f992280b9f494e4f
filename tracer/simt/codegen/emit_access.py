"""Codegen of the loads, stores, atomics and copies of one warp.

The emitted code checks the addresses, writes the access row, and then moves the data. `emit_check`
emits the first two by `touch` (access/reach.py); for generic addresses `reach_anywhere` has done
both for the whole group, of whose lanes `add_lanes` tells it. `access/lane_move.py` has the moves.
"""

from ....base.dataclass import dataclass
from ....traces.schema import Space
from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    Bucket,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from ..access.lane_move import TYPES, load_text, store_text, update_text
from ..access.reach import touch
from ..decode.address import elements
from ..decode.decoder import immediate
from ..decode.moves import reduction_of
from ..memory.memory import GLOBAL_BASE
from ..ops.update import OPERATIONS, update
from .emit_lane import Refuse
from .emit_lines import WarpText


@dataclass(frozen=True, slots=True)
class SpaceRule:
    """The rule of a state space: the window that its trace addresses leave out, and the space as an
    arena that must contain the lane's allocation; 0: a limit applies instead."""

    window: int
    arena: int


SPACES = {
    "global": SpaceRule(GLOBAL_BASE, int(Space.GLOBAL)),
    "const": SpaceRule(0, int(Space.CONST)),
    "shared": SpaceRule(0, 0),
    "local": SpaceRule(0, 0),
}


def add_access(
    text: WarpText, instruction: Instruction, pc_position: int, number: int, refuse: Refuse
) -> None:
    """Emit a load or store; `number` is its index among the accesses of the basic block."""
    is_load = instruction.opcode != "st"
    first, second = instruction.operands[:2]
    target, value = (second, first) if is_load else (first, second)
    size = TYPE_BYTES[instruction.type]
    parts = elements(value)
    if size > 8 or len(parts) != instruction.vector:
        raise refuse("this form")
    bytes_ = size * instruction.vector
    reach = emit_check(text, instruction, target, bytes_, pc_position, number, refuse)
    for k, element in enumerate(parts):
        if isinstance(element, Bucket):
            continue
        start = text.emit(f"add i64 {reach.start}, {k * size}")
        arguments = f"i64 {start}, i64 {reach.step}, ptr {reach.addresses}, i64 {reach.mask}"
        if is_load:
            blended = instruction.guard is not None or text.outlives_block(element)
            called, place = loaded(text, instruction.type, element, blended, refuse)
        else:
            wide, place = _value(text, instruction.type, element, "%values", refuse)
            called = stored(text, instruction.type, wide)
        text.add(f"call void @{called}({arguments}, ptr {place})")


@dataclass(frozen=True, slots=True)
class Reached:
    """Names of values: the base of the space, the bytes between its lanes, the addresses, and the
    mask of the lanes that passed the check."""

    start: str
    step: str
    addresses: str
    mask: str


def emit_check(
    text: WarpText, instruction: Instruction, operand: Operand, bytes_: int, position: int,
    number: int, refuse: Refuse, lanes: str = "", space: str = "",
) -> Reached:  # fmt: skip
    """Emit the check and the row of an access of `bytes_` bytes per lane.

    `lanes` is the mask, by default all active lanes; `space` is by default that of the instruction.
    """
    space = space or instruction.space
    if not space:
        at = text.emit("shl i64 %place, 5")
        at = text.emit(f"getelementptr i64, ptr {text.field('pointers', 'ptr')}, i64 {at}")
        return Reached("0", "0", at, text.lanes_on(instruction))
    rule = SPACES.get(space)
    if rule is None or not isinstance(operand, Address):
        raise refuse("an access without a state space")
    base = operand.base
    if space == "global" and isinstance(base, Register) and TYPE_BYTES[base.type] == 4:
        raise refuse("an address of 32 bits")
    addresses, offset = _addresses(text, operand, refuse)
    mask = lanes or text.lanes_on(instruction)
    numbers = f"i64 %place, i64 {number}, i64 {position}, i64 {mask}, ptr {addresses}"
    fixed = f"i64 {offset}, i64 {bytes_}, i64 {rule.window}, i64 {rule.arena}"
    called = text.fragments.loop(touch)
    good_mask = text.emit(f"call i64 @{called}(ptr %m, {numbers}, {fixed})")
    start = text.emit(f"add i64 %{space}, {offset}")
    return Reached(start, "%local_size" if space == "local" else "0", addresses, good_mask)


def add_lanes(text: WarpText, instruction: Instruction, refuse: Refuse) -> tuple[int, int]:
    """Emit the store of the lanes that access generic addresses; return the place of these in the
    frame, and the constant offset."""
    place = 0 if instruction.opcode in ("st", "red") else 1
    operand = instruction.operands[place]
    base = operand.base if isinstance(operand, Address) else None
    if not isinstance(base, Register) or TYPE_BYTES[base.type] != 8:
        raise refuse("a generic address of this form")
    assert isinstance(operand, Address)
    lanes = text.emit(f"trunc i64 {text.lanes_on(instruction)} to i32")
    at = text.emit(f"getelementptr i32, ptr {text.field('reach_lanes', 'ptr')}, i64 %place")
    text.add(f"store i32 {lanes}, ptr {at}")
    return text.frame.place(text.function, base.name).offset, operand.offset


def add_pointed(
    text: WarpText, instruction: Instruction, pc: int, bounds: tuple[int, int], refuse: Refuse
) -> None:
    """Emit a load of the kernel's parameters through a pointer; it has no row.

    `bounds` is the number of accesses of the basic block before it, and the end of the parameters.
    The array engine reports the lane that reads outside of them. The lines end at the label
    `insidePC`.
    """
    to, address = instruction.operands
    size, parts = TYPE_BYTES[instruction.type], elements(to)
    if not isinstance(address, Address) or size > 8:
        raise refuse("this form")
    addresses, offset = _addresses(text, address, refuse)
    mask = text.lanes_on(instruction)
    number, end = bounds
    called = text.fragments.once("is_inside", "ptr, i64, i64, i64", _IS_INSIDE, "i1")
    last = end - size * len(parts)
    if last < 0:
        raise refuse("more bytes than the parameters have")
    inside = text.emit(f"call i1 @{called}(ptr {addresses}, i64 {offset}, i64 {last}, i64 {mask})")
    text.add(f"br i1 {inside}, label %inside{pc}, label %outside{pc}")
    text.lines.append(f"outside{pc}:")
    back = text.field("escape", "ptr")
    text.emit(f"call i64 {back}(i64 {pc}, i64 {number})")
    text.add("br label %faulty")
    text.lines.append(f"inside{pc}:")
    start = text.emit("ptrtoint ptr %parameters to i64")
    for k, element in enumerate(parts):
        if isinstance(element, Bucket):
            continue
        blended = instruction.guard is not None or text.outlives_block(element)
        called, place = loaded(text, instruction.type, element, blended, refuse)
        at = text.emit(f"add i64 {start}, {offset + k * size}")
        text.add(f"call void @{called}(i64 {at}, i64 0, ptr {addresses}, i64 {mask}, ptr {place})")


_IS_INSIDE = """
define i1 @is_inside(ptr %addresses, i64 %offset, i64 %last, i64 %mask) {
  %a = load <32 x i64>, ptr %addresses, align 8
  %o0 = insertelement <32 x i64> poison, i64 %offset, i64 0
  %o = shufflevector <32 x i64> %o0, <32 x i64> poison, <32 x i32> zeroinitializer
  %p = add <32 x i64> %a, %o
  %l0 = insertelement <32 x i64> poison, i64 %last, i64 0
  %l = shufflevector <32 x i64> %l0, <32 x i64> poison, <32 x i32> zeroinitializer
  %c = icmp ugt <32 x i64> %p, %l
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %b = and <32 x i1> %c, %m
  %w = bitcast <32 x i1> %b to i32
  %r = icmp eq i32 %w, 0
  ret i1 %r
}
"""


def _addresses(text: WarpText, operand: Address, refuse: Refuse) -> tuple[str, int]:
    """Return a pointer to 32 addresses of 64 bits, and the constant offset to add."""
    base = operand.base
    if isinstance(base, Register):
        place = text.place(base)
        size = TYPE_BYTES[base.type]
        if size == 8:
            return place, operand.offset
        if size != 4:
            raise refuse("an address of this size")
        return text.widened(place, "zext", operand.offset & 0xFFFFFFFF), 0
    start = 0
    if isinstance(base, Symbol):
        address = text.frame.address_of(text.function, base)
        if address is None:
            raise refuse("a variable whose address it does not know")
        start = address
    text.fill("%scratch", start)
    return "%scratch", operand.offset


def _value(
    text: WarpText, kind: str, element: Operand, scratch: str, refuse: Refuse
) -> tuple[int, str]:
    """Return the width and the place of the lanes of a value to store."""
    bits = 8 * TYPE_BYTES[kind]
    if isinstance(element, Register):
        wide = 8 * TYPE_BYTES[element.type]
        if wide < bits or element.type == "pred":
            raise refuse("a register narrower than its type")
        return wide, text.place(element)
    if isinstance(element, Immediate):
        value = immediate(element, kind)
        number = int(value.view(f"u{bits // 8}")[0, 0])
    else:
        address = text.frame.address_of(text.function, element)
        if address is None:
            raise refuse("an operand that it does not know")
        number = address & ((1 << bits) - 1)
    text.fill(scratch, number)
    return 64, scratch


def same_size(text: WarpText, kind: str, element: Operand, scratch: str, refuse: Refuse) -> str:
    """Return the place of the lanes of an operand, each as wide as `kind`."""
    bits = 8 * TYPE_BYTES[kind]
    wide, place = _value(text, kind, element, scratch, refuse)
    if wide == bits:
        return place
    called = text.fragments.once(f"cut{wide}_{bits}", "ptr, ptr", f"""
define void @cut{wide}_{bits}(ptr %from, ptr %to) {{
  %v = load <32 x i{wide}>, ptr %from, align 8
  %x = trunc <32 x i{wide}> %v to <32 x i{bits}>
  store <32 x i{bits}> %x, ptr %to, align 8
  ret void
}}
""")  # fmt: skip
    text.add(f"call void @{called}(ptr {place}, ptr {scratch})")
    return scratch


def keep_lanes(text: WarpText, to: Register, kind: str, mask: str, refuse: Refuse) -> None:
    """Write `%olds`, of type `kind`, to the lanes `mask` of a register."""
    bits, wide = 8 * TYPE_BYTES[kind], 8 * TYPE_BYTES[to.type]
    if wide < bits or to.type == "pred":
        raise refuse("a register narrower than its type")
    grow = "sext" if kind[0] == "s" else "zext"
    name = f"keep{bits}_{grow}{wide}"
    result = f"{grow if wide > bits else 'bitcast'} <32 x i{bits}> %x to <32 x i{wide}>"
    called = text.fragments.once(name, "i64, ptr, ptr", f"""
define void @{name}(i64 %mask, ptr %from, ptr %to) {{
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %x = load <32 x i{bits}>, ptr %from, align 8
  %v = {result}
  %old = load <32 x i{wide}>, ptr %to, align 8
  %y = select <32 x i1> %m, <32 x i{wide}> %v, <32 x i{wide}> %old
  store <32 x i{wide}> %y, ptr %to, align 8
  ret void
}}
""")  # fmt: skip
    text.add(f"call void @{called}(i64 {mask}, ptr %olds, ptr {text.place(to)})")


def add_atomic(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Emit an `atom` or `red`."""
    operands = list(instruction.operands)
    to = operands.pop(0) if instruction.opcode == "atom" else Bucket()
    kind, modifiers = instruction.type, instruction.modifiers
    operation = next((m for m in modifiers if m in OPERATIONS), "")
    if instruction.vector != 1 or any(m.endswith("cache_hint") for m in modifiers):
        raise refuse("this form")
    is_global = instruction.space == "global"
    recipe = update(operation, kind, is_global)
    differs = not instruction.space and recipe != update(operation, kind, True)
    if recipe is None or differs or "async" in modifiers:
        raise refuse("this form")
    size = TYPE_BYTES[kind]
    reach = emit_check(text, instruction, operands[0], size, position, number, refuse)
    values = [same_size(text, kind, o, f"%values{k}", refuse) for k, o in enumerate(operands[1:3])]
    fetch = reduction_of(text.frame.kernel, instruction)
    name = f"atomic_{operation}_{kind}_{instruction.space}{'_any_order' * bool(fetch)}"
    called = text.fragments.once(
        name, f"{TYPES}, ptr, ptr", update_text(name, *recipe, fetch=fetch)
    )
    arguments = f"i64 {reach.start}, i64 {reach.step}, ptr {reach.addresses}, i64 {reach.mask}"
    arguments = f"{arguments}, ptr %olds, ptr {values[0]}, ptr {values[-1]}"
    text.add(f"call void @{called}({arguments})")
    if isinstance(to, Register):
        keep_lanes(text, to, kind, reach.mask, refuse)
    elif not isinstance(to, Bucket):
        raise refuse("a result that is no register")


_COPY = """
declare i64 @llvm.cttz.i64(i64, i1)
define void @copy{bits}(i64 %from, ptr %sources, i64 %to, ptr %targets, i64 %mask) {{
entry:
  %none = icmp eq i64 %mask, 0
  br i1 %none, label %done, label %each
each:
  %rest = phi i64 [%mask, %entry], [%after, %each]
  %i = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %sp = getelementptr i64, ptr %sources, i64 %i
  %s = load i64, ptr %sp, align 8
  %sa = add i64 %from, %s
  %p = inttoptr i64 %sa to ptr
  %x = load i{bits}, ptr %p, align 1
  %tp = getelementptr i64, ptr %targets, i64 %i
  %t = load i64, ptr %tp, align 8
  %ta = add i64 %to, %t
  %q = inttoptr i64 %ta to ptr
  store i{bits} %x, ptr %q, align 1
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
done:
  ret void
}}
"""


def copied_bytes(instruction: Instruction) -> int:
    """Return the bytes that each lane copies: 4, 8 or 16; 0 if no single constant gives them."""
    size_operands = instruction.operands[2:]
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        size_operands = size_operands[:-1]
    sizes = {o.bits if isinstance(o, Immediate) else 0 for o in size_operands}
    size = sizes.pop() if len(sizes) == 1 else 0
    return size if size in (4, 8, 16) else 0


def add_copy(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Emit an asynchronous copy: access `number` of the basic block reads, and the next one
    writes."""
    size = copied_bytes(instruction)
    if not size:
        raise refuse("this form")
    to, source = instruction.operands[:2]
    read = emit_check(text, instruction, source, size, position, number, refuse, space="global")
    if read.addresses == "%scratch":
        raise refuse("a source that is no register of 64 bits")
    write = emit_check(text, instruction, to, size, position, number + 1, refuse)
    mask = text.emit(f"and i64 {read.mask}, {write.mask}")
    parameters = "i64, ptr, i64, ptr, i64"
    called = text.fragments.once(f"copy{8 * size}", parameters, _COPY.format(bits=8 * size))
    arguments = f"i64 {read.start}, ptr {read.addresses}, i64 {write.start}, ptr {write.addresses}"
    text.add(f"call void @{called}({arguments}, i64 {mask})")


def loaded(
    text: WarpText, kind: str, element: Operand, blended: bool, refuse: Refuse
) -> tuple[str, str]:
    """Return the function that loads lanes of a type, and its target; the other lanes keep their
    value if `blended`."""
    if not isinstance(element, Register):
        raise refuse("a result that is no register")
    bits, wide = 8 * TYPE_BYTES[kind], 8 * TYPE_BYTES[element.type]
    if wide < bits or element.type == "pred":
        raise refuse("a register narrower than its type")
    grow = "sext" if kind[0] == "s" else "zext"
    name = f"load{bits}" if bits == wide else f"load{bits}_{grow}{wide}"
    name += "_blended" if blended else ""
    how = "bitcast" if bits == wide else grow
    called = text.fragments.once(name, TYPES, load_text(name, bits, wide, how, blended))
    return called, text.place(element)


def stored(text: WarpText, kind: str, wide: int) -> str:
    """Return the function that stores lanes of a type, from a register of `wide` bits per lane."""
    bits = 8 * TYPE_BYTES[kind]
    name = f"store{bits}_{wide}"
    called: str = text.fragments.once(name, TYPES, store_text(name, bits, wide))
    return called
