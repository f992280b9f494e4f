"""Codegen of the function of a basic block: loops over the warps of the group and over their lanes.

A block is a list of segments. Each segment runs for all warps of the group before the next begins;
in it each run of computing instructions is a loop over the 32 lanes, which LLVM vectorizes.
"""

import re
from collections.abc import Iterator, Mapping

from ....base.dataclass import dataclass
from ..warp.machine import Machine
from ..warp.schedule import FAULT

NEEDS_ROWS = -3
"""The number of accesses with which machine code asks for room for rows."""

_FIELDS = {name: number for number, name in enumerate(Machine.fields)}

# `old_frame` is `frame` under a name that LLVM does not see through. From a load, a select of lanes
# and a store to the same place it would make a masked store, which takes 12 cycles and more on AMD
# processors. This way a loop that lanes leave at different times takes two thirds of the time.

SUPPORT = """
; Lanes are written ABREAST and read so: a read of what two stores wrote waits until both have
; reached the cache. Volatile, or LLVM makes one read of two.
define internal i32 @pack(ptr %p) alwaysinline {
  %a = load volatile <16 x i8>, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 16
  %b = load volatile <16 x i8>, ptr %q, align 8
  %c = icmp ne <16 x i8> %a, zeroinitializer
  %d = icmp ne <16 x i8> %b, zeroinitializer
  %e = bitcast <16 x i1> %c to i16
  %f = bitcast <16 x i1> %d to i16
  %g = zext i16 %e to i32
  %h = zext i16 %f to i32
  %i = shl i32 %h, 16
  %j = or i32 %g, %i
  ret i32 %j
}
"""

# Each part of the scratch has 32 words, the last one, %olds, 64: atomics return 128 bits per lane.
_BLOCK = """define i64 @{name}(ptr %m) {{
entry:
  %scratch = alloca [192 x i64], align 64
  %values = getelementptr i64, ptr %scratch, i64 32
  %values0 = getelementptr i64, ptr %scratch, i64 64
  %values1 = getelementptr i64, ptr %scratch, i64 96
  %olds = getelementptr i64, ptr %scratch, i64 128
  %fault.at = getelementptr i64, ptr %m, i64 {fault}
{fields}
{segments}{finish}  ret i64 0
faulty:
  ret i64 {reason}
}}
"""

_SEGMENT = """  br label %each{n}
each{n}:
  %place{n} = phi i64 [0, %{before}], [%next{n}, %{last}]
  %chosen.at{n} = getelementptr i32, ptr %chosen, i64 %place{n}
  %narrow{n} = load i32, ptr %chosen.at{n}
  %warp{n} = zext i32 %narrow{n} to i64
  %active.at{n} = getelementptr i32, ptr %actives, i64 %place{n}
  %active{n} = load i32, ptr %active.at{n}
  %frame.at{n} = mul i64 %warp{n}, FRAME_BYTES
  %frame{n} = getelementptr i8, ptr %frames, i64 %frame.at{n}
  %old_frame{n} = call ptr asm "", "=r,0"(ptr %frame{n})
  %block{n} = udiv i64 %warp{n}, %a_block
  %shared.at{n} = mul i64 %block{n}, %shared_size
  %shared{n} = add i64 %shared_start, %shared.at{n}
  %within{n} = urem i64 %warp{n}, %a_block
  %of_warp.at{n} = mul i64 %within{n}, OF_WARP_BYTES
  %of_warp{n} = getelementptr i8, ptr %warp_table, i64 %of_warp.at{n}
  %of_block.at{n} = mul i64 %block{n}, OF_BLOCK_BYTES
  %of_block{n} = getelementptr i8, ptr %block_table, i64 %of_block.at{n}
  %thread{n} = shl i64 %warp{n}, 5
  %local.at{n} = mul i64 %thread{n}, %local_size
  %local{n} = add i64 %local_start, %local.at{n}
{lines}
  %next{n} = add i64 %place{n}, 1
  %more{n} = icmp slt i64 %next{n}, %count
  br i1 %more{n}, label %each{n}, label %end{n}
end{n}:
  %fault{n} = load i64, ptr %fault.at
  %sound{n} = icmp slt i64 %fault{n}, 0
  br i1 %sound{n}, label %after{n}, label %faulty
after{n}:
"""

_ESCAPE = """  br label %each{n}
each{n}:
  %escape.at{n} = getelementptr i64, ptr %m, i64 {field}
  %escape{n} = load ptr, ptr %escape.at{n}
  %escaped{n} = call i64 %escape{n}(i64 {pc}, i64 {accesses})
  %sound{n} = icmp eq i64 %escaped{n}, 0
  br i1 %sound{n}, label %after{n}, label %faulty
after{n}:
"""

_REACH = """  br label %each{n}
each{n}:
  %left{n} = call i64 @{reach}
  %is_done{n} = icmp eq i64 %left{n}, 0
  br i1 %is_done{n}, label %end{n}, label %more{n}
more{n}:
  %escape.at{n} = getelementptr i64, ptr %m, i64 {field}
  %escape{n} = load ptr, ptr %escape.at{n}
  %escaped{n} = call i64 %escape{n}(i64 {pc}, i64 {accesses})
  br label %each{n}
end{n}:
  %fault{n} = load i64, ptr %fault.at
  %sound{n} = icmp slt i64 %fault{n}, 0
  br i1 %sound{n}, label %after{n}, label %faulty
after{n}:
"""

