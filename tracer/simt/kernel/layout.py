"""Layout of a kernel's variables: shared, local and parameter memory, and recursion depth."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from ....base.dataclass import dataclass
from ...ptx.digraph import cycles
from ...ptx.kernel import (
    KERNELS,
    TYPE_BYTES,
    Address,
    CallTarget,
    Function,
    Instruction,
    Kernel,
    KernelKey,
    Operand,
    Symbol,
    Variable,
    key_of,
)
from .function_pointer import callees, calls

DEEPEST = 256
"""Maximum recursion depth of a lane."""

LOCAL_BYTES = 512 * 1024
"""Maximum local memory of a lane in all its recursion levels, as on every device."""


def levels_within(frame: int) -> int:
    """Return how many levels of `frame` bytes of local variables a lane may have."""
    return min(DEEPEST, max(LOCAL_BYTES // max(frame, 1), 1))


def recursive_functions(kernel: Kernel) -> frozenset[int]:
    """Return the indices of the recursive functions."""
    return _recursive(key_of(kernel))


@lru_cache(maxsize=KERNELS)
def _recursive(like: KernelKey) -> frozenset[int]:
    graph: dict[int, set[int]] = {}
    for caller, _, callee in calls(like.kernel):
        graph.setdefault(caller, set()).add(callee)
        graph.setdefault(callee, set())
    return frozenset[int]().union(*cycles(graph))


def local_bytes(kernel: Kernel) -> int:
    """Return the local memory of a thread in bytes, with all its recursion levels."""
    return local_stride(kernel) * most_levels(kernel)


def local_stride(kernel: Kernel) -> int:
    """Return the local memory of one recursion level, in bytes: a multiple of 16."""
    return -(-local_layout(kernel).size // 16) * 16


def most_levels(kernel: Kernel) -> int:
    """Return the maximum recursion depth of the kernel."""
    return levels_within(local_stride(kernel)) if recursive_functions(kernel) else 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes by (function index or -1 for the module, name), and their total.

    Open-size arrays (`extern __shared__`) start at the end of the sized ones, aligned to 16 bytes.
    In a module that declares one, the sized variables of every kernel end on its alignment (ptxas
    12.9 and 13.0; an H200's `launch__shared_mem_per_block_static` of SHOC's `vectorAddUniform4`).
    """

    offsets: dict[tuple[int, str], int]
    variables: dict[tuple[int, str], Variable]
    size: int


def shared_layout(kernel: Kernel) -> Layout:
    """Lay out the shared variables that the kernel declares or names."""
    return _shared(key_of(kernel))


def local_layout(kernel: Kernel) -> Layout:
    """Lay out the local variables of the kernel's functions: one frame per function.

    Function parameters with a taken address are laid out there, too.
    """
    return _local(key_of(kernel))


@lru_cache(maxsize=KERNELS)
def _shared(like: KernelKey) -> Layout:
    kernel = like.kernel
    named = set(_symbols(kernel.instructions))
    module = [v for v in kernel.module.variables.values() if v.space == "shared"]
    unit = max((v.align for v in module if v.is_extern), default=1)
    reached = {(-1, v.name): v for v in module if v.name in named}
    return _lay_out({**reached, **_own_variables(kernel, "shared")}, unit)


@lru_cache(maxsize=KERNELS)
def _local(like: KernelKey) -> Layout:
    kernel = like.kernel
    pointed = {
        (index, v.name): v
        for index, span in enumerate(kernel.functions)
        if index
        for v in pointed_parameters(span.function)
    }
    return _lay_out({**_own_variables(kernel, "local"), **pointed})


def pointed_parameters(function: Function) -> tuple[Variable, ...]:
    """Return the parameters that a function takes the address of: `mov.b64 %rd1, f_param_0`."""
    named = {
        operand.name
        for instruction in function.instructions
        for operand in instruction.operands
        if isinstance(operand, Symbol)
    }
    return tuple(v for v in function.parameters if v.space == "param" and v.name in named)


