"""The text of calls: what is passed, what a recursion puts aside, which lanes enter which function.

It gives what branch.py and passing.py give with arrays, warp by warp. Lanes that are as deep in a
recursion as one another, which most are, are put aside together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ....errors import CutraceError
from ...ptx.kernel import (
    TYPE_BYTES,
    BasicBlock,
    CallTarget,
    Instruction,
    Kernel,
    Operand,
    Register,
    Symbol,
    Variable,
)
from ..layout import local_layout, pointed_parameters
from ..piece import Place as ParameterPlace
from ..piece import Span
from ..pointer import callees, function_address
from .frame import Frame, Place
from .gather_text import stored
from .lane import Lane, llvm_type
from .passing_place import WIDEST, Passing, shared_register
from .warp_lines import WarpText

ROOM, LOST = -1, -2
"""What a call asks Python for, instead of an escape: room for another level, or what to say of a
pointer that is no function's."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that ends a basic block: the functions that it may enter, the block after it, and what
    it puts aside: places of registers, each with the bytes before it there."""

    pc: int
    function: int
    target: CallTarget
    callees: tuple[int, ...]
    after: int | None
    aside: tuple[tuple[Place, int], ...] = ()
    puts_aside: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of a kernel by the block that they end, and by the block after them; `aside_bytes`
    is what a level of recursion needs for a warp."""

    ending: dict[int, CallSite] = field(default_factory=dict)
    returning: dict[int, CallSite] = field(default_factory=dict)
    aside_bytes: int = 0

    def add(self, block: int, site: CallSite) -> None:
        """Add a call at the end of a block."""
        self.ending[block] = site
        if site.after is not None:
            self.returning[site.after] = site
        ends = (offset + 32 * place.size for place, offset in site.aside)
        self.aside_bytes = max(self.aside_bytes, *ends, 0)


def find_calls(kernel: Kernel, frame: Frame) -> Calls:
    """Return the calls of functions that have a body."""
    found = Calls()
    for block in kernel.blocks:
        instruction = kernel.instructions[block.last - 1]
        if is_inner_call(kernel, block, instruction):
            found.add(block.number, _site(kernel, frame, block, instruction))
    return found


def is_inner_call(kernel: Kernel, block: BasicBlock, instruction: Instruction) -> bool:
    """Whether an instruction calls a function of the module."""
    target = _target(instruction)
    return target is not None and (
        isinstance(target.callee, Register) or bool(callees(kernel, block.function, target))
    )


def _target(instruction: Instruction) -> CallTarget | None:
    return next((o for o in instruction.operands if isinstance(o, CallTarget)), None)


def _site(kernel: Kernel, frame: Frame, block: BasicBlock, instruction: Instruction) -> CallSite:
    target = _target(instruction)
    assert target is not None
    reached = tuple(callees(kernel, block.function, target))
    after = block.successors[0] if block.successors else None
    recursive = frame.passing.recursive
    again = after is not None and block.function in recursive and bool(recursive & set(reached))
    aside: list[tuple[Place, int]] = []
    end = 0
    for place in _put_aside(kernel, frame, block, target, after) if again else ():
        aside.append((place, end))
        end += 32 * place.size
    pc = block.last - 1
    return CallSite(pc, block.function, target, reached, after, tuple(aside), again)


def _put_aside(
    kernel: Kernel, frame: Frame, block: BasicBlock, target: CallTarget, after: int | None
) -> Iterator[Place]:
    """Yield the places of what is live after a call, and of the function's own parameters."""
    assert after is not None
    taken = {r.name for r in target.returns if isinstance(r, Register)}
    for function, name in sorted(kernel.live_in[after]):
        if name not in taken and (function, name) not in frame.parameters:
            yield frame.place(function, name)
    own = kernel.functions[block.function].function
    pieces = {
        (*place, *span)
        for variable in (*own.returns, *own.parameters)
        if variable.space == "param"
        for place in [frame.passing.place(block.function, variable.name)]
        for span in frame.passing.spans(place)
    }
    for piece in sorted(pieces):
        yield frame.others[piece]


