"""Loops that wait for another warp: found in the code, watched while they run.

A loop waits if whether it goes on depends on an atomic's result, on an mbarrier, or on a load that
may see another thread's store (volatile, relaxed, acquire); also by way of memory, where a thread
asks for a lock and its block reads the answer behind a barrier. Only such loops are ever
interrupted, so that a loop that merely runs long keeps its divergence.
"""

from collections.abc import Iterable, Iterator, Sequence

from ..ptx.isa import LEAVES, destinations, sources
from ..ptx.kernel import BasicBlock, Instruction, Kernel, Register

_SEES_OTHERS = frozenset({"volatile", "relaxed", "acquire", "mmio"})
_ASKS = frozenset({"cas", "exch"})
"""Atomics with which one thread asks for all of its block: `add` hands out work instead."""

_OUT = LEAVES | {"call"}
"""Opcodes with which a lane may leave a loop though no branch does."""


def waiting_blocks(kernel: Kernel) -> frozenset[int]:
    """Return the numbers of the basic blocks that lie in loops that wait."""
    return frozenset(number for loop in loops(kernel) if _waits(kernel, loop) for number in loop)


def loops(kernel: Kernel) -> Iterator[set[int]]:
    """Yield the cycles of the control-flow graph: its strongly connected sets of blocks."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(block.number for block in kernel.blocks)
    graph.add_edges_from((b.number, s) for b in kernel.blocks for s in b.successors)
    for members in nx.strongly_connected_components(graph):
        first = next(iter(members))
        if len(members) > 1 or graph.has_edge(first, first):
            yield members


def endless_blocks(kernel: Kernel) -> frozenset[int]:
    """Return the numbers of the basic blocks in loops that nothing leaves."""
    return frozenset(n for loop in loops(kernel) if not _leaves(kernel, loop) for n in loop)


def _leaves(kernel: Kernel, loop: set[int]) -> bool:
    blocks = [kernel.blocks[number] for number in loop]
    return any(
        set(block.successors) - loop or {i.opcode for i in _instructions(kernel, block)} & _OUT
        for block in blocks
    )


def _waits(kernel: Kernel, loop: set[int]) -> bool:
    """Follow the conditions of the loop's branches back to what they are computed from."""
    inside = [i for n in sorted(loop) for i in _instructions(kernel, kernel.blocks[n])]
    wanted = {i.guard.register.name for i in inside if i.opcode == "bra" and i.guard is not None}
    made = _makers(inside, wanted)
    if any(_sees_others(i) for i in made):
        return True
    loaded = {i.space for i in made if i.opcode == "ld"} - {"param", "const"}
    stores = [i for i in inside if i.opcode == "st" and i.space in loaded]
    stored = _makers(inside, _names(r for i in stores for r in sources(i)))
    return any(_sees_others(i) and not _hands_out(i) for i in stored)


def _makers(inside: Sequence[Instruction], wanted: set[str]) -> list[Instruction]:
    """Return the instructions from which the registers `wanted` are computed."""
    while True:
        made = [i for i in inside if any(r.name in wanted for r in destinations(i))]
        more = wanted | _names(r for i in made for r in sources(i))
        if more == wanted:
            return made
        wanted = more


def _instructions(kernel: Kernel, block: BasicBlock) -> tuple[Instruction, ...]:
    return kernel.instructions[block.first : block.last]


def _names(registers: Iterable[Register]) -> set[str]:
    return {register.name for register in registers}


def _hands_out(instruction: Instruction) -> bool:
    return instruction.opcode == "atom" and _ASKS.isdisjoint(instruction.modifiers)


def _sees_others(instruction: Instruction) -> bool:
    if instruction.opcode in ("atom", "mbarrier"):
        return True
    return instruction.opcode == "ld" and not _SEES_OTHERS.isdisjoint(instruction.modifiers)
