"""Where the variables of a kernel lie in a block's shared and a thread's local memory."""

from collections.abc import Iterable
from functools import lru_cache

from ....lazy_dataclass import dataclass
from ...ptx.kernel import Address, Function, Instruction, Kernel, Operand, Symbol, Variable
from .same_kernel import KERNELS, Alike, alike


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes by (function index or -1 for the module, name), and their total.

    Open-size arrays (`extern __shared__`) start where the sized ones end, on 16 bytes. A module
    that declares one has the sized variables of all its kernels end on its alignment (ptxas 12.9
    and 13.0; an H200's `launch__shared_mem_per_block_static` of SHOC's `vectorAddUniform4`).
    """

    offsets: dict[tuple[int, str], int]
    variables: dict[tuple[int, str], Variable]
    size: int


def shared_layout(kernel: Kernel) -> Layout:
    """Lay out the shared variables that the kernel declares or names."""
    return _shared(alike(kernel))


def local_layout(kernel: Kernel) -> Layout:
    """Lay out the local variables of the kernel's functions: one frame for each function.

    A parameter of a function whose address is taken lies there too.
    """
    return _local(alike(kernel))


@lru_cache(maxsize=KERNELS)
def _shared(like: Alike) -> Layout:
    kernel = like.kernel
    named = set(_symbols(kernel.instructions))
    module = [v for v in kernel.module.variables.values() if v.space == "shared"]
    unit = max((v.align for v in module if v.is_extern), default=1)
    reached = {(-1, v.name): v for v in module if v.name in named}
    return _lay_out({**reached, **_own_variables(kernel, "shared")}, unit)


@lru_cache(maxsize=KERNELS)
def _local(like: Alike) -> Layout:
    kernel = like.kernel
    pointed = {
        (index, v.name): v
        for index, span in enumerate(kernel.functions)
        if index
        for v in pointed_parameters(span.function)
    }
    return _lay_out({**_own_variables(kernel, "local"), **pointed})


def pointed_parameters(function: Function) -> tuple[Variable, ...]:
    """Return the parameters of a function whose addresses it takes: `mov.b64 %rd1, f_param_0`."""
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
    """One after the other; the sized ones together take a multiple of `unit` bytes."""
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
