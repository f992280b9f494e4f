"""Codegen of calls: arguments and results, spills of recursion, and the lanes that enter each
callee.

It gives the results of call/argument_passing.py, warp by warp. `find_calls` lists the call sites of
a kernel with their possible callees and the registers that recursion spills. The file also emits
switches (`brx.idx`), which use the same masks per target.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
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
from ..decode.control_flow import is_inner_call
from ..kernel.function_pointer import callees, function_address
from ..kernel.layout import Place as ParameterPlace
from ..kernel.layout import Span, local_layout, pointed_parameters
from .argument_frame import WIDEST, Passing, shared_register
from .emit_access import same_size, stored
from .emit_lane import Lane, Refuse, Write, llvm_type
from .emit_lines import WarpText
from .register_frame import Frame, Place


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that ends a basic block: its possible callees, the block after it, and the registers
    that it spills: places in the frame, each with its offset in the spill area."""

    pc: int
    function: int
    target: CallTarget
    callees: tuple[int, ...]
    after: int | None
    spilled: tuple[tuple[Place, int], ...] = ()
    puts_aside: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of a kernel, by the block that they end (`ending`) and by the block after them
    (`returning`); `aside_bytes` is the spill area of one level of recursion per warp."""

    ending: dict[int, CallSite] = field(default_factory=dict)
    returning: dict[int, CallSite] = field(default_factory=dict)
    aside_bytes: int = 0

    def add(self, block: int, site: CallSite) -> None:
        """Add the call at the end of a block."""
        self.ending[block] = site
        if site.after is not None:
            self.returning[site.after] = site


def find_calls(kernel: Kernel, frame: Frame) -> Calls:
    """Return the calls of functions that have a body.

    Lanes of a warp may reach the same depth of recursion through different calls. A spill of one
    lane must therefore never overlap the spill of another lane by another call: a level has one
    part per size of a place, with the same layout for all calls.
    """
    calls = Calls()
    sites: dict[int, tuple[CallSite, list[Place]]] = {}
    for block in kernel.blocks:
        instruction = kernel.instructions[block.last - 1]
        if is_inner_call(kernel, block, instruction):
            sites[block.number] = _site(kernel, frame, block, instruction)
    most: Counter[int] = Counter()
    for _, places in sites.values():
        most |= Counter(place.size for place in places)
    begins: dict[int, int] = {}
    for size in sorted(most, reverse=True):
        begins[size] = calls.aside_bytes
        calls.aside_bytes += 32 * size * most[size]
    for number, (site, places) in sites.items():
        calls.add(number, replace(site, spilled=tuple(_lay_out(places, begins))))
    return calls


def _lay_out(places: Iterable[Place], begins: Mapping[int, int]) -> Iterator[tuple[Place, int]]:
    """Yield places with their offsets in the spill area, each in the part for its size."""
    ends = dict(begins)
    for place in places:
        yield place, ends[place.size]
        ends[place.size] += 32 * place.size


def _target(instruction: Instruction) -> CallTarget | None:
    return next((o for o in instruction.operands if isinstance(o, CallTarget)), None)


def _site(
    kernel: Kernel, frame: Frame, block: BasicBlock, instruction: Instruction
) -> tuple[CallSite, list[Place]]:
    """Return a call site without its spills, and the places to spill."""
    target = _target(instruction)
    assert target is not None
    reached = tuple(callees(kernel, block.function, target))
    after = block.successors[0] if block.successors else None
    recursive = frame.passing.recursive
    again = after is not None and block.function in recursive and bool(recursive & set(reached))
    places = list(_put_aside(kernel, frame, block, target, after)) if again else []
    site = CallSite(block.last - 1, block.function, target, reached, after, puts_aside=again)
    return site, places


def _put_aside(
    kernel: Kernel, frame: Frame, block: BasicBlock, target: CallTarget, after: int | None
) -> Iterator[Place]:
    """Yield the places of the registers that are live after a call, and of the function's own
    parameters."""
    assert after is not None
    return_names = {r.name for r in target.returns if isinstance(r, Register)}
    for function, name in sorted(kernel.live_in[after]):
        if name not in return_names and (function, name) not in frame.parameters:
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
    """Emits the calls of one kernel.

    `close_run` emits the loop over the lanes of a run; `begin` takes the label of the code that
    follows.
    """

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
        """Emit the code before the callees run: spills, arguments, and masks."""
        mask = text.emit("zext i32 %active to i64")
        if site.puts_aside:
            emit_spill(text, self._frame, site, mask, self._begin)
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
        """Emit the beginning of the block after a call."""
        lane = Lane(self._frame, site.function, refuse)
        for callee in site.callees:
            variables = self._kernel.functions[callee].function.returns
            for to, variable in zip(site.target.returns, variables, strict=True):
                self._take(lane, site.function, callee, variable, to)
        self._keep_all(text, lane)
        if site.puts_aside:
            emit_restore(text, self._frame, site)

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
    ) -> list[Write]:
        """Return the registers that take a value of type `kind`, with their types and parts."""
        parts = self._parts(lane, place, span)
        if len(parts) == 1:
            return [(parts[0][0], kind, value)]
        bits = 8 * span[1]
        value = lane.bitcast(value, llvm_type(kind), f"i{bits}")
        results: list[Write] = []
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
        parameters = self._kernel.functions[callee].function.parameters
        for operand, variable in zip(site.target.arguments, parameters, strict=True):
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
        """Emit the copy of an argument to local memory, where the callee takes its address."""
        place = self._passing.place(callee, variable.name)
        start = local_layout(self._kernel).offsets[callee, variable.name]
        if callee in self._passing.recursive:
            emit_levels(text, self._frame)
        else:
            text.fill("%scratch", 0)
        for offset, size in self._passing.spans(place):
            if size > WIDEST:
                raise refuse("this size of a parameter")
            frame_offset = self._frame.others[*place, offset, size].offset
            value = text.emit(f"getelementptr i8, ptr %frame, i64 {frame_offset}")
            at = text.emit(f"add i64 %local, {start + offset}")
            called = stored(text, f"b{8 * size}", 8 * size)
            arguments = f"i64 {at}, i64 %local_size, ptr %scratch, i64 {mask}, ptr {value}"
            text.add(f"call void @{called}({arguments})")

    # the lanes of each callee

    def _sides(self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]) -> None:
        """Emit the masks of the lanes that enter each callee."""
        through = site.target.callee
        if isinstance(through, Symbol):
            text.put_side(0, "%active")
            return
        place = text.place(through)
        if TYPE_BYTES[through.type] != 8:
            raise refuse("a pointer of this size")
        called = text.fragments.once("points_to", "ptr, i64", _POINTS_TO, "i32")
        hits = "0"
        for number, callee in enumerate(site.callees):
            function = self._kernel.functions[callee].function
            address = function_address(self._kernel.module, function.name)
            equal = "0"
            if address is not None:
                equal = text.emit(f"call i32 @{called}(ptr {place}, i64 {address})")
                equal = text.emit(f"and i32 {equal}, %active")
            text.put_side(number, equal)
            hits = text.emit(f"or i32 {hits}, {equal}")
        # A lane with a pointer to no callee is an error, which the array engine reports.
        is_complete = text.emit(f"icmp eq i32 {hits}, %active")
        text.add(f"br i1 {is_complete}, label %known, label %lost")
        text.lines.append("lost:")
        sound = emit_callback(text, site.pc, LOST)
        text.add(f"br i1 {sound}, label %known, label %faulty")
        text.lines.append("known:")
        self._begin("known")


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


NEEDS_FRAMES, LOST = -1, -2
"""Requests of a call to Python, passed in place of a number of accesses: room for another level of
recursion, or the error for a pointer to no function."""


def emit_callback(text: WarpText, pc: int, what: int) -> str:
    """Emit a callback to Python; return the name of a value that says whether it succeeded."""
    back = text.field("escape", "ptr")
    failed = text.emit(f"call i64 {back}(i64 {pc}, i64 {what})")
    return text.emit(f"icmp eq i64 {failed}, 0")


def depths_of(text: WarpText, frame: Frame) -> str:
    """Return a pointer to the recursion depth of each lane."""
    return text.emit(f"getelementptr i8, ptr %frame, i64 {frame.depth.offset}")


def emit_levels(text: WarpText, frame: Frame) -> None:
    """Emit into `%scratch` the offset of each lane's level in local memory."""
    called = text.fragments.once("levels", "ptr, i64, ptr", _LEVELS)
    depths = depths_of(text, frame)
    text.add(f"call void @{called}(ptr {depths}, i64 {frame.local_stride}, ptr %scratch)")


