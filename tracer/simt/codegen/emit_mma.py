"""Codegen of `ldmatrix`, `stmatrix`, `mma` and `wmma.mma`.

`add_matrix_access` moves rows of 16 bytes between shared memory and registers; the eight rows of a
matrix, side by side, are a register's 32 lanes (see matrix/ldmatrix.py). `add_product` calls the
routine of a form of a product (matrix/product.py).
"""

from ...ptx.kernel import TYPE_BYTES, Instruction, Register
from ..access.lane_move import TYPES, load_text, store_text
from ..decode.address import elements
from ..matrix import mma, wmma
from ..matrix.ldmatrix import ROW_BYTES, TRANSPOSE, matrices_of
from .emit_access import emit_check
from .emit_lane import Refuse
from .emit_lines import WarpText

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
    registers = elements(instruction.operands[values])
    count = matrices_of(instruction)
    if not count or len(registers) != count:
        raise refuse("this shape or type of matrix")
    active = text.lanes_on(instruction)
    rows = text.emit(f"and i64 {active}, {(1 << 8 * count) - 1}")
    operand = instruction.operands[place]
    reach = emit_check(text, instruction, operand, ROW_BYTES, position, number, refuse, rows)
    moved = f"i64 {reach.start}, i64 0, ptr {reach.addresses}, i64 {reach.mask}, ptr %values"
    if is_load:  # the row of an inactive lane is zeros
        text.add("store <64 x i64> zeroinitializer, ptr %values, align 64")
        rows = text.fragments.once("load128", TYPES, load_text("load128", 128, 128, "bitcast"))
        text.add(f"call void @{rows}({moved})")
    for matrix, register in enumerate(registers):
        if not isinstance(register, Register) or TYPE_BYTES[register.type] != 4:
            raise refuse("an operand that is no register of 32 bits")
        at = text.emit(f"getelementptr i32, ptr %values, i64 {32 * matrix}")
        register_place = text.place(register)
        pair = f"ptr {at}, ptr {register_place}" if is_load else f"ptr {register_place}, ptr {at}"
        lanes = active if is_load else -1
        text.add(f"call void @{_put(text, 'trans' in instruction.modifiers)}(i64 {lanes}, {pair})")
    if not is_load:
        rows = text.fragments.once("store128", TYPES, store_text("store128", 128, 128))
        text.add(f"call void @{rows}({moved})")


def _put(text: WarpText, transposed: bool) -> str:
    """Return the function that writes a matrix, or its transpose, to some lanes of a register."""
    name = "put_turned" if transposed else "put_matrix"
    order = ", ".join(f"i32 {k}" for k in (TRANSPOSE if transposed else range(64)))
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
        registers = elements(operand)
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
