"""The source line of an instruction, with which messages about a kernel begin."""

from ...ptx.kernel import Kernel


def source_line(kernel: Kernel, pc: int) -> str:
    """Return `file:line` of an instruction, or its PTX line where the source is not known."""
    instruction = kernel.instructions[pc]
    place = instruction.location
    return f"{place.file}:{place.line}" if place else f"PTX line {instruction.ptx_line}"