def emit_spill(
    text: WarpText, frame: Frame, site: CallSite, mask: str, begin: Callable[[str], None]
) -> None:
    """Emit the spill of registers in lanes `mask`; `begin` takes the label that follows."""
    depths = depths_of(text, frame)
    called = text.fragments.once("deepest", "ptr, i64", _DEEPEST, "i64")
    most = text.emit(f"call i64 @{called}(ptr {depths}, i64 {mask})")
    has_space = text.emit(f"icmp slt i64 {most}, {text.field('aside_levels')}")
    text.add(f"br i1 {has_space}, label %enough, label %narrow")
    text.lines.append("narrow:")
    text.add(f"br i1 {emit_callback(text, site.pc, NEEDS_FRAMES)}, label %enough, label %faulty")
    text.lines.append("enough:")
    begin("enough")
    _move(text, site, mask, depths, "aside")
    _deepen(text, depths, mask, 1)


def emit_restore(text: WarpText, frame: Frame, site: CallSite) -> None:
    """Emit the restore of spilled registers in the active lanes."""
    depths, mask = depths_of(text, frame), text.emit("zext i32 %active to i64")
    _deepen(text, depths, mask, -1)
    _move(text, site, mask, depths, "back")


def _deepen(text: WarpText, depths: str, mask: str, by: int) -> None:
    called = text.fragments.once("deepen", "ptr, i64, i32", _DEEPEN)
    text.add(f"call void @{called}(ptr {depths}, i64 {mask}, i32 {by})")


