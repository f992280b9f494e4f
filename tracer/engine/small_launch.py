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
from .launch import Sink

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
    held, left = _HeldCalls(), [BRIEF]
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


class _HeldCalls:
    """A sink that keeps what it is given, with numbers from 0, until it is handed over."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._patterns = 0
        self._paths = 0

    def _hold(self, name: str, *columns: Any) -> None:
        self._calls.append((name, columns))

    def patterns(self, active: Column, offsets: Column) -> int:
        """Hold and number patterns."""
        self._hold("patterns", active, offsets)
        first, self._patterns = self._patterns, self._patterns + len(active)
        return first

    def paths(self, lengths: Column, *columns: Column) -> int:
        """Hold and number paths."""
        self._hold("paths", lengths, *columns)
        first, self._paths = self._paths, self._paths + len(lengths)
        return first

    def accesses(self, *columns: Column) -> None:
        """Hold accesses."""
        self._hold("accesses", *columns)

    def control(self, *columns: Column) -> None:
        """Hold what warps ran."""
        self._hold("control", *columns)

    def texels(self, *columns: Any) -> None:
        """Hold texture samples."""
        self._hold("texels", *columns)

    def lanes_on(self, *columns: Column) -> None:
        """Hold sums of lanes."""
        self._hold("lanes_on", *columns)

    def outside(self, *columns: Column) -> None:
        """Hold what lanes did outside of allocations."""
        self._hold("outside", *columns)

    def hand_over(self, sink: Sink) -> None:
        """Give everything to a sink, which numbers patterns and paths of a launch likewise."""
        numbered = {"patterns": 0, "paths": 0}
        for name, columns in self._calls:
            first = getattr(sink, name)(*columns)
            if name in numbered:
                if first != numbered[name]:
                    raise AssertionError(f"{name} from {numbered[name]} on are numbered {first}")
                numbered[name] += len(columns[0])
