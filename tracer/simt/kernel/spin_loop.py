"""Spin loops: static detection of the loops that wait for another warp.

A loop spins if its exit depends on an atomic's result, on an mbarrier, or on a load that may see
another thread's store (volatile, relaxed, acquire). The dependence may go through memory, where a
thread acquires a lock and its block reads the result behind a barrier, and through functions.

Two kinds of loops do not spin: a loop with a trip counter, whatever its body does (a loop inside it
may spin), and a loop that takes work until there is none, where each `add` increments a counter and
the loop exits beyond a limit. Only spin loops are ever interrupted, so that a loop that merely runs
long keeps its divergence.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ....traces.schema import STRONG_LOADS
from ...ptx.digraph import cycles, subgraph
from ...ptx.kernel import (
    KERNELS,
    BasicBlock,
    CallTarget,
    Immediate,
    Instruction,
    Kernel,
    KernelKey,
    Module,
    Operand,
    Register,
    Special,
)
from ...ptx.link import link_kernel
from ...ptx.opcodes import LEAVES, destinations, sources
from ...ptx.reconvergence import blocking_places
from .function_pointer import callees

_LOCK_OPERATIONS = frozenset({"cas", "exch"})
"""Atomics by which one thread acquires a lock for its block; `add` hands out work instead."""

_OUT = LEAVES | {"call"}
"""Opcodes by which a lane may leave a loop without a branch."""

_SIZES = ("%ntid", "%nctaid")

_Writers = dict[str, list[Instruction]]
"""The instructions of a loop that write a register, by its name."""


def waiting_blocks(kernel: Kernel) -> frozenset[int]:
    """Return the numbers of the basic blocks in spin loops, and in the functions that these
    call.
    """
    numbers: set[int] = set()
    worklist = list(loops(kernel))
    while worklist:
        loop = worklist.pop()
        if _is_waiting(kernel, loop):
            called = _called(kernel, loop)
            numbers |= loop | {b.number for b in kernel.blocks if b.function in called}
        else:
            head = min(loop, key=lambda number: kernel.blocks[number].rank)
            worklist += loops(kernel, loop - {head})
    return frozenset(numbers)


def loops(kernel: Kernel, within: Collection[int] | None = None) -> Iterator[set[int]]:
    """Yield the loops of the control-flow graph, or of some of its blocks: strongly connected
    components.
    """
    graph = {block.number: block.successors for block in kernel.blocks}
    return cycles(graph if within is None else subgraph(graph, within))


def endless_blocks(kernel: Kernel) -> frozenset[int]:
    """Return the numbers of the basic blocks in loops without exit."""
    return frozenset(n for loop in loops(kernel) if not _leaves(kernel, loop) for n in loop)


def _leaves(kernel: Kernel, loop: set[int]) -> bool:
    blocks = [kernel.blocks[number] for number in loop]
    return any(
        set(block.successors) - loop or {i.opcode for i in _instructions(kernel, block)} & _OUT
        for block in blocks
    )


def _is_waiting(kernel: Kernel, loop: set[int]) -> bool:
    """Return whether a loop's exit depends on other threads: follow its conditions back to
    their sources.
    """
    inside = [i for n in sorted(loop) for i in _instructions(kernel, kernel.blocks[n])]
    if not any(map(_sees_others, inside)) and not _call_sees(kernel, loop):
        return False  # nothing that the conditions come from can
    writers = _writers(inside)
    deciders = _deciding(kernel, loop, writers)
    if any(_sees_others(i) and not _takes_work(kernel, i, deciders) for i in deciders):
        return True
    if any(i.opcode == "ld" and i.space == "param" for i in deciders) and _call_sees(kernel, loop):
        return True
    loaded = {i.space for i in deciders if i.opcode == "ld"} - {"param", "const"}
    stores = [i for i in inside if i.opcode == "st" and i.space in loaded]
    stored = _makers(writers, _names(r for i in stores for r in sources(i)))
    return any(_sees_others(i) and not _hands_out(i) for i in stored)


def _deciding(kernel: Kernel, loop: set[int], writers: _Writers) -> list[Instruction]:
    """Return the instructions of a loop that decide whether a lane exits it.

    These compute the conditions of its exits, and the conditions of the branches around those
    computations (control dependence).
    """
    blocks = [kernel.blocks[number] for number in sorted(loop)]
    ends = {b.number: kernel.instructions[b.last - 1] for b in blocks}
    around = {b.number: _region(kernel, b) for b in blocks if len(b.successors) > 1}
    register_names = _names(
        r
        for b in blocks
        if set(b.successors) - loop or ends[b.number].opcode in LEAVES
        for r in sources(ends[b.number])
    )
    while True:
        deciders = _makers(writers, register_names)
        texts = set(map(id, deciders))
        at = {b.number for b in blocks if any(id(i) in texts for i in _instructions(kernel, b))}
        more = register_names | _names(
            r for n, region in around.items() if at & region for r in sources(ends[n])
        )
        if more == register_names:
            return deciders
        register_names = more


def _region(kernel: Kernel, branch: BasicBlock) -> set[int]:
    """Return the blocks that are control-dependent on a branch: those before its
    reconvergence point.
    """
    region: set[int] = set()
    join = branch.outer_joins[0] if branch.outer_joins else branch.join
    waiting = [s for s in branch.successors if s != join]
    while waiting:
        number = waiting.pop()
        if number not in region:
            region.add(number)
            waiting += [s for s in kernel.blocks[number].successors if s != join]
    return region


def _called(kernel: Kernel, loop: set[int]) -> set[int]:
    """Return the functions that a loop may enter, transitively."""
    functions: set[int] = set()
    here = set(loop)
    while here:
        entered = {
            callee
            for number in here
            for i in _instructions(kernel, kernel.blocks[number])
            for operand in i.operands
            if isinstance(operand, CallTarget)
            for callee in callees(kernel, kernel.blocks[number].function, operand)
        } - functions
        functions |= entered
        here = {b.number for b in kernel.blocks if b.function in entered}
    return functions


def _call_sees(kernel: Kernel, loop: set[int]) -> bool:
    """Return whether a function called from a loop may see other threads' stores."""
    called = _called(kernel, loop)
    return any(
        _sees_others(i)
        for b in kernel.blocks
        if b.function in called
        for i in _instructions(kernel, b)
    )


