"""The text of calls: what is passed, what a recursion puts aside, which lanes enter which function.

It gives what branch.py and argument_passing.py give with arrays, warp by warp.
"""

from collections.abc import Callable

from .....errors import CutraceError
from ....ptx.kernel import TYPE_BYTES, Kernel, Operand, Register, Symbol, Variable
from ...kernel.function_pointer import function_address
from ...kernel.parameter_layout import Place as ParameterPlace
from ...kernel.parameter_layout import Span
from ...kernel.variable_layout import local_layout, pointed_parameters
from ..frame.call_site import CallSite
from ..frame.passing_place import WIDEST, Passing, shared_register
from ..frame.register_frame import Frame
from .gather_text import stored
from .lane_text import Lane, llvm_type
from .recursion_text import LOST, ask, put_aside, put_levels, take_back
from .warp_lines import WarpText


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
            put_aside(text, self._frame, site, mask, self._begin)
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
            take_back(text, self._frame, site)

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
            put_levels(text, self._frame)
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

    # which lanes go where

    def _sides(self, text: WarpText, site: CallSite, refuse: Callable[[str], CutraceError]) -> None:
        """Write the lanes that enter each function."""
        through = site.target.callee
        if isinstance(through, Symbol):
            text.put_side(0, "%active")
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
            text.put_side(number, equal)
            found = text.emit(f"or i32 {found}, {equal}")
        known = text.emit(f"icmp eq i32 {found}, %active")
        text.add(f"br i1 {known}, label %known, label %lost")
        text.lines.append("lost:")
        sound = ask(text, site.pc, LOST)
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