class CallWriter:
    """Writes the calls of one kernel; `close_run` makes a loop over the lanes of a run, `begin` is
    told the labels of what follows."""

    def __init__(
        self,
        kernel: Kernel,
        frame: Frame,
        close_run: Callable[[WarpText, Lane], None],
        begin: Callable[[str], None],
    ) -> None:
        self._kernel = kernel
        self._frame = frame
        self._passing: Passing = frame.passing
        self._close_run = close_run
        self._begin = begin

    def call(self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]) -> None:
        """Add what a call does before its functions run."""
        mask = text.emit("zext i32 %active to i64")
        if site.puts_aside:
            self._save(text, site, mask)
        lane = Lane(self._frame, site.function, refuse)
        for callee in site.callees:
            self._pass(lane, site, callee)
        self._keep_all(text, lane)
        for callee in site.callees:
            for variable in pointed_parameters(self._kernel.functions[callee].function):
                self._copy_to_local(text, callee, variable, mask, refuse)
        self._sides(text, site, refuse)

    def come_back(
        self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]
    ) -> None:
        """Add what the block after a call begins with."""
        lane = Lane(self._frame, site.function, refuse)
        for callee in site.callees:
            variables = self._kernel.functions[callee].function.returns
            for to, variable in zip(site.target.returns, variables, strict=True):
                self._take(lane, site.function, callee, variable, to)
        self._keep_all(text, lane)
        if site.puts_aside:
            self._restore(text, site)

    def _keep_all(self, text: WarpText, lane: Lane) -> None:
        for register in lane.written.values():
            lane.keep(register, blended=True)
        if lane.written:
            self._close_run(text, lane)

    # arguments and results

    def read(self, lane: Lane, place: ParameterPlace, span: Span) -> str:
        """Return bytes of a parameter as an integer."""
        parts = self._parts(lane, place, span)
        if len(parts) == 1:
            return lane.operand(parts[0][0], f"b{8 * span[1]}")
        whole, bits = "0", 8 * span[1]
        for register, shift in parts:
            value = lane.operand(register, register.type)
            value = lane.emit(f"zext {llvm_type(register.type)} {value} to i{bits}")
            value = lane.emit(f"shl i{bits} {value}, {shift}")
            whole = lane.emit(f"or i{bits} {whole}, {value}")
        return whole

    def pieces_of(
        self, lane: Lane, place: ParameterPlace, span: Span, kind: str, value: str
    ) -> list[tuple[Operand, str, str]]:
        """Return the registers to which a value of type `kind` goes, with their types and parts."""
        parts = self._parts(lane, place, span)
        if len(parts) == 1:
            return [(parts[0][0], kind, value)]
        bits = 8 * span[1]
        value = lane.bitcast(value, llvm_type(kind), f"i{bits}")
        results: list[tuple[Operand, str, str]] = []
        for register, shift in parts:
            moved = lane.emit(f"lshr i{bits} {value}, {shift}")
            narrow = llvm_type(register.type)
            results.append(
                (register, register.type, lane.emit(f"trunc i{bits} {moved} to {narrow}"))
            )
        return results

    def _parts(self, lane: Lane, place: ParameterPlace, span: Span) -> list[tuple[Register, int]]:
        parts = self._passing.registers(place, span)
        if not parts or span[1] > WIDEST:
            raise lane.refuse("this size of a parameter")
        return parts

    def _write(self, lane: Lane, place: ParameterPlace, span: Span, kind: str, value: str) -> None:
        for register, type_, part in self.pieces_of(lane, place, span, kind, value):
            assert isinstance(register, Register)
            lane.write(register, type_, part, None)

    def _copy(self, lane: Lane, source: ParameterPlace, to: ParameterPlace) -> None:
        if source != to:
            for span in self._passing.spans(to):
                value = self.read(lane, source, span)
                self._write(lane, to, span, f"b{8 * span[1]}", value)

    def _pass(self, lane: Lane, site: CallSite, callee: int) -> None:
        taken = self._kernel.functions[callee].function.parameters
        for operand, variable in zip(site.target.arguments, taken, strict=True):
            place = self._passing.place(callee, variable.name)
            if variable.space == "reg":
                value = lane.operand(operand, variable.element)
                to = shared_register(self._kernel, callee, variable)
                lane.write(to, variable.element, value, None)
            elif isinstance(operand, Symbol):
                self._copy(lane, self._passing.place(site.function, operand.name), place)
            else:
                self._require_register(lane, variable)
                value = lane.operand(operand, variable.element)
                self._write(lane, place, (0, variable.size), variable.element, value)

    def _take(
        self, lane: Lane, function: int, callee: int, variable: Variable, to: Operand
    ) -> None:
        source = self._passing.place(callee, variable.name)
        if isinstance(to, Symbol):
            self._copy(lane, source, self._passing.place(function, to.name))
        elif isinstance(to, Register) and (function, to.name) in self._frame.lasting:
            if variable.space == "reg":
                register = shared_register(self._kernel, callee, variable)
                value = lane.operand(register, variable.element)
            else:
                self._require_register(lane, variable)
                value = self.read(lane, source, (0, variable.size))
                value = lane.bitcast(value, f"i{8 * variable.size}", llvm_type(variable.element))
            lane.write(to, variable.element, value, None)

    def _require_register(self, lane: Lane, variable: Variable) -> None:
        if variable.size != TYPE_BYTES[variable.element]:
            raise lane.refuse("a parameter that is no register's")

    def _copy_to_local(
        self, text: WarpText, callee: int, variable: Variable, mask: str,
        refuse: Callable[[str], CutraceError],
    ) -> None:  # fmt: skip
        """Copy what a call passes to local memory, where the callee's address of it points."""
        place = self._passing.place(callee, variable.name)
        start = local_layout(self._kernel).offsets[callee, variable.name]
        if callee in self._passing.recursive:
            depths = self._depths(text)
            called = text.fragments.once("levels", "ptr, i64, ptr", _LEVELS)
            stride = self._frame.local_stride
            text.add(f"call void @{called}(ptr {depths}, i64 {stride}, ptr %scratch)")
        else:
            text.fill("%scratch", 0)
        for offset, size in self._passing.spans(place):
            if size > WIDEST:
                raise refuse("this size of a parameter")
            held = self._frame.others[*place, offset, size].offset
            value = text.emit(f"getelementptr i8, ptr %frame, i64 {held}")
            at = text.emit(f"add i64 %local, {start + offset}")
            called = stored(text, f"b{8 * size}", 8 * size)
            given = f"i64 {at}, i64 %local_size, ptr %scratch, i64 {mask}, ptr {value}"
            text.add(f"call void @{called}({given})")

    # recursion

    def _depths(self, text: WarpText) -> str:
        offset = self._frame.depth.offset
        return text.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    def _ask(self, text: WarpText, pc: int, what: str) -> str:
        """Call Python; return whether all is well."""
        back = text.field("escape", "ptr")
        failed = text.emit(f"call i64 {back}(i64 {pc}, i64 {what})")
        return text.emit(f"icmp eq i64 {failed}, 0")

    def _save(self, text: WarpText, site: CallSite, mask: str) -> None:
        depths = self._depths(text)
        called = text.fragments.once("deepest", "ptr, i64", _DEEPEST, "i64")
        most = text.emit(f"call i64 @{called}(ptr {depths}, i64 {mask})")
        levels = text.field("aside_levels", "i64")
        room = text.emit(f"icmp slt i64 {most}, {levels}")
        text.add(f"br i1 {room}, label %enough, label %narrow")
        text.lines.append("narrow:")
        sound = self._ask(text, site.pc, str(ROOM))
        text.add(f"br i1 {sound}, label %enough, label %faulty")
        text.lines.append("enough:")
        self._begin("enough")
        self._move(text, site, mask, depths, "aside")
        self._deepen(text, depths, mask, 1)

    def _restore(self, text: WarpText, site: CallSite) -> None:
        depths, mask = self._depths(text), text.emit("zext i32 %active to i64")
        self._deepen(text, depths, mask, -1)
        self._move(text, site, mask, depths, "back")

    def _deepen(self, text: WarpText, depths: str, mask: str, by: int) -> None:
        called = text.fragments.once("deepen", "ptr, i64, i32", _DEEPEN)
        text.add(f"call void @{called}(ptr {depths}, i64 {mask}, i32 {by})")

    def _move(self, text: WarpText, site: CallSite, mask: str, depths: str, way: str) -> None:
        """Move what a call puts aside, there or back again."""
        row = text.emit("mul i64 %warp, ASIDE_BYTES")
        aside = text.field("aside", "ptr")
        row = text.emit(f"getelementptr i8, ptr {aside}, i64 {row}")
        warps = text.field("warps", "i64")
        stride = text.emit(f"mul i64 {warps}, ASIDE_BYTES")
        for place, offset in site.aside:
            bits = 8 * place.size
            held = text.emit(f"getelementptr i8, ptr %frame, i64 {place.offset}")
            there = text.emit(f"getelementptr i8, ptr {row}, i64 {offset}")
            name = f"{way}{bits}"
            definition = (_ASIDE if way == "aside" else _BACK).format(name=name, bits=bits)
            called = text.fragments.once(name, "ptr, ptr, i64, ptr, i64", definition)
            given = f"ptr {held}, ptr {there}, i64 {stride}, ptr {depths}, i64 {mask}"
            text.add(f"call void @{called}({given})")

    # which lanes go where

    def _sides(self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]) -> None:
        """Write the lanes that enter each function."""
        through = site.target.callee
        if isinstance(through, Symbol):
            self._put_side(text, 0, "%active")
            return
        place = text.place(through)
        if TYPE_BYTES[through.type] != 8:
            raise refuse("a pointer of this size")
        called = text.fragments.once("points_to", "ptr, i64", _POINTS_TO, "i32")
        found = "0"
        for number, callee in enumerate(site.callees):
            function = self._kernel.functions[callee].function
            address = function_address(self._kernel.module, function.name)
            equal = "0"
            if address is not None:
                equal = text.emit(f"call i32 @{called}(ptr {place}, i64 {address})")
                equal = text.emit(f"and i32 {equal}, %active")
            self._put_side(text, number, equal)
            found = text.emit(f"or i32 {found}, {equal}")
        known = text.emit(f"icmp eq i32 {found}, %active")
        text.add(f"br i1 {known}, label %known, label %lost")
        text.lines.append("lost:")
        sound = self._ask(text, site.pc, str(LOST))
        text.add(f"br i1 {sound}, label %known, label %faulty")
        text.lines.append("known:")
        self._begin("known")

    def _put_side(self, text: WarpText, number: int, lanes: str) -> None:
        sides = text.field("sides", "ptr")
        warps = text.field("warps", "i64")
        at = text.emit(f"add i64 {text.emit(f'mul i64 {warps}, {number}')}, %place")
        at = text.emit(f"getelementptr i32, ptr {sides}, i64 {at}")
        text.add(f"store i32 {lanes}, ptr {at}")


