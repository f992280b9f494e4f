"""Warp-wide instructions to which lanes of a warp may come apart, since some wait in a loop.

Lanes that have left a waiting loop may go on before the others, which may need them to (see
split.py). They wait at the next `.sync` instruction that names the others.
"""

from ...ptx.kernel import CallTarget, Kernel, Module
from ...ptx.link import link_kernel
from ...ptx.meeting import waiting_places
from .function_pointer import callees
from .spin_loop import waiting_blocks


def link_with_waiting(module: Module, name: str) -> Kernel:
    """Link a kernel; lanes meet also where they come from waiting loops."""
    kernel = link_kernel(module, name)
    places = _places(kernel) - kernel.meetings
    return link_kernel(module, name, kernel.meetings | places) if places else kernel


def _places(kernel: Kernel) -> frozenset[int]:
    """Return the pcs of the instructions behind waiting loops, or in them, at which lanes wait."""
    waiting = waiting_blocks(kernel)
    places: set[int] = set()
    start = 0
    for span in kernel.functions if waiting else ():
        own = span.function.instructions
        places.update(start + k for k in waiting_places(own))
        start += len(own)
    behind = _reached(kernel, waiting) if places else set()
    blocks = [kernel.blocks[number] for number in behind]
    return frozenset(pc for b in blocks for pc in range(b.first, b.last) if pc in places)


def _reached(kernel: Kernel, first: frozenset[int]) -> set[int]:
    """Return the blocks that lanes may come to from some blocks, also by calls and returns."""
    after = {block.number: set(block.successors) for block in kernel.blocks}
    ends: dict[int, list[int]] = {}
    for block in kernel.blocks:
        if not block.successors:
            ends.setdefault(block.function, []).append(block.number)
    for block in kernel.blocks:
        for operand in kernel.instructions[block.last - 1].operands:
            if not isinstance(operand, CallTarget):
                continue
            for callee in callees(kernel, block.function, operand):
                after[block.number].add(kernel.functions[callee].entry)
                for end in ends.get(callee, ()):
                    after[end].update(block.successors)
    reached: set[int] = set()
    pending = list(first)
    while pending:
        number = pending.pop()
        if number not in reached:
            reached.add(number)
            pending += after[number]
    return reached