def _own_variables(kernel: Kernel, space: str) -> dict[tuple[int, str], Variable]:
    return {
        (index, v.name): v
        for index, span in enumerate(kernel.functions)
        for v in span.function.variables
        if v.space == space
    }


def _lay_out(variables: dict[tuple[int, str], Variable], unit: int = 1) -> Layout:
    """Place variables consecutively; the sized ones together take a multiple of `unit` bytes."""
    offsets: dict[tuple[int, str], int] = {}
    end = 0
    for key, variable in variables.items():
        if not variable.is_extern:
            end = -(-end // variable.align) * variable.align
            offsets[key] = end
            end += variable.size
    end = -(-end // unit) * unit
    align = max((v.align for v in variables.values() if v.is_extern), default=16)
    open_start = -(-end // max(align, 16)) * max(align, 16)
    for key, variable in variables.items():
        if variable.is_extern:
            offsets[key] = open_start
            end = open_start
    return Layout(offsets, variables, end)


def _symbols(instructions: Iterable[Instruction]) -> Iterable[str]:
    for instruction in instructions:
        for operand in instruction.operands:
            yield from _names(operand)


def _names(operand: Operand) -> Iterable[str]:
    match operand:
        case Symbol(name) | Address(Symbol(name)):
            yield name


Place: TypeAlias = tuple[int, str]
"""A `.param` variable: its function and name."""

Span: TypeAlias = tuple[int, int]
"""Bytes of a parameter: offset and size."""

WIDEST = 8
"""Maximum bytes of a piece."""


def parameter_pieces(
    kernel: Kernel, places: Mapping[Place, Place]
) -> Mapping[Place, tuple[Span, ...]]:
    """Return the pieces of every parameter; parameters joined by `places` have the same pieces."""
    spans: dict[Place, set[Span]] = defaultdict(set)
    names = set(places)
    for block in kernel.blocks:
        for instruction in kernel.instructions[block.first : block.last]:
            for place, span in _read_bytes(kernel, block.function, instruction):
                if not span[1]:
                    continue  # of an unknown type: the decoder refuses the instruction
                spans[places.get(place, place)].add(span)
                names.add(place)
    pieces = {place: cut(place_spans) for place, place_spans in spans.items()}
    return pieces | {name: pieces.get(places.get(name, name), ()) for name in names}


def _read_bytes(
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
    """Yield the spans that a call accesses: the whole of each parameter that it passes a
    register to.
    """
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
    """Return pieces in order, such that every span is a whole number of them.

    A span that overlaps no other is a piece itself; other pieces have 1, 2, 4 or 8 bytes.
    """
    whole = sorted(set(spans))
    if all(start + size <= after for (start, size), (after, _) in pairwise(whole)):
        return tuple(whole)
    # Cut at every border of a span, then into powers of two: each piece fits a register.
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


def parameter_offsets(kernel: Kernel | Function) -> dict[str, int]:
    """Return the address of each parameter of a kernel."""
    offsets: dict[str, int] = {}
    end = 0
    for parameter in kernel.parameters:
        end = -(-end // parameter.align) * parameter.align
        if parameter.offset is not None:
            end = parameter.offset
        offsets[parameter.name] = end
        end += parameter.size
    return offsets


@lru_cache(maxsize=KERNELS)
def argument_places(like: KernelKey) -> tuple[tuple[int, ...], int]:
    """Return the address of each parameter of a kernel in order, and their end."""
    kernel = like.kernel
    return tuple(parameter_offsets(kernel).values()), parameter_bytes(kernel)


def parameter_bytes(kernel: Kernel | Function) -> int:
    """Return the end of a kernel's parameters, in bytes."""
    offsets = parameter_offsets(kernel)
    return max((offsets[p.name] + p.size for p in kernel.parameters), default=0)
