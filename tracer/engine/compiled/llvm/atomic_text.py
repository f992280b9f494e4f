"""The text of atomics of one warp: checked, recorded, then done lane by lane.

Waves run one after another, in one thread: no atomic instruction of this machine is needed.
"""

from ....ptx.kernel import TYPE_BYTES, Bucket, Instruction, Register
from ...op.update import OPERATIONS, update
from .access_text import keep_lanes, same_size, touched
from .gather_text import ARGUMENTS, TYPES
from .lane_text import Refuse
from .warp_lines import WarpText

_ATOMIC = """define internal {t} @{name}.new({t} %old, {t} %b, {t} %d) alwaysinline {{
  {body}
  ret {t} %new
}}
define void @{name}({arguments}, ptr %bs, ptr %ds) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %after]
  %bit = lshr i64 %mask, %i
  %on = trunc i64 %bit to i1
  br i1 %on, label %change, label %after
change:
  %pa = getelementptr i64, ptr %addresses, i64 %i
  %a = load i64, ptr %pa
  %own = mul i64 %step, %i
  %a0 = add i64 %a, %start
  %a1 = add i64 %a0, %own
  %pw = inttoptr i64 %a1 to ptr
  %pb = getelementptr {t}, ptr %bs, i64 %i
  %b = load {t}, ptr %pb, align 1
  %pd = getelementptr {t}, ptr %ds, i64 %i
  %d = load {t}, ptr %pd, align 1
  %old = load {t}, ptr %pw, align 1
  %new = call {t} @{name}.new({t} %old, {t} %b, {t} %d)
  store {t} %new, ptr %pw, align 1
  %po = getelementptr {t}, ptr %lanes, i64 %i
  store {t} %old, ptr %po, align 1
  br label %after
after:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def add_atomic(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Add an `atom` or `red`."""
    operands = list(instruction.operands)
    to = operands.pop(0) if instruction.opcode == "atom" else Bucket()
    kind, modifiers = instruction.type, instruction.modifiers
    operation = next((m for m in modifiers if m in OPERATIONS), "")
    if instruction.vector != 1 or any(m.endswith("cache_hint") for m in modifiers):
        raise refuse("this form")
    is_global = instruction.space == "global"
    found = update(operation, kind, is_global)
    differs = not instruction.space and found != update(operation, kind, True)
    if found is None or differs or "async" in modifiers:
        raise refuse("this form")
    size = TYPE_BYTES[kind]
    reach = touched(text, instruction, operands[0], size, position, number, refuse)
    values = [same_size(text, kind, o, f"%values{k}", refuse) for k, o in enumerate(operands[1:3])]
    name = f"atomic_{operation}_{kind}_{instruction.space}"
    element, body, definitions = found
    definition = _ATOMIC.format(name=name, t=element, body=body, arguments=ARGUMENTS)
    called = text.fragments.once(name, f"{TYPES}, ptr, ptr", definitions + definition)
    given = f"i64 {reach.start}, i64 {reach.step}, ptr {reach.addresses}, i64 {reach.mask}"
    given = f"{given}, ptr %olds, ptr {values[0]}, ptr {values[-1]}"
    text.add(f"call void @{called}({given})")
    if isinstance(to, Register):
        keep_lanes(text, to, kind, reach.mask, refuse)
    elif not isinstance(to, Bucket):
        raise refuse("a result that is no register")