def _move(text: WarpText, site: CallSite, mask: str, depths: str, way: str) -> None:
    """Emit the moves between the frame and the spill area, in the direction `way`."""
    row = text.emit("mul i64 %warp, ASIDE_BYTES")
    row = text.emit(f"getelementptr i8, ptr {text.field('aside', 'ptr')}, i64 {row}")
    stride = text.emit(f"mul i64 {text.field('warps')}, ASIDE_BYTES")
    for place, offset in site.spilled:
        bits = 8 * place.size
        pointer = text.emit(f"getelementptr i8, ptr %frame, i64 {place.offset}")
        there = text.emit(f"getelementptr i8, ptr {row}, i64 {offset}")
        name = f"{way}{bits}"
        definition = (_SPILL if way == "aside" else _RESTORE).format(name=name, bits=bits)
        called = text.fragments.once(name, "ptr, ptr, i64, ptr, i64", definition)
        arguments = f"ptr {pointer}, ptr {there}, i64 {stride}, ptr {depths}, i64 {mask}"
        text.add(f"call void @{called}({arguments})")


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
_SPILL = _LEVEL_OF_ALL.format(source="%lanes", to="%p", from_lane="%here", to_lane="%there")
_RESTORE = _LEVEL_OF_ALL.format(source="%p", to="%lanes", from_lane="%there", to_lane="%here")


_INDEXED = """
define i32 @indexed(ptr %numbers, i32 %index) {
  %n = load <32 x i32>, ptr %numbers, align 4
  %i0 = insertelement <32 x i32> poison, i32 %index, i64 0
  %i = shufflevector <32 x i32> %i0, <32 x i32> poison, <32 x i32> zeroinitializer
  %c = icmp eq <32 x i32> %n, %i
  %r = bitcast <32 x i1> %c to i32
  ret i32 %r
}
"""


def add_switch(
    text: WarpText, block: BasicBlock, instruction: Instruction, refuse: Refuse,
    begin: Callable[[str], None],
) -> None:  # fmt: skip
    """Emit the end of a block with a switch; `begin` takes the label that follows."""
    guard, successors = instruction.guard, block.successors
    guard_mask, fall_through, targets = "%active", "", successors
    if guard is not None:
        guard_mask = text.packed(guard.register, guard.negated)
        fall_through = text.emit(f"xor i32 {guard_mask}, %active")
        targets = successors[:-1]
    numbers = same_size(text, "b32", instruction.operands[0], "%values", refuse)
    called = text.fragments.once("indexed", "ptr, i32", _INDEXED, "i32")
    sides = dict.fromkeys(sorted(set(targets)), "0")
    for index, target in enumerate(targets):
        equal = text.emit(f"call i32 @{called}(ptr {numbers}, i32 {index})")
        equal = text.emit(f"and i32 {equal}, {guard_mask}")
        sides[target] = text.emit(f"or i32 {sides[target]}, {equal}")
    hits = "0"
    for lanes in sides.values():
        hits = text.emit(f"or i32 {hits}, {lanes}")
    _require_all(text, block.last - 1, hits, guard_mask, begin)
    for number, lanes in enumerate((*sides.values(), *([fall_through] if fall_through else []))):
        text.put_side(number, lanes)


def _require_all(
    text: WarpText, pc: int, hits: str, guard_mask: str, begin: Callable[[str], None]
) -> None:
    """Emit a call of the array engine, which reports an index beyond the targets."""
    is_complete = text.emit(f"icmp eq i32 {hits}, {guard_mask}")
    text.add(f"br i1 {is_complete}, label %known, label %lost")
    text.lines.append("lost:")
    text.add(f"br i1 {emit_callback(text, pc, LOST)}, label %known, label %faulty")
    text.lines.append("known:")
    begin("known")
