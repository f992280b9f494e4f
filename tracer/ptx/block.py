"""Cutting a function into basic blocks, and who follows whom."""

from collections.abc import Callable

from ...lazy_dataclass import dataclass
from .kernel import Function, Instruction, Label
from .meeting import find_meetings
from .opcodes import LEAVES, is_barrier


@dataclass(frozen=True, slots=True)
class Cut:
    """A block in its function's own numbering: instructions `first` to `last` (exclusive)."""

    first: int
    last: int
    successors: tuple[int, ...]
    leaves: bool


def cut_blocks(function: Function, is_inner_call: Callable[[Instruction], bool]) -> list[Cut]:
    """Cut at branches, barriers, calls of PTX functions, returns, and before branch targets."""
    return _cut(function, is_inner_call, frozenset())


def cut_at_meetings(
    function: Function,
    is_inner_call: Callable[[Instruction], bool],
    cuts: list[Cut],
    known: frozenset[int] = frozenset(),
) -> tuple[list[Cut], frozenset[int]]:
    """Make blocks of the instructions at which lanes meet that parted, those that are `known` to
    be of the kind with them; return them, too."""
    found = known | find_meetings(
        function.instructions,
        [(cut.first, cut.last) for cut in cuts],
        {number: cut.successors for number, cut in enumerate(cuts)},
        [number for number, cut in enumerate(cuts) if cut.leaves],
    )
    return (_cut(function, is_inner_call, found) if found else cuts), found


def _cut(
    function: Function, is_inner_call: Callable[[Instruction], bool], alone: frozenset[int]
) -> list[Cut]:
    instructions = function.instructions
    starts = {0, *alone, *(index + 1 for index in alone)}
    for index, instruction in enumerate(instructions):
        if _ends_block(instruction) or (
            instruction.opcode == "call" and is_inner_call(instruction)
        ):
            starts.add(index + 1)
        starts.update(_targets(function, instruction))
    starts.discard(len(instructions))
    firsts = sorted(starts)
    number = {first: block for block, first in enumerate(firsts)}
    lasts = [*firsts[1:], len(instructions)]
    return [
        Cut(first, last, _successors(function, last - 1, number), _leaves(instructions[last - 1]))
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _ends_block(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode in LEAVES or opcode in ("bra", "brx") or is_barrier(instruction)


def _targets(function: Function, instruction: Instruction) -> tuple[int, ...]:
    """Return the instructions to which a branch may go, in the order of its list."""
    if instruction.opcode not in ("bra", "brx"):
        return ()
    label = instruction.operands[-1]
    assert isinstance(label, Label)
    names = (label.name,) if instruction.opcode == "bra" else function.branch_targets[label.name]
    return tuple(function.labels[name] for name in names)


def _successors(function: Function, last: int, number: dict[int, int]) -> tuple[int, ...]:
    """Return the blocks after the one that `last` ends: (taken, fall-through)."""
    instruction = function.instructions[last]
    taken = tuple(number[target] for target in _targets(function, instruction))
    falls = instruction.guard or not (taken or instruction.opcode in (*LEAVES, "brx"))
    return (*taken, number[last + 1]) if falls else taken


def _leaves(instruction: Instruction) -> bool:
    """Whether all lanes leave the function here in good order (a trap is none)."""
    return instruction.opcode in ("ret", "exit") and instruction.guard is None
