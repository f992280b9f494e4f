"""Codegen of a kernel: LLVM assembly with a function per basic block, which runs it for many
warps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.schema import Space
from ...ptx.kernel import (
    TYPE_BYTES,
    BasicBlock,
    Bucket,
    Instruction,
    Kernel,
    Operand,
    Register,
    Symbol,
)
from ...ptx.kernel import Part as Selected
from ...ptx.opcodes import destinations, sources
from ..access.access_arrays import Site
from ..access.reach import finish_rows, reach_anywhere
from ..decode.address import elements
from ..decode.control_flow import ends
from ..decode.load_module import PARAMETERS
from ..decode.move import move_rule
from ..interp.move import split_operands
from ..kernel.layout import parameter_bytes, parameter_offsets
from ..kernel.passing import parameter_moves
from ..matrix.ldmatrix import ROW_BYTES
from ..ops.family import SHARED_FAMILIES, find_rule
from ..ops.rule import Rule
from .block_part import (
    ACCESS,
    ATOMIC,
    COUNT,
    ESCAPE,
    GENERIC,
    POINTED,
    RUN,
    Part,
    accesses_of,
    cut_parts,
    is_directed,
    spans_of,
)
from .emit_access import (
    add_access,
    add_atomic,
    add_copy,
    add_lanes,
    add_pointed,
    copied_bytes,
)
from .emit_block import (
    NEEDS_ROWS,
    SUPPORT,
    Segment,
    block_text,
    metadata,
    run_text,
    with_loops,
    with_sizes,
)
from .emit_call import Calls, CallWriter, add_switch, find_calls
from .emit_lane import Fragments, Lane, Write, compute, llvm_type, move
from .emit_lines import WarpText
from .emit_warp import add_matrix_access, add_warp
from .register_frame import CARRY, Frame, Place


@dataclass(slots=True)
class KernelText:
    """The assembly of a kernel, and the tables that the engine needs to run it.

    `places` maps each instruction that the array engine runs (its pc), and the last one of each
    basic block, to the places of its registers; `escaped` is the reason why such an instruction is
    not compiled. `sites` holds the accesses, `first_site` the first one of each basic block.
    `counted` holds the pcs at which lanes are counted. `support` holds the functions that the text
    calls, and whether to vectorize their loops. `codes` has for each block the first with the same
    code, whose function it runs. `crosses_lanes` says whether lanes may read registers of others.
    """

    frame: Frame
    text: str = ""
    escaped: Mapping[int, str] = field(default_factory=dict)
    places: dict[int, dict[str, Place]] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    first_site: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    support: dict[str, tuple[str, bool]] = field(default_factory=dict)
    codes: list[int] = field(default_factory=list)
    crosses_lanes: bool = False
    calls: Calls = field(default_factory=Calls)


def write_kernel(kernel: Kernel, symbols: Mapping[tuple[int, str], int], name: str) -> KernelText:
    """Return the assembly of a kernel; the array engine runs instructions without codegen.

    `symbols` are the addresses of variables. The function of block 3 is called `NAME.3`, unless an
    earlier block has the same code (`KernelText.codes`).
    """
    escaped: dict[int, str] = {}
    while True:
        kernel_text = KernelText(Frame(kernel, symbols, escaped), escaped=escaped)
        kernel_text.calls = find_calls(kernel)
        writer = BlockEmitter(kernel, kernel_text, name)
        for block in kernel.blocks:
            writer.add(block, ends(kernel, block))
        if not writer.refused:
            break
        escaped = escaped | writer.refused
    frame = kernel_text.frame
    text = "\n".join((SUPPORT, writer.fragments.text(), *writer.texts, metadata(writer.loops)))
    kernel_text.text = with_sizes(text, frame.row_bytes)
    kernel_text.support = writer.fragments.support
    return kernel_text


_ASYNCHRONOUS = frozenset({"async", "bulk"})
_LOGIC = frozenset({"lop3", "and", "or", "xor", "not"})
"""Opcodes of which LLVM 22 makes one masked instruction of AVX-512 (vpternlog) with the select of
their predicate, whose table it gets wrong if the old value is an operand, too."""
_ACCESSES = {
    **{"atom": add_atomic, "red": add_atomic, "cp": add_copy},
    **{"ldmatrix": add_matrix_access, "stmatrix": add_matrix_access},
}


def _bytes_of(instruction: Instruction) -> int:
    """Return the bytes that a lane accesses."""
    if instruction.opcode == "cp":
        return copied_bytes(instruction)
    is_matrix = instruction.opcode in ("ldmatrix", "stmatrix")
    return ROW_BYTES if is_matrix else TYPE_BYTES[instruction.type] * instruction.vector


class BlockEmitter:
    """Emits the basic blocks of one kernel."""

    def __init__(self, kernel: Kernel, kernel_text: KernelText, name: str) -> None:
        self._kernel = kernel
        self._made = kernel_text
        self._name = name
        self.texts: list[str] = []
        self.loops: list[bool] = []  # whether each run takes its lanes one by one
        self._block_loops: list[bool] = []
        self._numbers: dict[tuple[str, tuple[bool, ...]], int] = {}  # of blocks, by their code
        self._last = ""
        self.fragments = Fragments()
        self._calls = CallWriter(kernel, kernel_text.frame, self._close_run, self._begin)
        self.refused: dict[int, str] = {}
        self._emitters: Mapping[str, Callable[[Lane, Instruction], list[Write]]] = {
            **dict.fromkeys(SHARED_FAMILIES["moves and addresses"], self._move),
            "ld": self._parameters,
            "st": self._parameters,
        }

    def add(self, block: BasicBlock, ends: bool) -> None:
        """Emit the function of a basic block, if no earlier one has the same code."""
        self._block_loops = []
        segments = self._segments(block, ends)
        finish = ""
        if len(self._made.sites) > self._made.first_site[-1]:
            finish = self.fragments.loop(finish_rows)
        text = block_text(f"{self._name}.NUMBER", segments, finish)
        code = text, tuple(self._block_loops)
        number = self._numbers.setdefault(code, block.number)
        self._made.codes.append(number)
        if number == block.number:
            text = code[0].replace(f"{self._name}.NUMBER", f"{self._name}.{number}")
            self.texts.append(with_loops(text, len(self.loops)))
            self.loops += self._block_loops

    def _segments(self, block: BasicBlock, ends: bool) -> list[Segment]:
        """Return the code of a basic block."""
        kernel, kernel_text = self._kernel, self._made
        kernel_text.first_site.append(len(kernel_text.sites))
        parts = cut_parts(kernel, block, ends, kernel_text.escaped)
        placed = kernel_text.frame.lasting | kernel_text.frame.parameters.keys()
        kernel_text.frame.begin_block(spans_of(kernel, block, parts, placed))
        segments: list[Segment] = []
        self._come_back(segments, block)
        for number, part in enumerate(parts):
            if part.starts_segment or not segments:
                self._last = f"each{len(segments)}"
                segments.append(Segment([]))
            if part.kind == ESCAPE:
                self._escape(segments[-1], block, part.pcs[0])
                continue
            if part.kind == GENERIC:
                self._reach(segments, block, part.pcs[0])
            text = WarpText(kernel_text.frame, block.function, self.fragments)
            try:
                self._add_part(text, block, part, parts[number + 1 :])
            except CutraceError as problem:
                self._refuse(part.pcs[0], problem)
            # Each part numbers its values from 0: the prefix makes them unique in the function.
            segments[-1].lines += [line.replace("%u", f"%q{number}.") for line in text.lines]
            segments[-1].last = self._last
        self._keep_places(block, block.last - 1)
        site = kernel_text.calls.ending.get(block.number)
        if site is not None and site.is_interpreted:
            segments.append(Segment([]))
            self._escape(segments[-1], block, site.pc)
        if not segments or segments[-1].pc is not None:
            self._last = f"each{len(segments)}"
            segments.append(Segment([], self._last))
        lines = self._ending(block, ends)
        if lines:
            segments[-1].lines += lines
            segments[-1].last = self._last
        return segments

    def _reach(self, segments: list[Segment], block: BasicBlock, pc: int) -> None:
        """Emit the access of the whole group to generic addresses, and begin a segment that moves
        the bytes."""
        text = WarpText(self._made.frame, block.function, self.fragments)
        segment, instruction = Segment([], pc=pc), self._kernel.instructions[pc]
        segment.accesses = NEEDS_ROWS
        place = offset = 0
        try:
            place, offset = add_lanes(text, instruction, self._refusal(pc))
        except CutraceError as problem:
            self._refuse(pc, problem)
        segments[-1].lines += [line.replace("%u", f"%reach{len(segments)}.") for line in text.lines]
        segments[-1].last = self._last
        number = len(self._made.sites) - self._made.first_site[-1]
        position = self._kernel.position(block, pc)
        words = place, offset, pc, position, _bytes_of(instruction), number
        called = self.fragments.loop(reach_anywhere)
        segment.reach = f"{called}(ptr %m, {', '.join(f'i64 {word}' for word in words)})"
        self._last = f"each{len(segments) + 1}"
        segments += [segment, Segment([], self._last)]

    def _escape(self, segment: Segment, block: BasicBlock, pc: int) -> None:
        """Emit a fallback to the array engine, which may read lanes that are not active."""
        self._made.crosses_lanes = True
        segment.pc = pc
        segment.accesses = len(self._made.sites) - self._made.first_site[-1]
        self._keep_places(block, pc)

    def _keep_places(self, block: BasicBlock, pc: int) -> None:
        """Store the places of an instruction's registers: registers of one block have no fixed
        place."""
        instruction = self._kernel.instructions[pc]
        registers = (*sources(instruction), *destinations(instruction))
        names = {register.name for register in registers}
        placed = {n for n in names if (block.function, n) not in self._made.frame.parameters}
        place = self._made.frame.place
        self._made.places[pc] = {name: place(block.function, name) for name in placed}

    def _refuse(self, pc: int, why: CutraceError) -> None:
        self.refused[pc] = str(why)

    def _come_back(self, segments: list[Segment], block: BasicBlock) -> None:
        """Begin a block that follows a call."""
        site = self._made.calls.returning.get(block.number)
        if site is None:
            return
        self._last = "each0"
        text = WarpText(self._made.frame, block.function, self.fragments)
        self._calls.come_back(text, site, self._refusal(site.pc))
        lines = [line.replace("%u", "%back.") for line in text.lines]
        segments.append(Segment(lines, self._last))

    def _ending(self, block: BasicBlock, ends: bool) -> list[str]:
        """Emit the masks of the lanes that take the block's branch, or enter its callees, if
        any."""
        instruction = self._kernel.instructions[block.last - 1]
        site = self._made.calls.ending.get(block.number)
        if site is not None and site.is_interpreted:
            return []
        if site is not None:
            text = WarpText(self._made.frame, block.function, self.fragments)
            self._calls.call(text, site, self._refusal(site.pc))
            return text.lines
        if instruction.opcode == "brx":
            text = WarpText(self._made.frame, block.function, self.fragments)
            add_switch(text, block, instruction, self._refusal(block.last - 1), self._begin)
            return text.lines
        if (
            not ends
            or instruction.guard is None
            or instruction.opcode not in ("bra", "ret", "exit")
        ):
            return []
        text = WarpText(self._made.frame, block.function, self.fragments)
        branch_mask = text.packed(instruction.guard.register, instruction.guard.negated)
        at = text.emit("getelementptr i32, ptr %takens, i64 %place")
        text.add(f"store i32 {branch_mask}, ptr {at}")
        return text.lines

    def _add_part(self, text: WarpText, block: BasicBlock, part: Part, later: list[Part]) -> None:
        pc = part.pcs[0]
        instruction = self._kernel.instructions[pc]
        refuse = self._refusal(pc)
        position = self._kernel.position(block, pc)
        number = len(self._made.sites) - self._made.first_site[-1]
        if part.kind == RUN:
            self._add_run(text, block, part, later)
        elif part.kind == COUNT:
            self._add_count(text, instruction, pc)
        elif part.kind == POINTED:
            if block.function:
                raise refuse("a parameter through a pointer")
            self._keep_places(block, pc)
            add_pointed(text, instruction, pc, (number, parameter_bytes(self._kernel)), refuse)
            self._last = f"inside{pc}"
        elif part.kind in (ACCESS, ATOMIC, GENERIC):
            add = _ACCESSES.get(instruction.opcode, add_access)
            if not _ASYNCHRONOUS.isdisjoint(instruction.modifiers) and add is not add_copy:
                raise refuse("this instruction")
            add(text, instruction, position, number, refuse)
            size = _bytes_of(instruction)
            for number, (space, _) in enumerate(accesses_of(instruction)):
                own = Space[space.upper()] if space else None
                self._made.sites.append((pc, own, number, size))
        else:
            add_warp(text, instruction, refuse)
            self._made.crosses_lanes = True

    def _add_count(self, text: WarpText, instruction: Instruction, pc: int) -> None:
        lanes = text.lanes_on(instruction)
        row = text.emit(f"mul i64 {text.field('blocks')}, {len(self._made.counted)}")
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
            lane.refuse, lane.position = self._refusal(pc), self._kernel.position(block, pc)
            instruction = self._kernel.instructions[pc]
            try:
                self._compute(lane, instruction)
            except CutraceError as problem:
                self._refuse(pc, problem)
                for register in destinations(instruction):  # for what follows in this attempt
                    lane.write(register, register.type, "undef", None)
        self._keep(lane, block, later)
        self._close_run(text, lane, is_directed(self._kernel.instructions[part.pcs[0]]))

    def _begin(self, label: str) -> None:
        """Set the label of the current lines."""
        self._last = label

    def _close_run(self, text: WarpText, lane: Lane, one_by_one: bool = False) -> None:
        """Emit the loop over the lanes of a run."""
        number = len(self._block_loops)
        text.lines.append(run_text(number, self._last, lane.lines))
        self._last = f"done.run{number}"
        self._block_loops.append(one_by_one)

    def _keep(self, lane: Lane, block: BasicBlock, later: list[Part]) -> None:
        """Emit the stores of the registers that later parts or blocks read.

        A register that is live anywhere keeps its value in inactive lanes, which may still read it.
        """
        kernel = self._kernel
        read = {r.name for r in sources(kernel.instructions[block.last - 1])}
        for part in later:
            for pc in part.pcs:
                instruction = kernel.instructions[pc]
                read |= {r.name for r in sources(instruction)}
                if instruction.guard is not None:
                    read |= {r.name for r in destinations(instruction)}
        for name, register in lane.written.items():
            key = block.function, name
            if key in self._made.frame.parameters:
                continue
            shared = self._made.frame.is_shared(name)
            lasts = key in kernel.live_out[block.number] or register == CARRY or shared
            if lasts or name in read or key in self._made.frame.passed:
                lane.keep(register, blended=shared or key in self._made.frame.lasting)

    def _compute(self, lane: Lane, instruction: Instruction) -> None:
        guard = instruction.guard
        holds = None
        if guard is not None:
            holds = lane.operand(guard.register, "pred")
            if guard.negated:
                holds = lane.emit(f"xor i1 {holds}, true")
        emit = self._emitters.get(instruction.opcode, self._arithmetic)
        for operand, kind, value in emit(lane, instruction):
            if isinstance(operand, Bucket):
                continue
            if isinstance(operand, Selected):
                operand = operand.register
            if not isinstance(operand, Register):
                raise lane.refuse("a result that is no register")
            if holds and instruction.opcode in _LOGIC:
                value = lane.emit(f"freeze {llvm_type(kind)} {value}")
            lane.write(operand, kind, value, holds)

    def _move(self, lane: Lane, instruction: Instruction) -> list[Write]:
        if instruction.type == "b128":
            raise lane.refuse("128 bits")
        start = self._made.frame.address_of(0, Symbol(PARAMETERS))
        end = 0 if start is None else start + parameter_bytes(self._kernel)
        rule = move_rule(instruction, (start or 0, end))
        if rule is None:
            return move(lane, instruction)
        to, *sources = map(elements, instruction.operands)
        operands = [operand for source in sources for operand in source]
        return self._results(lane, rule, to, operands if rule.sources else ())

    def _arithmetic(self, lane: Lane, instruction: Instruction) -> list[Write]:
        rule = find_rule(instruction)
        if rule is None:
            raise lane.refuse("this instruction")
        return self._results(lane, rule, *split_operands(instruction))

    def _results(
        self, lane: Lane, rule: Rule, to: Sequence[Operand], operands: Sequence[Operand]
    ) -> list[Write]:
        """Return the writes of a table's row."""
        if len(operands) != len(rule.sources):
            raise lane.refuse("this form")
        values = compute(lane, self.fragments, rule, operands)
        if values is None or len(values) < len(to):
            raise lane.refuse("this instruction")
        if rule.carry_out:
            return [(to[0], rule.results[0], values[0]), (CARRY, "pred", values[1])]
        return list(zip(to, rule.results, values, strict=False))

    def _parameters(self, lane: Lane, instruction: Instruction) -> list[Write]:
        kernel, kind = self._kernel, instruction.type
        loads = instruction.opcode == "ld"
        to, address = instruction.operands[:2] if loads else instruction.operands[1::-1]
        base = getattr(address, "base", None)
        offsets = parameter_offsets(kernel)
        if instruction.space != "param" or not isinstance(base, Symbol):
            raise lane.refuse("a parameter through a pointer")
        if lane.function != 0 or base.name not in offsets:
            passing = self._made.frame.passing
            moves = parameter_moves(passing, lane.function, instruction, lane.refuse)
            return [write for move in moves for write in self._calls.writes(lane, move)]
        if not loads:
            raise lane.refuse("a store to a parameter of the kernel")
        start = offsets[base.name] + base.offset + getattr(address, "offset", 0)
        return [
            (element, kind, lane.parameter(start + k * TYPE_BYTES[kind], kind))
            for k, element in enumerate(elements(to))
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
