"""A kernel as LLVM assembly: a function for each basic block, which runs it for many warps."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ....errors import CutraceError
from ...ptx.isa import destinations, sources
from ...ptx.kernel import (
    TYPE_BYTES,
    BasicBlock,
    Bucket,
    Instruction,
    Kernel,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from ..memory import WINDOWS
from ..op.family import find_rule
from ..parameter import parameter_offsets
from .access_text import VECTOR, WarpText, add_access, add_atomic, element_operands
from .compute import Fragments, compute
from .frame import Frame
from .lane import Lane, llvm_type, width
from .machine import Machine
from .part import ACCESS, ATOMIC, COUNT, RUN, Part, cut_parts, reads_parameter, spans_of

_FIELDS = {name: number for number, name in enumerate(Machine.__annotations__)}

_SUPPORT = """
declare i64 @touch(ptr, i64, i64, i64, i64, ptr, i64, i64, i64, i64)
define internal i32 @pack(ptr %p) alwaysinline {
  %a = load <32 x i8>, ptr %p, align 8
  %c = icmp ne <32 x i8> %a, zeroinitializer
  %b = bitcast <32 x i1> %c to i32
  ret i32 %b
}
define internal void @fill(ptr %p, i64 %x) noinline {
  %i = insertelement <32 x i64> poison, i64 %x, i64 0
  %s = shufflevector <32 x i64> %i, <32 x i64> poison, <32 x i32> zeroinitializer
  store <32 x i64> %s, ptr %p, align 8
  ret void
}
define internal void @widen_zext(ptr %p, ptr %to) noinline {
  %a = load <32 x i32>, ptr %p, align 4
  %w = zext <32 x i32> %a to <32 x i64>
  store <32 x i64> %w, ptr %to, align 8
  ret void
}
define internal void @widen_sext(ptr %p, ptr %to) noinline {
  %a = load <32 x i32>, ptr %p, align 4
  %w = sext <32 x i32> %a to <32 x i64>
  store <32 x i64> %w, ptr %to, align 8
  ret void
}
"""

_BLOCK = """define i64 @{name}(ptr %m) {{
entry:
  %scratch = alloca [160 x i64], align 64
{fields}
{segments}
  ret i64 0
}}
"""

_SEGMENT = """  br label %each{n}
each{n}:
  %place{n} = phi i64 [0, %{before}], [%next{n}, %each{n}]
  call void @{name}.part{n}({arguments}, i64 %place{n}, ptr %scratch)
  %next{n} = add i64 %place{n}, 1
  %more{n} = icmp slt i64 %next{n}, %count
  br i1 %more{n}, label %each{n}, label %end{n}
end{n}:
  %fault{n}.at = getelementptr i64, ptr %m, i64 {fault}
  %fault{n} = load i64, ptr %fault{n}.at
  %sound{n} = icmp slt i64 %fault{n}, 0
  br i1 %sound{n}, label %sound.{n}, label %faulty{n}
faulty{n}:
  ret i64 0
