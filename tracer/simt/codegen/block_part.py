"""Cut a basic block into parts: runs of computing instructions, and single instructions.

A part runs for one warp of a group after another. Memory must look as if each instruction ran for
all warps before the next one began. Parts are therefore grouped into segments, and within a segment
a state space is only read, or has a single access. A fallback and an access with generic addresses
are segments of their own.
"""

from collections.abc import Container, Iterator, Set

from ....base.dataclass import dataclass
from ...ptx.kernel import Address, BasicBlock, Instruction, Kernel, Symbol
from ...ptx.opcodes import destinations, sources
from ..interp.move import NO_EFFECT

RUN, ACCESS, ATOMIC, COUNT, WARP, ESCAPE = "run", "access", "atomic", "count", "warp", "escape"
GENERIC, POINTED = "generic", "pointed"
_ACROSS = frozenset({"shfl", "vote", "activemask", "match", "redux", "elect", "mma"})


@dataclass(frozen=True, slots=True)
class Part:
    """Instructions (pcs) of one kind; with `starts_segment` all warps must reach it before any runs
    it."""

    kind: str
    pcs: tuple[int, ...]
    starts_segment: bool = False


def cut_parts(
    kernel: Kernel, block: BasicBlock, ends: bool, escaped: Container[int] = ()
) -> list[Part]:
    """Cut a basic block into parts; its last instruction is in no part if it `ends` the block. The
    array engine runs the `escaped` ones (pcs).

    Computing instructions are delayed until another one depends on them, which makes a few long
    runs of many short ones.
    """
    parts: list[Part] = []
    run: list[int] = []
    inputs: set[str] = set()
    outputs: set[str] = set()
    """Registers that the run reads, and that it writes."""
    for kind, pc in _kinds(kernel, block, ends, escaped):
        instruction = kernel.instructions[pc]
        read = [register.name for register in sources(instruction)]
        written = [register.name for register in destinations(instruction)]
        is_alone = kind == RUN and is_directed(instruction)
        if kind == RUN and not is_alone:
            run.append(pc)
            inputs.update(read)
            outputs.update(written)
            continue
        # The run stays open while other instructions are independent of it: they are emitted before
        # it, and later computing instructions join it. It ends before its first dependent
        # instruction, and before every fallback.
        needs = not outputs.isdisjoint((*read, *written)) or not inputs.isdisjoint(written)
        if run and (is_alone or kind == ESCAPE or needs):
            parts.append(Part(RUN, tuple(run)))
            run = []
            inputs.clear()
            outputs.clear()
        parts.append(Part(kind, (pc,)))
    if run:
        parts.append(Part(RUN, tuple(run)))
    return list(_in_segments(kernel, parts))


def _kinds(
    kernel: Kernel, block: BasicBlock, ends: bool, escaped: Container[int]
) -> Iterator[tuple[str, int]]:
    for pc in range(block.first, block.last - ends):
        instruction = kernel.instructions[pc]
        if pc in escaped:
            yield ESCAPE, pc
            continue
        kind = kind_of(instruction)
        if kind == RUN and instruction.guard is not None and is_counted(instruction):
            yield COUNT, pc
        if kind:
            yield kind, pc


def is_counted(instruction: Instruction) -> bool:
    """Return whether the lanes for which the guard of a computing instruction holds are counted."""
    return instruction.opcode not in ("mov", "cvta", "ld", "st", "isspacep", "createpolicy")


def is_directed(instruction: Instruction) -> bool:
    """Return whether an instruction needs another rounding mode than to nearest. It gets a run of
    its own, because LLVM does not vectorize code that changes the rounding mode."""
    directed = not {"rz", "rm", "rp"}.isdisjoint(instruction.modifiers)
    return directed and instruction.opcode != "cvt"


def kind_of(instruction: Instruction) -> str:
    """Return the kind of the part of an instruction, "" if the instruction does nothing."""
    opcode = instruction.opcode
    if opcode in NO_EFFECT or (opcode in ("bar", "barrier") and "warp" in instruction.modifiers):
        return ""
    if opcode in ("ld", "ldu", "st") and instruction.space != "param":
        return ACCESS if instruction.space else GENERIC
    if opcode == "ld" and instruction.space == "param" and not reads_parameter(instruction):
        return POINTED
    if opcode in ("atom", "red"):
        return ATOMIC if instruction.space else GENERIC
    if opcode == "cp" and is_async_copy(instruction):
        return ACCESS if instruction.space else ""
    if opcode in ("ldmatrix", "stmatrix") and instruction.space:
        return ACCESS
    is_product = opcode == "wmma" and instruction.modifiers[0] == "mma"
    return WARP if opcode in _ACROSS or is_product else RUN


def is_async_copy(instruction: Instruction) -> bool:
    """Return whether it is a `cp.async` or waits for one; such copies complete when they are
    issued."""
    others = {"bulk", "mbarrier"}
    return "async" in instruction.modifiers and others.isdisjoint(instruction.modifiers)


def accesses_of(instruction: Instruction) -> tuple[tuple[str, bool], ...]:
    """Return the state space of each access of an instruction, and whether it is a write."""
    if instruction.opcode == "cp":
        return ("global", False), ("shared", True)
    return ((instruction.space, instruction.opcode in ("st", "stmatrix", "atom", "red")),)


def _in_segments(kernel: Kernel, parts: list[Part]) -> Iterator[Part]:
    read: set[str] = set()
    written: set[str] = set()
    is_alone = False
    for part in parts:
        begins = is_alone or part.kind in (ESCAPE, GENERIC)
        is_alone = part.kind in (ESCAPE, GENERIC)
        if begins:
            read, written = set(), set()
        if part.kind in (ACCESS, ATOMIC):
            accesses = accesses_of(kernel.instructions[part.pcs[0]])
            reached = [(s, writes) for s, writes in accesses if s not in ("local", "const")]
            if any(s in written or (writes and s in read) for s, writes in reached):
                begins = True
                read, written = set(), set()
            for space, writes in reached:
                (written if writes else read).add(space)
        yield Part(part.kind, part.pcs, begins)


def spans_of(
    kernel: Kernel, block: BasicBlock, parts: list[Part], others: Set[tuple[int, str]]
) -> list[tuple[tuple[int, str], int, int]]:
    """Return the registers that need a place in the frame only within the block, each with the
    first and last part that uses it: those used in several parts, or in one that is not a run.
    Registers in `others` are left out: they have a place already, or need none."""
    used: dict[tuple[int, str], list[int]] = {}
    in_memory: set[tuple[int, str]] = set()
    last = kernel.instructions[block.last - 1]
    for number, part in enumerate([*parts, Part(WARP, (block.last - 1,))]):
        instructions = [kernel.instructions[pc] for pc in part.pcs]
        if number == len(parts):
            instructions = [last]
        for instruction in instructions:
            for register in (*sources(instruction), *destinations(instruction)):
                key = block.function, register.name
                used.setdefault(key, []).append(number)
                if part.kind != RUN:
                    in_memory.add(key)
    return [
        (key, numbers[0], numbers[-1])
        for key, numbers in used.items()
        if key not in others and (numbers[0] != numbers[-1] or key in in_memory)
    ]


def reads_parameter(instruction: Instruction) -> bool:
    """Return whether it loads a parameter by name."""
    return (
        instruction.opcode == "ld"
        and instruction.space == "param"
        and isinstance(instruction.operands[1], Address)
        and isinstance(instruction.operands[1].base, Symbol)
    )
