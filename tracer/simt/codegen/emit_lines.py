"""Lines of LLVM assembly that run once per warp."""

from ...ptx.kernel import Instruction, Operand, Register
from ..warp.machine import Machine
from .emit_lane import Fragments
from .register_frame import Frame

_FIELDS = {name: number for number, name in enumerate(Machine.fields)}
_FILL = """
define void @fill(ptr %p, i64 %x) {
  %i = insertelement <32 x i64> poison, i64 %x, i64 0
  %s = shufflevector <32 x i64> %i, <32 x i64> poison, <32 x i32> zeroinitializer
  store <32 x i64> %s, ptr %p, align 8
  ret void
}
"""
_WIDEN = """
define void @widen{bits}_{grow}(ptr %p, i{bits} %offset, ptr %to) {{
  %a = load <32 x i{bits}>, ptr %p, align 4
  %i = insertelement <32 x i{bits}> poison, i{bits} %offset, i64 0
  %s = shufflevector <32 x i{bits}> %i, <32 x i{bits}> poison, <32 x i32> zeroinitializer
  %b = add <32 x i{bits}> %a, %s
  %w = {grow} <32 x i{bits}> %b to <32 x i64>
  store <32 x i64> %w, ptr %to, align 8
  ret void
}}
"""


class WarpText:
    """Lines that run once per warp: %m is the machine, %frame the warp's registers, %place its
    index in the group, %active its mask."""

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

    def field(self, name: str, kind: str = "i64") -> str:
        """Load a field of the machine."""
        at = self.emit(f"getelementptr i64, ptr %m, i64 {_FIELDS[name]}")
        return self.emit(f"load {kind}, ptr {at}")

    def put_side(self, number: int, lanes: str) -> None:
        """Store the mask of the lanes that take the successor of this number at the end of the
        block."""
        at = self.emit(f"mul i64 {self.field('warps')}, {number}")
        at = self.emit(f"add i64 {at}, %place")
        at = self.emit(f"getelementptr i32, ptr {self.field('sides', 'ptr')}, i64 {at}")
        self.add(f"store i32 {lanes}, ptr {at}")

    def fill(self, to: str, number: int) -> None:
        """Store a 64-bit number to 32 lanes."""
        called = self.fragments.once("fill", "ptr, i64", _FILL)
        self.add(f"call void @{called}(ptr {to}, i64 {number})")

    def place(self, register: Register) -> str:
        """Return a pointer to a register's lanes."""
        offset = self.frame.place(self.function, register.name).offset
        return self.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    def outlives_block(self, operand: Operand) -> bool:
        """Return whether a register has a value where a basic block begins or ends."""
        return isinstance(operand, Register) and (self.function, operand.name) in self.frame.lasting

    def widened(self, place: str, grow: str, offset: int = 0, bits: int = 32) -> str:
        """Extend 32 lanes of `bits` bits, plus `offset`, to 64 bits by `zext` or `sext`; return
        their place.

        The sum has as many bits as the register: a carry is lost.
        """
        text = _WIDEN.format(grow=grow, bits=bits)
        called = self.fragments.once(f"widen{bits}_{grow}", f"ptr, i{bits}, ptr", text)
        self.add(f"call void @{called}(ptr {place}, i{bits} {offset}, ptr %scratch)")
        return "%scratch"

    def packed(self, register: Register, negated: bool) -> str:
        """Return the mask of the active lanes where a predicate holds, as i32."""
        bits = self.emit(f"call i32 @pack(ptr {self.place(register)})")
        if negated:
            bits = self.emit(f"xor i32 {bits}, -1")
        return self.emit(f"and i32 {bits}, %active")

    def lanes_on(self, instruction: Instruction) -> str:
        """Return the mask of the active lanes where the guard holds, as i64."""
        guard = instruction.guard
        on = "%active" if guard is None else self.packed(guard.register, guard.negated)
        return self.emit(f"zext i32 {on} to i64")