_OF_WARP = re.compile(r"%(place|warp|active|frame|old_frame|block|shared|local|of_block|of_warp)\b")
"""Names of a warp's values, which each segment defines."""


_VALUES = {
    **{"global": "global_bytes", "const": "const_bytes", "shared_start": "shared_bytes"},
    **{"shared_size": "shared_size", "local_start": "local_bytes", "local_size": "local_size"},
    **{"a_block": "a_block", "count": "count", "clock_leap": "clock_leap"},
}
_POINTERS = {
    **{"chosen": "chosen", "actives": "active", "takens": "taken", "frames": "frames"},
    **{"parameters": "parameters", "lanes_on": "lanes_on", "of_launch": "launch_table"},
    **{"block_table": "block_table", "warp_table": "warp_table", "steps": "step"},
}
_RUN = """  br label %{run}
{run}:
  %lane.{run} = phi i64 [0, %{before}], [%next.{run}, %{run}]
  %lane32.{run} = trunc i64 %lane.{run} to i32
  %bit.{run} = lshr i32 %active, %lane32.{run}
  %on.{run} = trunc i32 %bit.{run} to i1
{lines}
  %next.{run} = add nuw nsw i64 %lane.{run}, 1
  %more.{run} = icmp ult i64 %next.{run}, 32
  br i1 %more.{run}, label %{run}, label %done.{run}, !llvm.loop !LOOP{number}
done.{run}:"""

ABREAST = 16
"""Lanes per iteration of a run's loop: enough to hide the loads of its pointers."""

_LOOP = re.compile(r"!LOOP(\d+)")
_OF_LANE = re.compile(r"%(lane\b|on\b|x\d+)")


@dataclass(slots=True)
class Segment:
    """Lines that run for one warp after another, up to the label `last`; or a fallback.

    A fallback is the instruction `pc` that the interpreter runs, after `accesses` accesses of the
    basic block. With `reach`, a call, it takes the group through an access with generic addresses;
    the callback then makes room for further rows.
    """

    lines: list[str]
    last: str = ""
    pc: int | None = None
    accesses: int = 0
    reach: str = ""


def block_text(name: str, segments: list[Segment], finish: str = "") -> str:
    """Return the function of a basic block; with `finish`, the name of a function that takes the
    rows of its accesses, it ends by calling that.
    """
    fault = _FIELDS["fault_site"]
    parts = "".join(_segments(segments))
    last = f"  call i64 @{finish}(ptr %m)\n" if finish else ""
    return _BLOCK.format(
        name=name, fields=_fields(), segments=parts, fault=fault, finish=last, reason=FAULT
    )


def run_text(number: int, before: str, lines: list[str]) -> str:
    """Return the loop over the lanes of run `number` of a basic block, which follows the label
    `before` and ends at `done.runNUMBER`."""
    run = f"run{number}"
    text = _OF_LANE.sub(rf"%\1.{run}", "\n".join(lines))
    return _RUN.format(run=run, before=before, lines=text, number=number)


def with_loops(text: str, first: int) -> str:
    """Return the text of a basic block, whose runs are number `first` and the following of the
    kernel's."""
    return _LOOP.sub(lambda match: f"!{int(match[1]) + first + 4}", text)


def metadata(loops: list[bool]) -> str:
    """Return the metadata that declares the lanes of a run independent; `loops` says for each run
    whether it takes its lanes one by one."""
    lines = (
        f"!{n + 4} = distinct !{{!{n + 4}, !1, !{3 if one_by_one else 2}}}"
        for n, one_by_one in enumerate(loops)
    )
    head = '!0 = distinct !{}\n!1 = !{!"llvm.loop.parallel_accesses", !0}\n'
    head += f'!2 = !{{!"llvm.loop.vectorize.width", i32 {ABREAST}}}\n'
    head += '!3 = !{!"llvm.loop.vectorize.enable", i1 false}\n'
    return head + "\n".join(lines) + "\n"


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Return a text with the sizes that are known once all basic blocks are written."""
    for name, size in sizes.items():  # FRAME_BYTES, OF_WARP_BYTES...
        text = text.replace(name, str(size))
    return text


def _segments(segments: list[Segment]) -> Iterator[str]:
    """Yield the loops over the warps of the group, and the fallbacks between them."""
    before = "entry"
    for n, segment in enumerate(segments):
        if segment.pc is None:
            lines = _own("\n".join(segment.lines), n)
            yield _SEGMENT.format(n=n, before=before, last=segment.last, lines=lines)
        else:
            form = _REACH if segment.reach else _ESCAPE
            yield form.format(
                n=n, field=_FIELDS["escape"], pc=segment.pc, accesses=segment.accesses,
                reach=segment.reach,
            )  # fmt: skip
        before = f"after{n}"


def _own(text: str, n: int) -> str:
    """Return the lines of segment `n` with its own names for a warp's values."""
    return _OF_WARP.sub(lambda match: f"{match[0]}{n}", text)


def _fields() -> str:
    lines = []
    for name, field_name in (*_VALUES.items(), *_POINTERS.items()):
        kind = "i64" if name in _VALUES else "ptr"
        lines.append(f"  %{name}.at = getelementptr i64, ptr %m, i64 {_FIELDS[field_name]}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}.at")
    return "\n".join(lines)
