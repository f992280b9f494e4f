"""Registers that hold a parameter of the kernel, as it is: all lanes have the same in them, so that
they need no place in the frames of warps."""

from collections import Counter
from collections.abc import Container

from ....ptx.kernel import TYPE_BYTES, Address, Instruction, Kernel, Register, Symbol
from ....ptx.opcodes import destinations, sources
from ...kernel.parameter_layout import parameter_offsets
from .block_part import RUN, kind_of, reads_parameter


def parameter_registers(kernel: Kernel, escaped: Container[int] = ()) -> dict[tuple[int, str], int]:
    """Return the offset among the parameters for each such register, (function, name).

    One instruction writes it, in every lane and before anything reads it, and only instructions
    that compute do: others, and those that the array engine runs (`escaped`), take it from the
    frame.
    """
    offsets = parameter_offsets(kernel)
    own = [pc for b in kernel.blocks if b.function == 0 for pc in range(b.first, b.last)]
    instructions = [kernel.instructions[pc] for pc in sorted(own)]
    written = Counter(r.name for i in instructions for r in destinations(i))
    placed = _read_from_frames(kernel, escaped)
    found: dict[tuple[int, str], int] = {}
    for instruction in instructions:
        to = instruction.operands[0] if instruction.operands else None
        if not isinstance(to, Register) or instruction.guard is not None or to.name in placed:
            continue
        offset = _offset(instruction, offsets, found)
        if offset is not None and written[to.name] == 1 and _fits(instruction, to):
            found[0, to.name] = offset
    return found


def _read_from_frames(kernel: Kernel, escaped: Container[int]) -> set[str]:
    """Return the registers that are read before they are written, or by what does not compute."""
    names = {name for _, name in kernel.live_in[kernel.functions[0].entry]}
    for block in kernel.blocks:
        for pc in range(block.first, block.last):
            instruction = kernel.instructions[pc]
            if pc == block.last - 1 or pc in escaped or kind_of(instruction) != RUN:
                names.update(register.name for register in sources(instruction))
            if pc in escaped:
                names.update(register.name for register in destinations(instruction))
    return names


def _offset(
    instruction: Instruction, offsets: dict[str, int], found: dict[tuple[int, str], int]
) -> int | None:
    """Return where the parameter lies that an instruction puts into a register, if it does."""
    source = instruction.operands[-1]
    if reads_parameter(instruction) and isinstance(source, Address):
        base = source.base
        if isinstance(base, Symbol) and base.name in offsets:
            return offsets[base.name] + base.offset + source.offset
    is_copy = instruction.opcode == "mov"
    if is_copy or (instruction.opcode == "cvta" and instruction.space == "global"):
        return found.get((0, source.name)) if isinstance(source, Register) else None
    return None


def _fits(instruction: Instruction, to: Register) -> bool:
    return to.type != "pred" and TYPE_BYTES[to.type] == TYPE_BYTES[instruction.type]
