"""The text of `cp.async`: 4, 8 or 16 bytes a lane from global to shared memory, at once.

See memory/async_copy.py. The array engine makes the copies whose lanes may read fewer bytes.
"""

from ....ptx.kernel import Immediate, Instruction
from .access_text import touched
from .lane_text import Refuse
from .warp_lines import WarpText

_COPY = """
declare i64 @llvm.cttz.i64(i64, i1)
define void @copy{bits}(i64 %from, ptr %sources, i64 %to, ptr %targets, i64 %mask) {{
entry:
  %none = icmp eq i64 %mask, 0
  br i1 %none, label %done, label %each
each:
  %rest = phi i64 [%mask, %entry], [%after, %each]
  %i = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %sp = getelementptr i64, ptr %sources, i64 %i
  %s = load i64, ptr %sp, align 8
  %sa = add i64 %from, %s
  %p = inttoptr i64 %sa to ptr
  %x = load i{bits}, ptr %p, align 1
  %tp = getelementptr i64, ptr %targets, i64 %i
  %t = load i64, ptr %tp, align 8
  %ta = add i64 %to, %t
  %q = inttoptr i64 %ta to ptr
  store i{bits} %x, ptr %q, align 1
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
done:
  ret void
}}
"""


def copied_bytes(instruction: Instruction) -> int:
    """Return how many bytes each lane copies; 0 if it is more than that number that says so."""
    given = instruction.operands[2:]
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        given = given[:-1]
    sizes = {o.bits if isinstance(o, Immediate) else 0 for o in given}
    size = sizes.pop() if len(sizes) == 1 else 0
    return size if size in (4, 8, 16) else 0


def add_copy(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Add a copy: access `number` of the basic block reads, the next one writes."""
    size = copied_bytes(instruction)
    if not size:
        raise refuse("this form")
    to, source = instruction.operands[:2]
    read = touched(text, instruction, source, size, position, number, refuse, space="global")
    if read.addresses == "%scratch":
        raise refuse("a source that is no register of 64 bits")
    write = touched(text, instruction, to, size, position, number + 1, refuse)
    mask = text.emit(f"and i64 {read.mask}, {write.mask}")
    parameters = "i64, ptr, i64, ptr, i64"
    called = text.fragments.once(f"copy{8 * size}", parameters, _COPY.format(bits=8 * size))
    given = f"i64 {read.start}, ptr {read.addresses}, i64 {write.start}, ptr {write.addresses}"
    text.add(f"call void @{called}({given}, i64 {mask})")
