"""Which registers a block, or what runs after it, reads before writing.

Sets of registers are integers, a bit a register: a kernel has thousands of registers and blocks.
"""

from collections.abc import Mapping, Sequence

from .kernel import Function, Instruction
from .opcodes import destinations, sources

Names = list[list[str]]


def find_live(
    function: Function,
    blocks: Sequence[Sequence[Instruction]],
    successors: Sequence[Sequence[int]],
) -> tuple[Names, Names]:
    """Return the names live at the start of each block and those live at its end.

    A guarded instruction may leave its destination as it was, so it kills nothing. The callee of
    an inner call knows no register of the caller: what is live after the call is live during it.
    Register results of old PTX are read when the function returns.
    """
    names = list(function.registers)
    bits = {name: 1 << number for number, name in enumerate(names)}
    results = sum(bits[v.name] for v in function.returns if v.space == "reg")
    uses = [_summarize(instructions, bits, results) for instructions in blocks]
    live_in = [0] * len(blocks)
    live_out = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(blocks))):
            for after in successors[block]:
                live_out[block] |= live_in[after]
            read, written = uses[block]
            before = read | (live_out[block] & ~written)
            changed |= before != live_in[block]
            live_in[block] = before
    return [_name(b, names) for b in live_in], [_name(b, names) for b in live_out]


def _summarize(
    instructions: Sequence[Instruction], bits: Mapping[str, int], results: int
) -> tuple[int, int]:
    """Return what a block reads before writing, and what it surely writes."""
    read = written = 0
    for instruction in instructions:
        now = results if instruction.opcode == "ret" else 0
        for register in sources(instruction):
            now |= bits[register.name]
        read |= now & ~written
        if instruction.guard is None:
            for register in destinations(instruction):
                written |= bits[register.name]
    return read, written


def _name(bits: int, names: Sequence[str]) -> list[str]:
    """Return the names of the set bits; takes the time of the set ones only."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(names[lowest.bit_length() - 1])
        bits ^= lowest
    return found
