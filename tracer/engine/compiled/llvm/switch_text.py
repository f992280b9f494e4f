"""The text of `brx.idx`: which lanes go to which of several targets."""

from collections.abc import Callable

from ....ptx.kernel import BasicBlock, Instruction
from .access_text import same_size
from .lane_text import Refuse
from .recursion_text import LOST, ask
from .warp_lines import WarpText

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


def ways_of(block: BasicBlock, instruction: Instruction) -> tuple[int, ...]:
    """Return the blocks to which a switch may go, in the order of its sides: targets by number,
    then the block after it if it is guarded."""
    if instruction.guard is None:
        return tuple(sorted(set(block.successors)))
    return (*sorted(set(block.successors[:-1])), block.successors[-1])


def add_switch(
    text: WarpText, block: BasicBlock, instruction: Instruction, refuse: Refuse,
    begin: Callable[[str], None],
) -> None:  # fmt: skip
    """Add the end of a block with a switch; `begin` is told the label that follows."""
    guard, successors = instruction.guard, block.successors
    taken, rest, targets = "%active", "", successors
    if guard is not None:
        taken = text.packed(guard.register, guard.negated)
        rest = text.emit(f"xor i32 {taken}, %active")
        targets = successors[:-1]
    numbers = same_size(text, "b32", instruction.operands[0], "%values", refuse)
    called = text.fragments.once("indexed", "ptr, i32", _INDEXED, "i32")
    sides = dict.fromkeys(sorted(set(targets)), "0")
    for index, target in enumerate(targets):
        equal = text.emit(f"call i32 @{called}(ptr {numbers}, i32 {index})")
        equal = text.emit(f"and i32 {equal}, {taken}")
        sides[target] = text.emit(f"or i32 {sides[target]}, {equal}")
    found = "0"
    for lanes in sides.values():
        found = text.emit(f"or i32 {found}, {lanes}")
    _require_all(text, block.last - 1, found, taken, begin)
    for number, lanes in enumerate((*sides.values(), *([rest] if rest else []))):
        text.put_side(number, lanes)


def _require_all(
    text: WarpText, pc: int, found: str, taken: str, begin: Callable[[str], None]
) -> None:
    """Let the array engine speak of an index beyond the targets."""
    known = text.emit(f"icmp eq i32 {found}, {taken}")
    text.add(f"br i1 {known}, label %known, label %lost")
    text.lines.append("lost:")
    text.add(f"br i1 {ask(text, pc, LOST)}, label %known, label %faulty")
    text.lines.append("known:")
    begin("known")
