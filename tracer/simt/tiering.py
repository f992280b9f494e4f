"""Which engine runs a launch: arrays over many warps at once, or compiled basic blocks.

Both give the same trace to the last byte. The array engine is the definition and knows every
instruction; it needs no compiler, which a short launch would wait for longer than it runs.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault
from ..ptx.kernel import CallTarget, Instruction, Symbol
from .access.address import place_parameters
from .interp.decode import decode
from .interp.wave import ArrayWave
from .kernel.kernel_key import KERNELS, KernelKey, has_loops, key_of
from .kernel.launch import NUMBERED, NullSink, Sink
from .rows.pattern import PatternTable
from .warp.instruction_limit import Budget
from .warp.program import Program, Wave

MANY_LANES = 1 << 12
"""Lanes of a launch whose loops are worth compiling: that takes some 0.1 s, once, while a skewed
loop of as few lanes takes seconds where each step is a call of NumPy."""

VERY_MANY_LANES = 1 << 18
"""Lanes of a launch that is worth compiling though each runs every instruction once at most."""

MANY_INSTRUCTIONS = 1 << 24
"""Instructions of all lanes of such a launch that are worth compiling: the array engine takes a
second for them."""

OFTEN = 32
"""Launches of a kernel after which it is compiled, however short they are: compiling takes as long
as some 30 of them take in the array engine, which decodes the kernel for each."""

ASIDE_A_LAUNCH = 1 << 21
"""Bytes of global memory that take as long to put aside as a short launch takes to run."""

MakeWave: TypeAlias = Callable[[NDArray[np.int64], PatternTable, Sink], ArrayWave]
"""Makes a wave of the thread blocks with these numbers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine: it makes waves.

    A launch that `is_brief` runs by small_launch.py's rules first: if it was not, it is chosen for
    again.
    """

    make: MakeWave
    is_brief: bool = False


def choose_engine(program: Program, blocks: int) -> Choice:
    """Return what makes the waves of a launch, of `blocks` thread blocks at most.

    CutraceError for instructions that cutrace does not know, and where the launch asks for the
    compiled engine and that does not know the kernel.
    """
    engine = program.launch.options.engine
    if engine == "array":
        return _array(program)
    if engine == "auto" and not _is_worth_compiling(program):
        return replace(_array(program), is_brief=may_be_hot(program))
    try:
        return _compiled(program, blocks)
    except CutraceError:
        if engine == "compiled":
            raise
        return _array(program)


def _array(program: Program) -> Choice:
    decode(program)
    return Choice(lambda numbers, patterns, sink: ArrayWave(program, numbers, patterns, sink))


def _compiled(program: Program, blocks: int) -> Choice:
    from .codegen.compiled_kernel import Buffers, buffers_of, compile_kernel, refuse_launch
    from .codegen.fallback import Fallbacks
    from .codegen.wave import CompiledWave
    from .codegen.wave_state import state_pool_of

    refuse_launch(program)
    code = compile_kernel(program)
    code.refuse_large(min(blocks, program.launch.executed) * -(-program.launch.threads // 32))
    buffers, arena_buffers = buffers_of(program.memory), state_pool_of(program.memory)
    escapes = Fallbacks(program, code.made)
    place_parameters(program)

    def make(numbers: NDArray[np.int64], patterns: PatternTable, sink: Sink) -> CompiledWave:
        own = Buffers() if program.waiting else buffers  # waves that wait are there at once
        return CompiledWave(code, arena_buffers, own, program, numbers, patterns, sink, escapes)

    return Choice(make)


_SPENT: Counter[KernelKey] = Counter()
"""What the array engine spent on the short launches of each kernel, in such launches."""


def _is_launched_often(program: Program) -> bool:
    """Count a short launch; whether there were so many of its kernel that it is compiled."""
    kernel = key_of(program.kernel)
    if len(_SPENT) > KERNELS:
        _SPENT.clear()
    if _SPENT[kernel] < OFTEN:
        device_bytes = len(program.memory.global_.used) if has_loops(kernel) else 0
        _SPENT[kernel] += 1 + min(device_bytes, ASIDE_BYTES) // ASIDE_A_LAUNCH
        return False
    return True


def _is_worth_compiling(program: Program) -> bool:
    """Whether the launch is likely to take longer in the array engine than compiling does."""
    if was_hot(program) or _is_launched_often(program):
        return True
    lanes = program.launch.blocks * program.launch.threads  # a sample's few blocks may run long
    if has_loops(key_of(program.kernel)):
        return lanes >= MANY_LANES
    instructions = len(program.kernel.instructions)
    return lanes >= VERY_MANY_LANES or lanes * instructions >= MANY_INSTRUCTIONS


Column = NDArray[Any]

BRIEF = 1 << 15
"""Instructions, each of some warps together, after which a launch is not brief: some 0.3 s."""

ASIDE_BYTES = 1 << 26
"""Bytes of global memory that are put aside at most."""

_LASTING = frozenset({"sust", "sured"})
"""Opcodes that write what is not put aside."""

_LONG: set[KernelKey] = set()
"""Kernels that took long."""


class HotLaunchError(Exception):
    """A launch is not brief."""


def may_be_hot(program: Program) -> bool:
    """Whether a launch that seems short may turn out long, and can be begun anew."""
    kernel = key_of(program.kernel)
    return (
        has_loops(kernel)
        and not program.launch.options.check_uninitialized
        and len(program.memory.global_.used) <= ASIDE_BYTES
        and not _has_side_effects(kernel)
    )


def was_hot(program: Program) -> bool:
    """Whether another launch of this kernel took long."""
    return key_of(program.kernel) in _LONG


@lru_cache(maxsize=KERNELS)
def _has_side_effects(kernel: KernelKey) -> bool:
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


def run_interpreted(
    program: Program, waves: Callable[[Sink], Iterator[ArrayWave]], sink: Sink
) -> bool:
    """Run waves one after the other; False if that takes long, with memory as it was before."""
    memory = program.memory.global_
    before = memory.used.copy()
    row_buffer, budget = BufferedSink(), [BRIEF]
    try:
        for wave in waves(row_buffer):
            wave.take_budget(_Brief(program.launch.options.max_instructions, budget))
            if not wave.run():
                raise HotLaunchError
    except HotLaunchError:
        memory.used[:] = before
        _LONG.add(key_of(program.kernel))
        return False
    except KernelFault:
        row_buffer.hand_over(sink)
        raise
    row_buffer.hand_over(sink)
    return True


class _Brief(Budget):
    """The budget of a wave of a launch that has so many instructions `left`."""

    def __init__(self, limit: int, budget: list[int]) -> None:
        super().__init__(limit)
        self._of_launch = budget

    def spend(self, wave: Wave, block: int, length: int) -> None:
        """Count a basic block; LongError if the launch is not brief."""
        super().spend(wave, block, length)
        self._of_launch[0] -= length
        if self._of_launch[0] < 0:
            raise HotLaunchError


class BufferedSink(NullSink):
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
            first_row = sink.put(table, **columns)
            if table in NUMBERED and first_row != first:
                raise AssertionError(f"{table} from {first} on are numbered {first_row}")
