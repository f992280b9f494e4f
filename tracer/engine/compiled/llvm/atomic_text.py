"""The text of atomics of one warp: checked, recorded, then done lane by lane.

A wave that runs alone needs no atomic instruction of this machine. Beside waves in other threads an
operation that gives the same in any order is tried until nobody came between, and what it found is
left out: nothing reads it, or the waves would not run so.
"""

from ....ptx.kernel import TYPE_BYTES, Bucket, Instruction, Register
from ...op.update import OPERATIONS, is_any_order, update
from .access_text import keep_lanes, same_size, touched
from .gather_text import ARGUMENTS, TYPES
from .lane_text import Refuse
from .warp_lines import WarpText

_ATOMIC = """define internal {t} @{name}.new({t} %old, {t} %b, {t} %d) alwaysinline {{
  {body}
  ret {t} %new
}}
define void @{name}({arguments}, ptr %bs, ptr %ds, i64 %beside) {{
entry:
  %is_beside = trunc i64 %beside to i1
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
  br i1 %is_beside, label %beside_others, label %alone
alone:
  %old = load {t}, ptr %pw, align 1
  %new = call {t} @{name}.new({t} %old, {t} %b, {t} %d)
  store {t} %new, ptr %pw, align 1
  %po = getelementptr {t}, ptr %lanes, i64 %i
  store {t} %old, ptr %po, align 1
  br label %after
beside_others:
{beside}
after:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
_NEVER = "  unreachable"
_TRY = """  %seen = load atomic {t}, ptr %pw monotonic, align {bytes}
  br label %try
try:
  %expected = phi {t} [%seen, %beside_others], [%found, %try]
  %wanted = call {t} @{name}.new({t} %expected, {t} %b, {t} %d)
  %pair = cmpxchg ptr %pw, {t} %expected, {t} %wanted monotonic monotonic, align {bytes}
  %found = extractvalue {{ {t}, i1 }} %pair, 0
  %was = extractvalue {{ {t}, i1 }} %pair, 1
  br i1 %was, label %after, label %try"""


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
    beside = _TRY if is_global and is_any_order(operation, kind) else _NEVER
    beside = beside.format(name=name, t=element, bytes=size)
    definition = _ATOMIC.format(name=name, t=element, body=body, arguments=ARGUMENTS, beside=beside)
    called = text.fragments.once(name, f"{TYPES}, ptr, ptr, i64", definitions + definition)
    given = f"i64 {reach.start}, i64 {reach.step}, ptr {reach.addresses}, i64 {reach.mask}"
    given = f"{given}, ptr %olds, ptr {values[0]}, ptr {values[-1]}, i64 "
    text.add(f"call void @{called}({given}{'%beside' if is_global else 0})")
    if isinstance(to, Register):
        keep_lanes(text, to, kind, reach.mask, refuse)
    elif not isinstance(to, Bucket):
        raise refuse("a result that is no register")
