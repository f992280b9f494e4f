"""Parameters by the byte: where the kernel's lie, and into which pieces a function's are cut.

A caller may store 32 bits of which its callee loads 8, or bytes of a structure that are loaded as
one word. The bytes are cut at every border that an access in the kernel has; an access is of one
piece or of several.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

from ...ptx.kernel import TYPE_BYTES, Address, CallTarget, Instruction, Kernel, Symbol
from .function_pointer import callees

Place: TypeAlias = tuple[int, str]
"""A `.param` variable: the function that has it, and its name."""

Span: TypeAlias = tuple[int, int]
"""Bytes of a parameter: offset and size."""

WIDEST = 8
"""Bytes of a piece at most."""


def parameter_pieces(
    kernel: Kernel, places: Mapping[Place, Place]
) -> Mapping[Place, tuple[Span, ...]]:
    """Return the pieces of every parameter; those that `places` joins have the same."""
    spans: dict[Place, set[Span]] = defaultdict(set)
    names = set(places)
    for block in kernel.blocks:
        for instruction in kernel.instructions[block.first : block.last]:
            for place, span in _touched(kernel, block.function, instruction):
                if not span[1]:
                    continue  # of a type that nobody knows, which is refused where it is decoded
                spans[places.get(place, place)].add(span)
                names.add(place)
    pieces = {place: cut(found) for place, found in spans.items()}
    return pieces | {name: pieces.get(places.get(name, name), ()) for name in names}


def _touched(
    kernel: Kernel, function: int, instruction: Instruction
) -> Iterator[tuple[Place, Span]]:
    size = TYPE_BYTES.get(instruction.type, 0)
    for operand in instruction.operands:
        match operand:
            case Address(Symbol(name, start), offset) if instruction.space == "param":
                for element in range(instruction.vector):
                    yield (function, name), (start + offset + element * size, size)
            case CallTarget():
                yield from _passed(kernel, function, operand)


def _passed(kernel: Kernel, function: int, target: CallTarget) -> Iterator[tuple[Place, Span]]:
    """Yield what a call touches: all of a parameter that it passes a register to."""
    reached = callees(kernel, function, target)
    for callee in reached:
        formal = kernel.functions[callee].function
        pairs = ((target.arguments, formal.parameters), (target.returns, formal.returns))
        for operands, variables in pairs:
            for operand, variable in zip(operands, variables, strict=False):
                if variable.space == "param" and not isinstance(operand, Symbol):
                    yield (callee, variable.name), (0, variable.size)
    if not reached and isinstance(target.callee, Symbol):
        brought = kernel.module.functions[target.callee.name]
        pairs = ((target.arguments, brought.parameters), (target.returns, brought.returns))
        for operands, variables in pairs:
            for operand, variable in zip(operands, variables, strict=False):
                if isinstance(operand, Symbol):
                    yield (function, operand.name), (0, variable.size)


def cut(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return pieces in order so that every span is a whole number of them.

    Spans that do not overlap are pieces themselves; others are of 1, 2, 4 or 8 bytes.
    """
    whole = sorted(set(spans))
    if all(start + size <= after for (start, size), (after, _) in pairwise(whole)):
        return tuple(whole)
    borders = sorted({border for start, size in whole for border in (start, start + size)})
    pieces: list[Span] = []
    for start, end in pairwise(borders):
        if any(first <= start and end <= first + size for first, size in whole):
            pieces += _powers(start, end)
    return tuple(pieces)


def _powers(start: int, end: int) -> Iterator[Span]:
    while start < end:
        size = min(1 << (end - start).bit_length() - 1, WIDEST)
        yield start, size
        start += size


def parameter_offsets(kernel: Kernel) -> dict[str, int]:
    """Return the address of each parameter of the kernel."""
    offsets: dict[str, int] = {}
    end = 0
    for parameter in kernel.parameters:
        end = -(-end // parameter.align) * parameter.align
        offsets[parameter.name] = end
        end += parameter.size
    return offsets


def parameter_bytes(kernel: Kernel) -> int:
    """Return where the kernel's parameters end."""
    offsets = parameter_offsets(kernel)
    return max((offsets[p.name] + p.size for p in kernel.parameters), default=0)
