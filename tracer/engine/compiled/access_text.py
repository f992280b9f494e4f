"""The text of loads and stores of one warp: checked, recorded, then done."""

from dataclasses import dataclass
from functools import cache

from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    Bucket,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from ..array import DTYPES
from ..memory import GLOBAL_BASE
from ..slot import immediate
from .compute import Fragments
from .frame import Frame
from .lane import Refuse
from .reach import FEW, touch
from .translate import translate

_GATHER = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare <32 x i{n}> @llvm.masked.gather.v32i{n}.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i{n}>)
declare void @llvm.masked.scatter.v32i{n}.v32p0(<32 x i{n}>, <32 x ptr>, i32, <32 x i1>)
"""
_ACCESS = f"""
define void @{{name}}({{arguments}}) {{{{
entry:
  %count = call i64 @llvm.ctpop.i64(i64 %mask)
  %is_none = icmp eq i64 %count, 0
  br i1 %is_none, label %done, label %any
any:
  %is_few = icmp ule i64 %count, {FEW}
  br i1 %is_few, label %each, label %many
each:
  %rest = phi i64 [%mask, %any], [%after, %each]
  %i = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %pa = getelementptr i64, ptr %addresses, i64 %i
  %ea = load i64, ptr %pa, align 8
  %es = mul i64 %step, %i
  %eb = add i64 %start, %es
  %ew = add i64 %ea, %eb
  %ep = inttoptr i64 %ew to ptr
  %el = getelementptr i{{wide}}, ptr %lanes, i64 %i
  {{each}}
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
many:
  %a = load <32 x i64>, ptr %addresses, align 8
  %s0 = insertelement <32 x i64> poison, i64 %start, i64 0
  %s = shufflevector <32 x i64> %s0, <32 x i64> poison, <32 x i32> zeroinitializer
  %n0 = insertelement <32 x i64> poison, i64 %step, i64 0
  %n = shufflevector <32 x i64> %n0, <32 x i64> poison, <32 x i32> zeroinitializer
  %l = mul <32 x i64> %n, <{{numbers}}>
  %b = add <32 x i64> %s, %l
  %w = add <32 x i64> %a, %b
  %p = inttoptr <32 x i64> %w to <32 x ptr>
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  {{many}}
  br label %done
done:
  ret void
}}}}
"""
_LANES = ", ".join(f"i64 {lane}" for lane in range(32))
TYPES = "i64, i64, ptr, i64, ptr"
"""Of what moves lanes: where the space begins, bytes between its lanes, the addresses, the lanes
that go, the register."""

_TOUCH = "ptr, i64, i64, i64, i64, ptr, i64, i64, i64, i64"
_FILL = """
define void @fill(ptr %p, i64 %x) {
  %i = insertelement <32 x i64> poison, i64 %x, i64 0
  %s = shufflevector <32 x i64> %i, <32 x i64> poison, <32 x i32> zeroinitializer
  store <32 x i64> %s, ptr %p, align 8
  ret void
}
"""
_WIDEN = """
define void @widen_{grow}(ptr %p, ptr %to) {{
  %a = load <32 x i32>, ptr %p, align 4
  %w = {grow} <32 x i32> %a to <32 x i64>
  store <32 x i64> %w, ptr %to, align 8
  ret void
}}
"""
ARGUMENTS = "i64 %start, i64 %step, ptr %addresses, i64 %mask, ptr %lanes"


@dataclass(frozen=True, slots=True)
class SpaceRule:
    """How a state space is reached: the window that its trace addresses leave out, and the arena
    (1 global, 2 constant) whose allocations a lane must be inside of; 0: below a limit."""

    window: int
    arena: int


SPACES = {
    "global": SpaceRule(GLOBAL_BASE, 1),
    "const": SpaceRule(0, 2),
    "shared": SpaceRule(0, 0),
    "local": SpaceRule(0, 0),
}


class WarpText:
    """Lines that run once a warp; in them %m is the machine, %frame the warp's registers, %place
    its place in the group, %active its lanes."""

    def __init__(self, frame: Frame, function: int, fragments: Fragments) -> None:
        self.lines: list[str] = []
        self.frame = frame
        self.function = function
        self.fragments = fragments
        self._count = 0

    def emit(self, statement: str) -> str:
        """Add a statement; return the name of its value."""
        self._count += 1
        self.lines.append(f"  %u{self._count} = {statement}")
        return f"%u{self._count}"

    def add(self, line: str) -> None:
        """Add a line without a value."""
        self.lines.append(f"  {line}")

    def fill(self, to: str, number: int) -> None:
        """Put a number of 64 bits into 32 lanes."""
        called = self.fragments.once("fill", "ptr, i64", _FILL)
        self.add(f"call void @{called}(ptr {to}, i64 {number})")

    def place(self, register: Register) -> str:
        """Return a pointer to a register's lanes."""
        offset = self.frame.place(self.function, register.name).offset
        return self.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    def widened(self, place: str, grow: str) -> str:
        """Return where 32 lanes of 32 bits are 64 bits wide, by `zext` or `sext`."""
        called = self.fragments.once(f"widen_{grow}", "ptr, ptr", _WIDEN.format(grow=grow))
        self.add(f"call void @{called}(ptr {place}, ptr %scratch)")
        return "%scratch"

    def packed(self, register: Register, negated: bool) -> str:
        """Return the active lanes where a predicate holds, as i32."""
        bits = self.emit(f"call i32 @pack(ptr {self.place(register)})")
        if negated:
            bits = self.emit(f"xor i32 {bits}, -1")
        return self.emit(f"and i32 {bits}, %active")

    def lanes_on(self, instruction: Instruction) -> str:
        """Return the active lanes where the guard holds, as i64."""
        guard = instruction.guard
        on = "%active" if guard is None else self.packed(guard.register, guard.negated)
        return self.emit(f"zext i32 {on} to i64")