def _writers(inside: Iterable[Instruction]) -> _Writers:
    writers: _Writers = {}
    for instruction in inside:
        for register in destinations(instruction):
            writers.setdefault(register.name, []).append(instruction)
    return writers


def _makers(writers: _Writers, register_names: set[str]) -> list[Instruction]:
    """Return the instructions that the registers `register_names` are computed from,
    transitively.
    """
    producers: dict[int, Instruction] = {}
    closure, worklist = set(register_names), list(register_names)
    while worklist:
        for instruction in writers.get(worklist.pop(), ()):
            if id(instruction) not in producers:
                producers[id(instruction)] = instruction
                more = _names(sources(instruction)) - closure
                closure |= more
                worklist += more
    return list(producers.values())


def _instructions(kernel: Kernel, block: BasicBlock) -> tuple[Instruction, ...]:
    return kernel.instructions[block.first : block.last]


def _names(registers: Iterable[Register]) -> set[str]:
    return {register.name for register in registers}


def _hands_out(instruction: Instruction) -> bool:
    return instruction.opcode == "atom" and _LOCK_OPERATIONS.isdisjoint(instruction.modifiers)


def _takes_work(kernel: Kernel, atom: Instruction, exits: Iterable[Instruction]) -> bool:
    """Return whether an atomic increments a work counter that is then compared with a limit.

    `exits` are the instructions that decide whether the loop exits. A test for one value, as of a
    lock (`atomicAdd(lock, 1) == 0`), is a spin.
    """
    if atom.opcode != "atom" or "add" not in atom.modifiers:
        return False
    if not _is_some(kernel, atom.operands[-1]):
        return False
    users: dict[str, list[Instruction]] = {}
    for instruction in exits:
        for register in sources(instruction):
            users.setdefault(register.name, []).append(instruction)
    worklist, registers = list(_names(destinations(atom))), set[str]()
    while worklist:
        for user in users.get(worklist.pop(), ()):
            if user.opcode == "setp" and not {"eq", "ne"}.isdisjoint(user.modifiers):
                return False
            more = _names(destinations(user)) - registers
            registers |= more
            worklist += more
    return True


def _is_some(kernel: Kernel, operand: Operand) -> bool:
    """Return whether an operand is a nonzero constant, or a number of threads or blocks."""
    if isinstance(operand, Immediate):
        return operand.bits != 0
    if isinstance(operand, Special):
        return operand.name.startswith(_SIZES)
    if not isinstance(operand, Register):
        return False
    writers = [i for i in kernel.instructions if operand in destinations(i)]
    return bool(writers) and all(
        i.opcode == "mov"
        and i.guard is None
        and not isinstance(i.operands[1], Register)
        and _is_some(kernel, i.operands[1])
        for i in writers
    )


def _sees_others(instruction: Instruction) -> bool:
    if instruction.opcode in ("atom", "mbarrier"):
        return True
    return instruction.opcode == "ld" and not STRONG_LOADS.isdisjoint(instruction.modifiers)


def link_with_divergent_sync(module: Module, name: str) -> Kernel:
    """Link a kernel; warp-wide instructions reachable from spin loops allow divergent lanes."""
    kernel = link_kernel(module, name)
    places = _places(kernel) - kernel.meetings
    return link_kernel(module, name, kernel.meetings | places) if places else kernel


def _places(kernel: Kernel) -> frozenset[int]:
    """Return the pcs of the warp-wide instructions in spin loops or reachable from them."""
    waiting = waiting_blocks(kernel)
    places: set[int] = set()
    start = 0
    for span in kernel.functions if waiting else ():
        own = span.function.instructions
        places.update(start + k for k in blocking_places(own))
        start += len(own)
    region = _reached(kernel, waiting) if places else set()
    blocks = [kernel.blocks[number] for number in region]
    return frozenset(pc for b in blocks for pc in range(b.first, b.last) if pc in places)


def _reached(kernel: Kernel, first: frozenset[int]) -> set[int]:
    """Return the blocks reachable from some blocks, also through calls and returns."""
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


@lru_cache(maxsize=KERNELS)
def waits_of(kernel: KernelKey) -> frozenset[int]:
    """Return the basic blocks of a kernel's spin loops; see spin_loop.py."""
    return waiting_blocks(kernel.kernel)


@lru_cache(maxsize=KERNELS)
def has_loops(kernel: KernelKey) -> bool:
    """Return whether a kernel may run an instruction twice."""
    return any(True for _ in loops(kernel.kernel))


@lru_cache(maxsize=KERNELS)
def endless_of(kernel: KernelKey) -> frozenset[int]:
    """Return the basic blocks of a kernel's loops without exit; see spin_loop.py."""
    return endless_blocks(kernel.kernel)
