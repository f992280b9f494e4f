"""The registers that recursive calls save, and their places in a level of the stack.

Lanes of a warp may reach the same level of recursion through different calls. What one lane saves
must therefore never overlap what another lane saves by another call: a level has one part per size
of a register, with the same layout for all calls.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from ....base.dataclass import dataclass
from ...ptx.kernel import KERNELS, TYPE_BYTES, BasicBlock, CallTarget, Kernel, KernelKey, Register
from ..kernel.function_pointer import callees
from ..kernel.layout import levels_within, local_stride
from ..kernel.passing import Passing, Piece
from ..ops.lanes import LANES
from .control_flow import is_inner_call

Key: TypeAlias = "tuple[int, str] | Piece"
"""A register, (function, name), or a piece of a parameter."""


@dataclass(frozen=True, slots=True)
class Spill:
    """A register that a call saves, its bytes, and the place of its 32 lanes in a level."""

    key: Key
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Spills:
    """The registers that each recursive call saves, by the block after it, the bytes of a level per
    warp, and the most levels."""

    after: Mapping[int, tuple[Spill, ...]]
    level_bytes: int
    most_levels: int


@lru_cache(maxsize=KERNELS)
def spills_of(like: KernelKey) -> Spills:
    """Return what the recursive calls of a kernel save."""
    kernel, passing = like.kernel, Passing(like.kernel)
    sizes: dict[int, list[tuple[Key, int]]] = {}
    for block in kernel.blocks if passing.recursive else ():
        target = _recursive_call(kernel, block, passing)
        if target is not None:
            sizes[block.successors[0]] = [*_live(kernel, block, target, passing)]
    most: Counter[int] = Counter()
    for registers in sizes.values():
        most |= Counter(size for _, size in registers)
    begins: dict[int, int] = {}
    level_bytes = 0
    for size in sorted(most, reverse=True):
        begins[size] = level_bytes
        level_bytes += LANES * size * most[size]
    after = {block: tuple(_lay_out(registers, begins)) for block, registers in sizes.items()}
    return Spills(after, level_bytes, levels_within(local_stride(kernel)) - 1)


def _lay_out(registers: Iterable[tuple[Key, int]], begins: Mapping[int, int]) -> Iterator[Spill]:
    """Yield registers with their places in a level, each in the part for its size."""
    ends = dict(begins)
    for key, size in registers:
        yield Spill(key, size, ends[size])
        ends[size] += LANES * size


def _recursive_call(kernel: Kernel, block: BasicBlock, passing: Passing) -> CallTarget | None:
    """Return the call that ends a block if it may be recursive, and returns."""
    instruction = kernel.instructions[block.last - 1]
    if block.function not in passing.recursive or not block.successors:
        return None
    if instruction.opcode != "call" or not is_inner_call(kernel, block, instruction):
        return None
    target = next(o for o in instruction.operands if isinstance(o, CallTarget))
    again = passing.recursive & set(callees(kernel, block.function, target))
    return target if again else None


def _live(
    kernel: Kernel, block: BasicBlock, target: CallTarget, passing: Passing
) -> Iterator[tuple[Key, int]]:
    """Yield what a recursive call must save, except its results: the registers that are live after
    it, and the parameters of the calling function."""
    results = {r.name for r in target.returns if isinstance(r, Register)}
    for function, name in sorted(kernel.live_in[block.successors[0]]):
        if name not in results:
            kind = kernel.functions[function].function.registers[name]
            yield (function, name), TYPE_BYTES[kind]
    own = kernel.functions[block.function].function
    pieces = {
        (*place, *span)
        for variable in (*own.returns, *own.parameters)
        if variable.space == "param"
        for place in [passing.place(block.function, variable.name)]
        for span in passing.spans(place)
    }
    for piece in sorted(pieces):
        yield piece, piece[3]