def element_operands(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def add_access(
    text: WarpText, instruction: Instruction, pc_position: int, number: int, refuse: Refuse
) -> None:
    """Add a load or store; `number` is its place among the accesses of the basic block."""
    is_load = instruction.opcode != "st"
    first, second = instruction.operands[:2]
    target, value = (second, first) if is_load else (first, second)
    size = TYPE_BYTES[instruction.type]
    elements = element_operands(value)
    if size > 8 or len(elements) != instruction.vector:
        raise refuse("this form")
    bytes_ = size * instruction.vector
    reach = touched(text, instruction, target, bytes_, pc_position, number, refuse)
    for k, element in enumerate(elements):
        if isinstance(element, Bucket):
            continue
        start = text.emit(f"add i64 {reach.start}, {k * size}")
        given = f"i64 {start}, i64 {reach.step}, ptr {reach.addresses}, i64 {reach.mask}"
        if is_load:
            called, place = _load(text, instruction.type, element, refuse)
        else:
            called, place = _store(text, instruction.type, element, refuse)
        text.add(f"call void @{called}({given}, ptr {place})")


@dataclass(frozen=True, slots=True)
class Reached:
    """Names: where the space begins, bytes between its lanes, the addresses, the lanes that go."""

    start: str
    step: str
    addresses: str
    mask: str


def touched(
    text: WarpText, instruction: Instruction, operand: Operand, bytes_: int, position: int,
    number: int, refuse: Refuse,
) -> Reached:  # fmt: skip
    """Add the check and the row of an access of `bytes_` bytes a lane."""
    rule = SPACES.get(instruction.space)
    if rule is None or not isinstance(operand, Address):
        raise refuse("an access without a state space")
    base = operand.base
    if instruction.space == "global" and isinstance(base, Register) and TYPE_BYTES[base.type] == 4:
        raise refuse("an address of 32 bits")
    addresses, offset = _addresses(text, operand, refuse)
    mask = text.lanes_on(instruction)
    numbers = f"i64 %place, i64 {number}, i64 {position}, i64 {mask}, ptr {addresses}"
    fixed = f"i64 {offset}, i64 {bytes_}, i64 {rule.window}, i64 {rule.arena}"
    called = text.fragments.once("touch", _TOUCH, _touch(), "i64")
    kept = text.emit(f"call i64 @{called}(ptr %m, {numbers}, {fixed})")
    start, step = _start(text, instruction.space)
    return Reached(text.emit(f"add i64 {start}, {offset}"), step, addresses, kept)


@cache
def _touch() -> str:
    return translate([touch])


def _addresses(text: WarpText, operand: Address, refuse: Refuse) -> tuple[str, int]:
    """Return a pointer to 32 addresses of 64 bits, and the bytes to add."""
    base = operand.base
    if isinstance(base, Register):
        place = text.place(base)
        size = TYPE_BYTES[base.type]
        if size == 8:
            return place, operand.offset
        if size != 4:
            raise refuse("an address of this size")
        grow = "sext" if DTYPES[base.type].kind == "i" else "zext"
        return text.widened(place, grow), operand.offset
    start = 0
    if isinstance(base, Symbol):
        found = text.frame.address_of(text.function, base)
        if found is None:
            raise refuse("a variable whose address it does not know")
        start = found
    text.fill("%scratch", start)
    return "%scratch", operand.offset


def _start(text: WarpText, space: str) -> tuple[str, str]:
    if space == "local":
        return "%local", "%local_size"
    return f"%{space}", "0"


def _load(text: WarpText, kind: str, element: Operand, refuse: Refuse) -> tuple[str, str]:
    if not isinstance(element, Register):
        raise refuse("a result that is no register")
    bits, wide = 8 * TYPE_BYTES[kind], 8 * TYPE_BYTES[element.type]
    if wide < bits or element.type == "pred":
        raise refuse("a register narrower than its type")
    grow = "sext" if kind[0] == "s" else "zext"
    name = f"load{bits}" if bits == wide else f"load{bits}_{grow}{wide}"
    how = "bitcast" if bits == wide else grow
    called = text.fragments.once(name, TYPES, _access(name, bits, wide, f"""
  %e = load i{bits}, ptr %ep, align 1
  %f = {how} i{bits} %e to i{wide}
  store i{wide} %f, ptr %el, align {wide // 8}
""", f"""
  %x = call <32 x i{bits}> @llvm.masked.gather.v32i{bits}.v32p0(
    <32 x ptr> %p, i32 1, <32 x i1> %m, <32 x i{bits}> zeroinitializer)
  %v = {how} <32 x i{bits}> %x to <32 x i{wide}>
  %old = load <32 x i{wide}>, ptr %lanes, align 8
  %y = select <32 x i1> %m, <32 x i{wide}> %v, <32 x i{wide}> %old
  store <32 x i{wide}> %y, ptr %lanes, align 8
"""))  # fmt: skip
    return called, text.place(element)


def _access(name: str, bits: int, wide: int, each: str, many: str) -> str:
    """Return a function that moves `bits` of lanes to or from registers of `wide` bits: `each` a
    lane in memory at %ep and in the register at %el, or `many` at once, at %p and %lanes."""
    return _GATHER.format(n=bits) + _ACCESS.format(
        name=name, arguments=ARGUMENTS, wide=wide, numbers=_LANES, each=each, many=many
    )


def _store(text: WarpText, kind: str, element: Operand, refuse: Refuse) -> tuple[str, str]:
    bits = 8 * TYPE_BYTES[kind]
    wide, place = _value(text, kind, element, "%values", refuse)
    name = f"store{bits}_{wide}"
    cut = "bitcast" if bits == wide else "trunc"
    called = text.fragments.once(name, TYPES, _access(name, bits, wide, f"""
  %f = load i{wide}, ptr %el, align {wide // 8}
  %e = {cut} i{wide} %f to i{bits}
  store i{bits} %e, ptr %ep, align 1
""", f"""
  %v = load <32 x i{wide}>, ptr %lanes, align 8
  %x = {cut} <32 x i{wide}> %v to <32 x i{bits}>
  call void @llvm.masked.scatter.v32i{bits}.v32p0(
    <32 x i{bits}> %x, <32 x ptr> %p, i32 1, <32 x i1> %m)
"""))  # fmt: skip
    return called, place


def _value(
    text: WarpText, kind: str, element: Operand, scratch: str, refuse: Refuse
) -> tuple[int, str]:
    """Return the bits and the place of the lanes of a value that goes to memory."""
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
        found = text.frame.address_of(text.function, element)
        if found is None:
            raise refuse("an operand that it does not know")
        number = found & ((1 << bits) - 1)
    text.fill(scratch, number)
    return 64, scratch


def same_size(text: WarpText, kind: str, element: Operand, scratch: str, refuse: Refuse) -> str:
    """Return the place of the lanes of an operand, each of the size of `kind`."""
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
    """Put what lies in `%olds`, of type `kind`, into the lanes `mask` of a register."""
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
