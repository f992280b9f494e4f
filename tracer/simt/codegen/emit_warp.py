"""Codegen of what a warp does together: `shfl`, `vote`, `activemask`, `match`, `redux`, `elect`,
matrices and their products.

`add_warp` emits calls of `exchange`, of decode/shuffle_vote.py, for each warp, or of the routine of
a form of a product (matrix/product.py). `add_matrix_access` moves rows of 16 bytes between shared
memory and registers; the eight rows of a matrix, side by side, are a register's 32 lanes (see
matrix/ldmatrix.py).
"""

from ...ptx.kernel import TYPE_BYTES, Bucket, Instruction, Not, Operand, Register
from ..access.lane_move import TYPES, load_text, store_text
from ..decode.address import elements
from ..decode.shuffle_vote import SHUFFLE, exchange, exchange_of
from ..matrix import mma, wmma
from ..matrix.ldmatrix import ROW_BYTES, TRANSPOSE, matrices_of
from .emit_access import emit_check, keep_lanes, same_size
from .emit_lane import Refuse
from .emit_lines import WarpText


def add_warp(text: WarpText, instruction: Instruction, refuse: Refuse) -> None:
    """Emit an exchange or a matrix product."""
    mask = text.lanes_on(instruction)
    if instruction.opcode in ("mma", "wmma"):
        add_product(text, instruction, mask, refuse)
        return
    form = exchange_of(instruction)
    if form is None:
        raise refuse("this form")
    seconds = same_size(text, "b32", form.second, "%values0", refuse)
    thirds = seconds
    if form.kind == SHUFFLE:
        thirds = same_size(text, "b32", form.third, "%values1", refuse)
    values = _values(text, *form.value, refuse)
    holds = text.emit("getelementptr i8, ptr %olds, i64 128")
    called = text.fragments.loop(exchange, vectors=True)
    arguments = f"i64 {form.kind}, i64 {form.mode}, ptr {values}, ptr {seconds}, ptr {thirds}"
    text.emit(f"call i64 @{called}({arguments}, i64 {mask}, ptr %olds, ptr {holds})")
    for to, kind in form.outputs:
        if isinstance(to, Bucket):
            continue
        if not isinstance(to, Register):
            raise refuse("a result that is no register")
        if kind == "pred":
            _keep_predicate(text, to, mask, holds, refuse)
        else:
            keep_lanes(text, to, kind, mask, refuse)


def _values(text: WarpText, operand: Operand, kind: str, refuse: Refuse) -> str:
    """Return the place of the lanes of an operand as 64-bit integers."""
    if kind != "pred":
        place = same_size(text, kind, operand, "%values", refuse)
        if kind == "b64":
            return place
        return text.widened(place, "sext" if kind[0] == "s" else "zext")
    register = operand.register if isinstance(operand, Not) else operand
    if not isinstance(register, Register):
        raise refuse("an operand that it does not know")
    # A predicate is 1 or 0, so that one less is the negated one: 0, or not.
    return text.widened(text.place(register), "zext", -isinstance(operand, Not), 8)


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
