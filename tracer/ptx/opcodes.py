"""Instruction set tables: the opcode properties that the parser and the linker need."""

from collections.abc import Iterator
from functools import lru_cache

from .kernel import (
    Address,
    CallTarget,
    Instruction,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Sum,
    TextureAddress,
    Vector,
)


def words(text: str) -> frozenset[str]:
    """Return the set of words in `text`."""
    return frozenset(text.split())


NO_RESULT = words(
    """
    applypriority bar barrier bra brkpt brx cp discard exit fence griddepcontrol membar nanosleep
    pmevent prefetch prefetchu red ret setmaxnreg st stackrestore stmatrix sured sust tensormap trap
    """
)
"""Opcodes whose operands are all sources; any other opcode writes its first operand."""

_RESULT_BY_FORM = {
    ("bar", "red"): True,
    ("barrier", "red"): True,
    ("clusterlaunchcontrol", "try_cancel"): False,
    ("mbarrier", "init"): False,
    ("mbarrier", "inval"): False,
    ("mbarrier", "expect_tx"): False,
    ("mbarrier", "complete_tx"): False,
    ("multimem", "st"): False,
    ("multimem", "red"): False,
    ("wgmma", "fence"): False,
    ("wgmma", "commit_group"): False,
    ("wgmma", "wait_group"): False,
    ("wmma", "store"): False,
}
"""Opcodes of which only some forms have a result: (opcode, a modifier)."""

READS_ITS_RESULT = frozenset({"wgmma"})
"""Opcodes that accumulate into their destination."""

LABEL_OPERAND = {"bra": 0, "brx": 1}
"""Index of the label operand of an opcode."""

LEAVES = frozenset({"ret", "exit", "trap"})
"""Opcodes that end a lane's execution of the function."""

MEMORY = words("ld ldu st atom red cp ldmatrix stmatrix tex tld4 suld sust sured multimem")
"""Opcodes that move bytes between a lane and memory."""


@lru_cache(maxsize=1024)
def has_result(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Return True if the instruction writes its first operand."""
    for modifier in modifiers:
        form = _RESULT_BY_FORM.get((opcode, modifier))
        if form is not None:
            return form
    if opcode == "tcgen05":
        return modifiers[0] in ("ld", "alloc")
    return opcode not in NO_RESULT


def is_barrier(instruction: Instruction) -> bool:
    """Return True if it waits for (or arrives at) other warps: `bar.warp.sync` does not."""
    return instruction.opcode == "barrier" or (
        instruction.opcode == "bar" and "warp" not in instruction.modifiers
    )


def destinations(instruction: Instruction) -> tuple[Register, ...]:
    """Return the registers that `instruction` writes, in order, including results of a call."""
    operands = instruction.operands
    if instruction.opcode == "call":
        return tuple(_registers(_call(instruction).returns))
    if not operands or not has_result(instruction.opcode, instruction.modifiers):
        return ()
    if isinstance(operands[0], (Address, TextureAddress)):
        return ()
    return tuple(_registers(operands[:1]))


def sources(instruction: Instruction) -> tuple[Register, ...]:
    """Return the registers that `instruction` reads, guard first, with repetitions."""
    guard = (instruction.guard.register,) if instruction.guard else ()
    operands = instruction.operands
    if instruction.opcode == "call":
        call = _call(instruction)
        return (*guard, *_registers((call.callee, *call.arguments)))
    if operands and instruction.opcode not in READS_ITS_RESULT and destinations(instruction):
        operands = operands[1:]
    return (*guard, *_registers(operands))


def _call(instruction: Instruction) -> CallTarget:
    (target,) = instruction.operands
    assert isinstance(target, CallTarget)
    return target


def _registers(operands: tuple[Operand, ...]) -> Iterator[Register]:
    for operand in operands:
        match operand:
            case Register():
                yield operand
            case Address(base=Register() as register) | Not(register):
                yield register
            case Part(register) | Sum(register):
                yield register
            case Pair(first, second):
                yield from _registers((first, second))
            case Vector(elements):
                yield from _registers(elements)
            case TextureAddress(texture, coordinates, sampler):
                yield from _registers((texture, *coordinates))
                if isinstance(sampler, Register):
                    yield sampler
