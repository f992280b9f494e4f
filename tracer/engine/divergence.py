"""Whether lanes, warps or blocks may go round a kernel's loops differently often.

What a thread's or block's number, or memory, decides may differ; what the parameters decide does
not. Registers are taken as a whole, whatever is in them where.
"""

from collections.abc import Iterator

from ..ptx.isa import destinations, sources
from ..ptx.kernel import Instruction, Kernel, Special
from .spin import loops

_SAME = frozenset({"%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"})


def has_divergent_loop(kernel: Kernel) -> bool:
    """Whether a branch inside a loop depends on more than the launch's parameters."""
    varying = _varying(kernel)
    return any(
        instruction.guard is not None and (function, instruction.guard.register.name) in varying
        for function, instruction in _branches(kernel)
    )


def _branches(kernel: Kernel) -> Iterator[tuple[int, Instruction]]:
    for loop in loops(kernel):
        for number in loop:
            block = kernel.blocks[number]
            yield block.function, kernel.instructions[block.last - 1]


def _varying(kernel: Kernel) -> set[tuple[int, str]]:
    """Return the registers, (function, name), that may differ from thread to thread."""
    varying: set[tuple[int, str]] = set()
    count = -1
    while len(varying) > count:
        count = len(varying)
        for block in kernel.blocks:
            for instruction in kernel.instructions[block.first : block.last]:
                read = {(block.function, r.name) for r in sources(instruction)}
                if _differs(instruction) or not read.isdisjoint(varying):
                    varying |= {(block.function, r.name) for r in destinations(instruction)}
    return varying


def _differs(instruction: Instruction) -> bool:
    if instruction.opcode in ("ld", "ldu"):
        return instruction.space not in ("param", "const")
    if instruction.opcode in ("atom", "shfl", "match", "elect", "call", "tex"):
        return True
    return any(isinstance(o, Special) and o.name not in _SAME for o in instruction.operands)