_LEVELS = """
define void @levels(ptr %depths, i64 %stride, ptr %to) {
  %d = load <32 x i32>, ptr %depths, align 4
  %w = zext <32 x i32> %d to <32 x i64>
  %s0 = insertelement <32 x i64> poison, i64 %stride, i64 0
  %s = shufflevector <32 x i64> %s0, <32 x i64> poison, <32 x i32> zeroinitializer
  %x = mul <32 x i64> %w, %s
  store <32 x i64> %x, ptr %to, align 8
  ret void
}
"""
_DEEPEST = """
declare i32 @llvm.vector.reduce.smax.v32i32(<32 x i32>)
define i64 @deepest(ptr %depths, i64 %mask) {
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %a = select <32 x i1> %m, <32 x i32> %d, <32 x i32> zeroinitializer
  %r = call i32 @llvm.vector.reduce.smax.v32i32(<32 x i32> %a)
  %w = zext i32 %r to i64
  ret i64 %w
}
"""
_DEEPEN = """
define void @deepen(ptr %depths, i64 %mask, i32 %by) {
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %b0 = insertelement <32 x i32> poison, i32 %by, i64 0
  %b = shufflevector <32 x i32> %b0, <32 x i32> poison, <32 x i32> zeroinitializer
  %n = add <32 x i32> %d, %b
  %x = select <32 x i1> %m, <32 x i32> %n, <32 x i32> %d
  store <32 x i32> %x, ptr %depths, align 4
  ret void
}
"""
_POINTS_TO = """
define i32 @points_to(ptr %pointers, i64 %address) {
  %p = load <32 x i64>, ptr %pointers, align 8
  %a0 = insertelement <32 x i64> poison, i64 %address, i64 0
  %a = shufflevector <32 x i64> %a0, <32 x i64> poison, <32 x i32> zeroinitializer
  %c = icmp eq <32 x i64> %p, %a
  %r = bitcast <32 x i1> %c to i32
  ret i32 %r
}
"""
_LEVEL_OF_ALL = """
declare i64 @llvm.cttz.i64(i64, i1)
define void @{{name}}(ptr %lanes, ptr %row, i64 %stride, ptr %depths, i64 %mask) {{{{
entry:
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %i = call i64 @llvm.cttz.i64(i64 %mask, i1 true)
  %fp = getelementptr i32, ptr %depths, i64 %i
  %f = load i32, ptr %fp, align 4
  %s0 = insertelement <32 x i32> poison, i32 %f, i64 0
  %s = shufflevector <32 x i32> %s0, <32 x i32> poison, <32 x i32> zeroinitializer
  %c = icmp ne <32 x i32> %d, %s
  %n = and <32 x i1> %c, %m
  %bits = bitcast <32 x i1> %n to i32
  %same = icmp eq i32 %bits, 0
  br i1 %same, label %all, label %each
all:
  %level = zext i32 %f to i64
  %at = mul i64 %level, %stride
  %p = getelementptr i8, ptr %row, i64 %at
  %new = load <32 x i{{bits}}>, ptr {source}, align 8
  %old = load <32 x i{{bits}}>, ptr {to}, align 8
  %x = select <32 x i1> %m, <32 x i{{bits}}> %new, <32 x i{{bits}}> %old
  store <32 x i{{bits}}> %x, ptr {to}, align 8
  ret void
each:
  %rest = phi i64 [%mask, %entry], [%after, %each]
  %j = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %dp = getelementptr i32, ptr %depths, i64 %j
  %dj = load i32, ptr %dp, align 4
  %lj = zext i32 %dj to i64
  %aj = mul i64 %lj, %stride
  %rj = getelementptr i8, ptr %row, i64 %aj
  %there = getelementptr i{{bits}}, ptr %rj, i64 %j
  %here = getelementptr i{{bits}}, ptr %lanes, i64 %j
  %v = load i{{bits}}, ptr {from_lane}, align 1
  store i{{bits}} %v, ptr {to_lane}, align 1
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
done:
  ret void
}}}}
"""
_ASIDE = _LEVEL_OF_ALL.format(source="%lanes", to="%p", from_lane="%here", to_lane="%there")
_BACK = _LEVEL_OF_ALL.format(source="%p", to="%lanes", from_lane="%there", to_lane="%here")
