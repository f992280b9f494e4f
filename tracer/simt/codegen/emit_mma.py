"""Codegen of `ldmatrix`, `stmatrix`, `mma` and `wmma.mma`.

`add_matrix_access` moves rows of 16 bytes between shared memory and registers; the eight rows of a
matrix, side by side, are a register's 32 lanes (see matrix/ldmatrix.py). `add_product` calls the
routine of a form of a product (matrix/product.py).
"""

from ...ptx.kernel import TYPE_BYTES, Instruction, Register
from ..matrix import mma, wmma
from ..matrix.ldmatrix import COUNTS, ROW_BYTES
from .emit_access import element_operands, emit_check
from .emit_lane import Refuse
from .emit_lines import WarpText

_ROWS = """
define void @{name}(i64 %start, ptr %addresses, i64 %mask, ptr %rows) {{
entry:
  br label %row
row:
  %lane = phi i64 [0, %entry], [%next, %done]
  %own = getelementptr <4 x i32>, ptr %rows, i64 %lane
  %bits = lshr i64 %mask, %lane
  %on = trunc i64 %bits to i1
  br i1 %on, label %move, label %stay
move:
  %ap = getelementptr i64, ptr %addresses, i64 %lane
  %a = load i64, ptr %ap, align 8
  %at = add i64 %start, %a
  %p = inttoptr i64 %at to ptr
  %x = load <4 x i32>, ptr {source}, align 1
  store <4 x i32> %x, ptr {to}, align 1
  br label %done
stay:
  {otherwise}
  br label %done
done:
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %row, label %end
end:
  ret void
}}
"""
_ZERO = "store <4 x i32> zeroinitializer, ptr %own, align 8"
_TURNED = ", ".join(f"i32 {8 * (k % 8) + k // 8}" for k in range(64))
_PUT = """
define void @{name}(i64 %mask, ptr %from, ptr %to) {{
  %h = load <64 x i16>, ptr %from, align 8
  %t = shufflevector <64 x i16> %h, <64 x i16> poison, <64 x i32> <{order}>
  %v = bitcast <64 x i16> %t to <32 x i32>
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %old = load <32 x i32>, ptr %to, align 8
  %y = select <32 x i1> %m, <32 x i32> %v, <32 x i32> %old
  store <32 x i32> %y, ptr %to, align 8
  ret void
}}
"""


def add_matrix_access(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Emit an `ldmatrix` or `stmatrix`, access `number` of the basic block."""
    is_load = instruction.opcode == "ldmatrix"
    place, values = (1, 0) if is_load else (0, 1)
    registers = element_operands(instruction.operands[values])
    count = next((COUNTS[m] for m in instruction.modifiers if m in COUNTS), 0)
    if len(registers) != count or "m8n8" not in instruction.modifiers or instruction.type != "b16":
        raise refuse("this shape or type of matrix")
    active = text.lanes_on(instruction)
    rows = text.emit(f"and i64 {active}, {(1 << 8 * count) - 1}")
    operand = instruction.operands[place]
    reach = emit_check(text, instruction, operand, ROW_BYTES, position, number, refuse, rows)
    moved = f"i64 {reach.start}, ptr {reach.addresses}, i64 {reach.mask}, ptr %values"
    if is_load:
        text.add(f"call void @{_rows(text, count, is_load)}({moved})")
    for matrix, register in enumerate(registers):
        if not isinstance(register, Register) or TYPE_BYTES[register.type] != 4:
            raise refuse("an operand that is no register of 32 bits")
        at = text.emit(f"getelementptr i32, ptr %values, i64 {32 * matrix}")
        register_place = text.place(register)
        pair = f"ptr {at}, ptr {register_place}" if is_load else f"ptr {register_place}, ptr {at}"
        lanes = active if is_load else -1
        text.add(f"call void @{_put(text, 'trans' in instruction.modifiers)}(i64 {lanes}, {pair})")
    if not is_load:
        text.add(f"call void @{_rows(text, count, is_load)}({moved})")


def _rows(text: WarpText, count: int, is_load: bool) -> str:
    """Return the function that moves the rows of `count` matrices; the row of an inactive lane is
    zeros."""
    name = f"{'load' if is_load else 'store'}_rows{count}"
    source, to = ("%p", "%own") if is_load else ("%own", "%p")
    definition = _ROWS.format(
        name=name, source=source, to=to, otherwise=_ZERO if is_load else "", count=8 * count
    )
    return text.fragments.once(name, "i64, ptr, i64, ptr", definition)


def _put(text: WarpText, transposed: bool) -> str:
    """Return the function that writes a matrix, or its transpose, to some lanes of a register."""
    name = "put_turned" if transposed else "put_matrix"
    order = _TURNED if transposed else ", ".join(f"i32 {k}" for k in range(64))
    return text.fragments.once(name, "i64, ptr, ptr", _PUT.format(name=name, order=order))


def add_product(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    """Emit an `mma` or `wmma.mma` for the lanes `mask`."""
    find = mma.product_of if instruction.opcode == "mma" else wmma.product_of
    product = find(instruction)
    if product is None or product.sparsity or product.blocks:
        raise refuse("this shape or type")
    offsets = []
    size = 8 if product.types[1] == "f64" else 4
    for operand, count in zip(instruction.operands, product.registers, strict=True):
        registers = element_operands(operand)
        if len(registers) != count:
            raise refuse("this number of registers")
        for register in registers:
            if not isinstance(register, Register) or TYPE_BYTES[register.type] != size:
                raise refuse("an operand that is no register of its size")
            offsets.append(text.frame.place(text.function, register.name).offset)
    starts = text.fragments.table([offset // 4 for offset in offsets])
    kinds = "ptr, ptr, ptr, i64, i64"
    called = text.fragments.once("product", kinds, product.text, vectors=True)
    text.add(f"call void @{called}(ptr %frame, ptr @{starts}, ptr null, i64 {mask}, i64 1)")
