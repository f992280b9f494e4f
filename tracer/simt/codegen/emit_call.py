"""Codegen of calls: moves of arguments and results, saves of recursion, and the lanes that enter
each callee.

`find_calls` lists the call sites of a kernel with their possible callees. The file also emits
switches (`brx.idx`), which use the same masks per target.
"""

from collections.abc import Callable
from dataclasses import field

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ...ptx.kernel import (
    TYPE_BYTES,
    BasicBlock,
    CallTarget,
    Instruction,
    Kernel,
    Register,
    Symbol,
    key_of,
)
from ..decode.control_flow import is_inner_call
from ..decode.spill import spills_of
from ..kernel.function_pointer import callees, function_address
from ..kernel.layout import Place as ParameterPlace
from ..kernel.layout import Span, pointed_parameters
from ..kernel.passing import (
    WIDEST,
    Bytes,
    Move,
    Passed,
    Passing,
    argument_moves,
    result_moves,
    shared_register,
)
from ..warp.frame_stack import restore_lanes, save_lanes
from .emit_access import same_size
from .emit_lane import Lane, Refuse, Write, llvm_type
from .emit_lines import WarpText
from .register_frame import Frame


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that ends a basic block: its possible callees, and the block after it. The interpreter
    runs it if a callee takes the address of a parameter."""

    pc: int
    function: int
    target: CallTarget
    callees: tuple[int, ...]
    after: int | None
    is_interpreted: bool


@dataclass(slots=True)
class Calls:
    """The calls of functions with a body, by the block that they end (`ending`) and by the block
    after them (`returning`)."""

    ending: dict[int, CallSite] = field(default_factory=dict)
    returning: dict[int, CallSite] = field(default_factory=dict)


def find_calls(kernel: Kernel) -> Calls:
    """Return the calls of a kernel."""
    calls = Calls()
    for block in kernel.blocks:
        instruction = kernel.instructions[block.last - 1]
        if not is_inner_call(kernel, block, instruction):
            continue
        target = next(o for o in instruction.operands if isinstance(o, CallTarget))
        reached = tuple(callees(kernel, block.function, target))
        after = block.successors[0] if block.successors else None
        pointed = any(pointed_parameters(kernel.functions[k].function) for k in reached)
        site = CallSite(block.last - 1, block.function, target, reached, after, pointed)
        calls.ending[block.number] = site
        if after is not None:
            calls.returning[after] = site
    return calls


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
        self._spills = spills_of(key_of(kernel))
        self._close_run = close_run
        self._begin = begin

    def call(self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]) -> None:
        """Emit the code before the callees run: spills, arguments, and masks."""
        if site.after is not None and site.after in self._spills.after:
            self._save(text, site.pc, site.after)
        lane = Lane(self._frame, site.function, refuse)
        for callee in site.callees:
            moves = argument_moves(
                self._kernel, self._passing, site.function, site.target, callee, refuse
            )
            for move in moves:
                self._write_all(lane, move)
        self._keep_all(text, lane)
        self._sides(text, site, refuse)

    def come_back(
        self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]
    ) -> None:
        """Emit the beginning of the block after a call."""
        lane = Lane(self._frame, site.function, refuse)
        for callee in site.callees:
            moves = result_moves(
                self._kernel, self._passing, site.function, site.target, callee, refuse
            )
            for move in moves:
                to = move.to
                if not isinstance(to, Register) or (site.function, to.name) in self._frame.lasting:
                    self._write_all(lane, move)
        self._keep_all(text, lane)
        if site.after is not None and site.after in self._spills.after:
            mask = text.emit("zext i32 %active to i64")
            arguments = f"{self._saved_registers(text, site.after)}, ptr {self._depths(text)}"
            called = text.fragments.loop(restore_lanes, vectors=True)
            text.emit(f"call i64 @{called}({arguments}, i64 {mask})")

    def _save(self, text: WarpText, pc: int, after: int) -> None:
        """Emit the save of registers in the active lanes, again once there is room for a level."""
        text.add("br label %save")
        text.lines.append("save:")
        mask = text.emit("zext i32 %active to i64")
        levels = text.field("aside_levels")
        arguments = f"{self._saved_registers(text, after)}, i64 {levels}, ptr {self._depths(text)}"
        called = text.fragments.loop(save_lanes, vectors=True)
        full = text.emit(f"call i64 @{called}({arguments}, i64 {mask})")
        fits = text.emit(f"icmp eq i64 {full}, 0")
        text.add(f"br i1 {fits}, label %saved, label %full")
        text.lines.append("full:")
        text.add(f"br i1 {emit_callback(text, pc, NEEDS_FRAMES)}, label %save, label %faulty")
        text.lines.append("saved:")
        self._begin("saved")

    def _saved_registers(self, text: WarpText, after: int) -> str:
        """Emit the arguments of a save: the table of registers, the frame, and the stack."""
        rows = [
            (spill.size, place.offset, spill.offset)
            for spill in self._spills.after[after]
            if (place := self._frame.lasting_place(spill.key)) is not None
        ]
        table = text.fragments.table([number for row in rows for number in row])
        level = self._spills.level_bytes
        row = text.emit(f"mul i64 %warp, {level}")
        row = text.emit(f"getelementptr i8, ptr {text.field('aside', 'ptr')}, i64 {row}")
        stride = text.emit(f"mul i64 {text.field('warps')}, {level}")
        return f"ptr @{table}, i64 {len(rows)}, ptr %frame, ptr {row}, i64 {stride}"

    def _depths(self, text: WarpText) -> str:
        """Return a pointer to the recursion depth of each lane."""
        return text.emit(f"getelementptr i8, ptr %frame, i64 {self._frame.depth.offset}")

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

    def value(self, lane: Lane, move: Move) -> str:
        """Return the value that moves."""
        source = move.source
        if isinstance(source, Bytes):
            value = self.read(lane, source.place, source.span)
            return lane.bitcast(value, f"i{8 * source.span[1]}", llvm_type(move.kind))
        if isinstance(source, Passed):
            source = shared_register(self._kernel, source.function, source.name)
        return lane.operand(source, move.kind)

    def writes(self, lane: Lane, move: Move) -> list[Write]:
        """Return the writes of a move."""
        value, to = self.value(lane, move), move.to
        if isinstance(to, Bytes):
            return self.pieces_of(lane, to.place, to.span, move.kind, value)
        if isinstance(to, Passed):
            to = shared_register(self._kernel, to.function, to.name)
        return [(to, move.kind, value)]

    def _write_all(self, lane: Lane, move: Move) -> None:
        for register, kind, value in self.writes(lane, move):
            assert isinstance(register, Register)
            lane.write(register, kind, value, None)

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
        hits = "0"
        for number, callee in enumerate(site.callees):
            function = self._kernel.functions[callee].function
            address = function_address(self._kernel.module, function.name)
            equal = "0"
            if address is not None:
                equal = _lanes_equal(text, place, address, 64, "%active")
            text.put_side(number, equal)
            hits = text.emit(f"or i32 {hits}, {equal}")
        _require_all(text, site.pc, hits, "%active", self._begin)


_EQUAL = """
define i32 @equal{bits}(ptr %values, i{bits} %value) {{
  %v = load <32 x i{bits}>, ptr %values, align 4
  %a0 = insertelement <32 x i{bits}> poison, i{bits} %value, i64 0
  %a = shufflevector <32 x i{bits}> %a0, <32 x i{bits}> poison, <32 x i32> zeroinitializer
  %c = icmp eq <32 x i{bits}> %v, %a
  %r = bitcast <32 x i1> %c to i32
  ret i32 %r
}}
"""


def _lanes_equal(text: WarpText, values: str, value: int, bits: int, mask: str) -> str:
    """Emit the mask of those lanes of `mask` that have a value, of `bits` bits, in `values`."""
    definition = _EQUAL.format(bits=bits)
    called = text.fragments.once(f"equal{bits}", f"ptr, i{bits}", definition, "i32")
    equal = text.emit(f"call i32 @{called}(ptr {values}, i{bits} {value})")
    return text.emit(f"and i32 {equal}, {mask}")


NEEDS_FRAMES = -1
"""The request of a call to Python, passed in place of a number of accesses, for room for another
level of recursion."""


def emit_callback(text: WarpText, pc: int, what: int = 0) -> str:
    """Emit a callback to Python; return the name of a value that says whether it succeeded."""
    back = text.field("escape", "ptr")
    failed = text.emit(f"call i64 {back}(i64 {pc}, i64 {what})")
    return text.emit(f"icmp eq i64 {failed}, 0")


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
    sides = dict.fromkeys(sorted(set(targets)), "0")
    for index, target in enumerate(targets):
        equal = _lanes_equal(text, numbers, index, 32, guard_mask)
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
    """Emit a call of the array engine for lanes without a target, which it reports: of an index
    beyond the targets, or a pointer to no callee."""
    is_complete = text.emit(f"icmp eq i32 {hits}, {guard_mask}")
    text.add(f"br i1 {is_complete}, label %known, label %lost")
    text.lines.append("lost:")
    text.add(f"br i1 {emit_callback(text, pc)}, label %known, label %faulty")
    text.lines.append("known:")
    begin("known")