sound.{n}:
"""

_SEGMENT_BODY = """define internal void @{name}({parameters}, i64 %place, ptr %scratch) {{
  %p.chosen = getelementptr i32, ptr %chosen, i64 %place
  %warp32 = load i32, ptr %p.chosen
  %warp = zext i32 %warp32 to i64
  %p.active = getelementptr i32, ptr %actives, i64 %place
  %active = load i32, ptr %p.active
  %frame.at = mul i64 %warp, {frame_bytes}
  %frame = getelementptr i8, ptr %frames, i64 %frame.at
  %block = udiv i64 %warp, %a_block
  %shared.at = mul i64 %block, %shared_size
  %shared = add i64 %shared_start, %shared.at
  %thread = shl i64 %warp, 5
  %local.at = mul i64 %thread, %local_size
  %local = add i64 %local_start, %local.at
  %values = getelementptr i64, ptr %scratch, i64 32
  %values0 = getelementptr i64, ptr %scratch, i64 64
  %values1 = getelementptr i64, ptr %scratch, i64 96
  %olds = getelementptr i64, ptr %scratch, i64 128
{lines}
  ret void
}}
"""

_VALUES = {
    **{"global": "global_bytes", "const": "const_bytes", "shared_start": "shared_bytes"},
    **{"shared_size": "shared_size", "local_start": "local_bytes", "local_size": "local_size"},
    **{"a_block": "a_block", "count": "count"},
}
_POINTERS = {
    **{"chosen": "chosen", "actives": "active", "takens": "taken", "frames": "frames"},
    **{"parameters": "parameters", "lanes_on": "lanes_on"},
}
_PARAMETERS = ", ".join(
    ["ptr %m", *(f"i64 %{v}" for v in _VALUES), *(f"ptr %{p}" for p in _POINTERS)]
)

_RUN = """define internal void @{name}(ptr noalias %frame, ptr noalias %parameters, i32 %active) {{
entry:
  br label %loop
loop:
  %lane = phi i64 [0, %entry], [%next, %loop]
  %lane32 = trunc i64 %lane to i32
  %bit = lshr i32 %active, %lane32
  %on = trunc i32 %bit to i1
{lines}
  %next = add nuw nsw i64 %lane, 1
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %done, !llvm.loop !{loop}
done:
  ret void
}}
"""


@dataclass(slots=True)
class KernelText:
    """The assembly of a kernel, with what the engine has to know to run it.

    `sites` holds pc, state space and bytes of each access, `first_site` where those of each basic
    block begin; `counted` the pcs whose lanes are counted.
    """

    frame: Frame
    text: str = ""
    sites: list[tuple[int, str, int]] = field(default_factory=list)
    first_site: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)


def write_kernel(
    kernel: Kernel, frame: Frame, name: str, ends: Callable[[BasicBlock], bool]
) -> KernelText:
    """Return the text of a kernel; CutraceError names what is not compiled.

    `ends` tells whether the last instruction of a basic block sends the warps on their way. The
    function of block 3 is called `NAME.3`.
    """
    made = KernelText(frame)
    writer = _Writer(kernel, made, name)
    blocks = [writer.block(block, ends(block)) for block in kernel.blocks]
    blocks = [text.replace("FRAME_BYTES", str(frame.size)) for text in blocks]
    vectors = "".join(VECTOR.format(t=f"i{bits}") for bits in (8, 16, 32, 64))
    made.text = "\n".join((_SUPPORT, vectors, writer.fragments.text(), *blocks, writer.metadata()))
    return made


class _Writer:
    """Writes the basic blocks of one kernel."""

    def __init__(self, kernel: Kernel, made: KernelText, name: str) -> None:
        self._kernel = kernel
        self._made = made
        self._name = name
        self._loops = 0
        self._runs: list[str] = []
        self.fragments = Fragments()

    def metadata(self) -> str:
        """Return what tells LLVM that the lanes of a run do not depend on one another."""
        loops = (f"!{n + 2} = distinct !{{!{n + 2}, !1}}" for n in range(self._loops))
        head = '!0 = distinct !{}\n!1 = !{!"llvm.loop.parallel_accesses", !0}\n'
        return head + "\n".join(loops) + "\n"

    def block(self, block: BasicBlock, ends: bool) -> str:
        """Return the functions of a basic block."""
        kernel, made = self._kernel, self._made
        made.first_site.append(len(made.sites))
        parts = cut_parts(kernel, block, ends)
        made.frame.begin_block(spans_of(kernel, block, parts, made.frame.lasting))
        self._runs = []
        name = f"{self._name}.{block.number}"
        segments: list[list[str]] = [[]]
        for number, part in enumerate(parts):
            if part.starts_segment:
                segments.append([])
            text = WarpText(made.frame, block.function, self.fragments)
            self._add_part(text, block, part, parts[number + 1 :])
            segments[-1] += [line.replace("%u", f"%q{number}.") for line in text.lines]
        segments[-1] += self._ending(block, ends)
        return "".join((*self._runs, *self._segments(name, segments)))

    def _segments(self, name: str, segments: list[list[str]]) -> list[str]:
        bodies, loops, before = [], [], "entry"
        for n, lines in enumerate(segments):
            bodies.append(
                _SEGMENT_BODY.format(
                    name=f"{name}.part{n}",
                    parameters=_PARAMETERS,
                    lines="\n".join(lines),
                    frame_bytes="FRAME_BYTES",
                )
            )
            loops.append(
                _SEGMENT.format(
                    n=n,
                    name=name,
                    before=before,
                    arguments=_PARAMETERS,
                    fault=_FIELDS["fault_site"],
                )
            )
            before = f"sound.{n}"
        whole = _BLOCK.format(name=name, fields=_fields(), segments="".join(loops))
        return [*bodies, whole]

    def _ending(self, block: BasicBlock, ends: bool) -> list[str]:
        """Write the lanes that take the block's branch, if it is a conditional one."""
        instruction = self._kernel.instructions[block.last - 1]
        if (
            not ends
            or instruction.guard is None
            or instruction.opcode not in ("bra", "ret", "exit")
        ):
            return []
        text = WarpText(self._made.frame, block.function, self.fragments)
        taken = text.packed(instruction.guard.register, instruction.guard.negated)
        at = text.emit("getelementptr i32, ptr %takens, i64 %place")
        text.add(f"store i32 {taken}, ptr {at}")
        return text.lines

    def _add_part(self, text: WarpText, block: BasicBlock, part: Part, later: list[Part]) -> None:
        pc = part.pcs[0]
        instruction = self._kernel.instructions[pc]
        refuse = self._refusal(pc)
        position = pc - block.first
        number = len(self._made.sites) - self._made.first_site[-1]
        if part.kind == RUN:
            self._add_run(text, block, part, later)
        elif part.kind == COUNT:
            self._add_count(text, instruction, pc)
        elif part.kind in (ACCESS, ATOMIC):
            add = add_access if part.kind == ACCESS else add_atomic
            add(text, instruction, position, number, refuse)
            size = TYPE_BYTES[instruction.type] * instruction.vector
            self._made.sites.append((pc, instruction.space, size))
        else:
            raise refuse("this instruction")

    def _add_count(self, text: WarpText, instruction: Instruction, pc: int) -> None:
        lanes = text.lanes_on(instruction)
        blocks = text.emit("getelementptr i64, ptr %m, i64 " + str(_FIELDS["blocks"]))
        blocks = text.emit(f"load i64, ptr {blocks}")
        row = text.emit(f"mul i64 {blocks}, {len(self._made.counted)}")
        at = text.emit(
            f"getelementptr i64, ptr %lanes_on, i64 {text.emit(f'add i64 {row}, %block')}"
        )
        old = text.emit(f"load i64, ptr {at}")
        more = text.emit(f"call i64 @llvm.ctpop.i64(i64 {lanes})")
        text.add(f"store i64 {text.emit(f'add i64 {old}, {more}')}, ptr {at}")
        self._made.counted.append(pc)

    def _add_run(self, text: WarpText, block: BasicBlock, part: Part, later: list[Part]) -> None:
        lane = Lane(self._made.frame, block.function, self._refusal(part.pcs[0]))
        for pc in part.pcs:
            lane.refuse = self._refusal(pc)
            self._compute(lane, self._kernel.instructions[pc])
        self._keep(lane, block, later)
        name = f"{self._name}.{block.number}.run{len(self._runs)}"
        self._runs.append(_RUN.format(name=name, lines="\n".join(lane.lines), loop=self._loops + 2))
        self._loops += 1
        text.add(f"call void @{name}(ptr %frame, ptr %parameters, i32 %active)")

    def _keep(self, lane: Lane, block: BasicBlock, later: list[Part]) -> None:
        """Store what later parts of the block read, or what outlives it."""
        kernel = self._kernel
        read = {r.name for r in sources(kernel.instructions[block.last - 1])}
        for part in later:
            for pc in part.pcs:
                instruction = kernel.instructions[pc]
                read |= {r.name for r in sources(instruction)}
                if instruction.guard is not None:
                    read |= {r.name for r in destinations(instruction)}
        for name, register in lane.written.items():
            lasts = (block.function, name) in kernel.live_out[block.number]
            if lasts or name in read:
                lane.keep(register, blended=lasts)

    def _compute(self, lane: Lane, instruction: Instruction) -> None:
        guard = instruction.guard
        holds = None
        if guard is not None:
            holds = lane.operand(guard.register, "pred")
            if guard.negated:
                holds = lane.emit(f"xor i1 {holds}, true")
        results = self._results(lane, instruction)
        for operand, kind, value in results:
            if isinstance(operand, Bucket):
                continue
            if not isinstance(operand, Register):
                raise lane.refuse("a result that is no register")
            lane.write(operand, kind, value, holds)

    def _results(self, lane: Lane, instruction: Instruction) -> list[tuple[Operand, str, str]]:
        if instruction.opcode == "mov":
            return _move(lane, instruction)
        if instruction.opcode == "cvta":
            return [_converted_address(lane, instruction)]
        if instruction.opcode == "ld":
            return self._parameters(lane, instruction)
        rule = find_rule(instruction)
        if rule is None:
            raise lane.refuse("this instruction")
        first, *rest = instruction.operands
        to = [first.first, first.second] if isinstance(first, Pair) else [first]
        if len(rest) != len(rule.sources):
            raise lane.refuse("this form")
        given = [lane.operand(o, k) for o, k in zip(rest, rule.sources, strict=True)]
        values = compute(lane, self.fragments, instruction, rule, given)
        if values is None or len(values) < len(to):
            raise lane.refuse("this instruction")
        return list(zip(to, rule.results, values, strict=False))

    def _parameters(self, lane: Lane, instruction: Instruction) -> list[tuple[Operand, str, str]]:
        kernel, kind = self._kernel, instruction.type
        to, address = instruction.operands[:2]
        base = getattr(address, "base", None)
        offsets = parameter_offsets(kernel)
        if (
            not reads_parameter(instruction)
            or lane.function != 0
            or not isinstance(base, Symbol)
            or base.name not in offsets
        ):
            raise lane.refuse("a parameter through a pointer")
        start = offsets[base.name] + base.offset + getattr(address, "offset", 0)
        return [
            (element, kind, lane.parameter(start + k * TYPE_BYTES[kind], kind))
            for k, element in enumerate(element_operands(to))
        ]

    def _refusal(self, pc: int) -> Callable[[str], CutraceError]:
        instruction = self._kernel.instructions[pc]
        place = instruction.location
        source = f", from {place.file}:{place.line}" if place else ""

        def refuse(why: str) -> CutraceError:
            return CutraceError(
                f"kernel `{self._kernel.name}`: the compiled engine does not know {why}: "
                f"`{instruction.text}` (PTX line {instruction.ptx_line}{source})"
            )

        return refuse


