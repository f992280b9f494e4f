"""Codegen of warp-level instructions: `shfl`, `vote`, `activemask`, `match`, `redux`, `elect`,
matrix products.

It emits calls of `exchange`, of decode/shuffle_vote.py, for each warp.
"""

from ...ptx.kernel import Bucket, Instruction, Not, Operand, Register
from ..decode.shuffle_vote import SHUFFLE, exchange, exchange_of
from .emit_access import keep_lanes, same_size
from .emit_lane import Refuse
from .emit_lines import WarpText
from .emit_mma import add_product


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
