"""Small launches: run by the array engine until that takes long, then compiled and run anew.

How often its loops go round nobody knows before. Its rows are held and global memory is put aside,
so that the compiled engine can begin anew; kernels that took long are remembered.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from ...errors import KernelFault
from ..ptx.kernel import CallTarget, Instruction, Symbol
from .array.instruction_limit import Budget
from .array.program import Program, Wave
from .array.wave import ArrayWave
from .kernel.same_kernel import KERNELS, Alike, alike, has_loops
from .launch import NUMBERED, Nowhere, Sink

Column = NDArray[Any]

BRIEF = 1 << 15
"""Instructions, each of some warps together, after which a launch is not brief: some 0.3 s."""

ASIDE_BYTES = 1 << 26
"""Bytes of global memory that are put aside at most."""

_LASTING = frozenset({"sust", "sured"})
"""Opcodes that write what is not put aside."""

_LONG: set[Alike] = set()
"""Kernels that took long."""


class LongError(Exception):
    """A launch is not brief."""


def may_be_long(program: Program) -> bool:
    """Whether a launch that seems short may turn out long, and can be begun anew."""
    kernel = alike(program.kernel)
    return (
        has_loops(kernel)
        and not program.launch.options.check_uninitialized
        and len(program.memory.global_.used) <= ASIDE_BYTES
        and not _tells(kernel)
    )


def was_long(program: Program) -> bool:
    """Whether another launch of this kernel took long."""
    return alike(program.kernel) in _LONG


@lru_cache(maxsize=KERNELS)
def _tells(kernel: Alike) -> bool:
    """Whether a kernel does what cannot be taken back: it prints, or stores to a surface."""
    own = {span.function.name for span in kernel.kernel.functions}
    return any(
        instruction.opcode in _LASTING or _calls_beyond(instruction, own)
        for instruction in kernel.kernel.instructions
    )


def _calls_beyond(instruction: Instruction, own: set[str]) -> bool:
    """Whether an instruction calls a function by name that is none of the kernel's own."""
    targets = (o.callee for o in instruction.operands if isinstance(o, CallTarget))
    return any(isinstance(callee, Symbol) and callee.name not in own for callee in targets)


def run_briefly(program: Program, waves: Callable[[Sink], Iterator[ArrayWave]], sink: Sink) -> bool:
    """Run waves one after the other; False if that takes long, with memory as it was before."""
    memory = program.memory.global_
    before = memory.used.copy()
    held, left = _HeldRows(), [BRIEF]
    try:
        for wave in waves(held):
            wave.take_budget(_Brief(program.launch.options.max_instructions, left))
            if not wave.run():
                raise LongError
    except LongError:
        memory.used[:] = before
        _LONG.add(alike(program.kernel))
        return False
    except KernelFault:
        held.hand_over(sink)
        raise
    held.hand_over(sink)
    return True


class _Brief(Budget):
    """The budget of a wave of a launch that has so many instructions `left`."""

    def __init__(self, limit: int, left: list[int]) -> None:
        super().__init__(limit)
        self._of_launch = left

    def spend(self, wave: Wave, block: int, length: int) -> None:
        """Count a basic block; LongError if the launch is not brief."""
        super().spend(wave, block, length)
        self._of_launch[0] -= length
        if self._of_launch[0] < 0:
            raise LongError


class _HeldRows(Nowhere):
    """A sink that keeps what it is given, with numbers from 0, until it is handed over."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[tuple[str, dict[str, Any], int]] = []

    def put(self, table: str, **columns: Any) -> int:
        """Hold rows; number those of a dictionary."""
        first = super().put(table, **columns)
        self._held.append((table, columns, first))
        return first

    def hand_over(self, sink: Sink) -> None:
        """Give everything to a sink, which numbers patterns and paths of a launch likewise."""
        for table, columns, first in self._held:
            given = sink.put(table, **columns)
            if table in NUMBERED and given != first:
                raise AssertionError(f"{table} from {first} on are numbered {given}")