def _fields() -> str:
    lines = []
    for name, field_name in (*_VALUES.items(), *_POINTERS.items()):
        kind = "i64" if name in _VALUES else "ptr"
        lines.append(f"  %{name}.at = getelementptr i64, ptr %m, i64 {_FIELDS[field_name]}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}.at")
    return "\n".join(lines)


def _move(lane: Lane, instruction: Instruction) -> list[tuple[Operand, str, str]]:
    to, source = instruction.operands
    kind = instruction.type
    if kind == "b128":
        raise lane.refuse("128 bits")
    if isinstance(source, Vector) and isinstance(to, Vector):
        given = [lane.operand(e, kind) for e in source.elements]
        return [(t, kind, v) for t, v in zip(to.elements, given, strict=True)]
    if isinstance(source, Vector):
        return [(to, kind, _packed(lane, source, kind))]
    if isinstance(to, Vector):
        return _unpacked(lane, to, source, kind)
    return [(to, kind, lane.operand(source, kind))]


def _packed(lane: Lane, source: Vector, kind: str) -> str:
    bits = width(kind)
    part = bits // len(source.elements)
    whole = "0"
    for place, element in enumerate(source.elements):
        value = lane.operand(element, f"b{part}")
        value = lane.emit(f"zext i{part} {value} to i{bits}")
        value = lane.emit(f"shl i{bits} {value}, {place * part}")
        whole = lane.emit(f"or i{bits} {whole}, {value}")
    return lane.bitcast(whole, f"i{bits}", llvm_type(kind))


def _unpacked(lane: Lane, to: Vector, source: Operand, kind: str) -> list[tuple[Operand, str, str]]:
    bits = width(kind)
    part = bits // len(to.elements)
    value = lane.operand(source, f"b{bits}")
    results: list[tuple[Operand, str, str]] = []
    for place, element in enumerate(to.elements):
        moved = lane.emit(f"lshr i{bits} {value}, {place * part}")
        cut = lane.emit(f"trunc i{bits} {moved} to i{part}")
        results.append((element, f"b{part}", cut))
    return results


_WINDOW_SPACES = {space.name.lower(): start for space, (start, _) in WINDOWS.items()}


def _converted_address(lane: Lane, instruction: Instruction) -> tuple[Operand, str, str]:
    to, source = instruction.operands
    kind = instruction.type
    value = lane.operand(source, kind)
    start = 0 if instruction.space == "global" else _WINDOW_SPACES.get(instruction.space, 0)
    if start:
        operation = "sub" if "to" in instruction.modifiers else "add"
        value = lane.emit(f"{operation} i{width(kind)} {value}, {start}")
    return to, kind, value
