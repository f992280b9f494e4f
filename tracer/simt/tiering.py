"""Tiered execution: interpret a short launch; compile a hot one, or a kernel that is launched
often.

Both engines write the same trace, byte for byte. The array engine (the interpreter) is the
definition and supports every instruction; it needs no compiler, which takes longer than a short
launch runs. A launch with loops has an unknown length: it is interpreted within a budget, and if it
exceeds that, memory is restored and the launch restarted in the compiled engine.
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
from ..ptx.kernel import KERNELS, CallTarget, Instruction, KernelKey, Symbol, key_of
from .access.address import place_parameters
from .interp.decode import decode
from .interp.wave import ArrayWave
from .kernel.launch import NUMBERED, NullSink, Sink
from .kernel.spin_loop import has_loops
from .rows.pattern import PatternTable
from .warp.instruction_limit import Budget
from .warp.program import Program, Wave

MANY_LANES = 1 << 12
"""Lanes from which a launch with loops is compiled. Compiling takes some 0.1 s, once; in the array
engine a divergent loop of as few lanes takes seconds, a NumPy call per step.
"""

VERY_MANY_LANES = 1 << 18
"""Lanes from which a launch without loops is compiled."""

MANY_INSTRUCTIONS = 1 << 24
"""Instructions of all lanes from which a launch without loops is compiled: one second in the array
engine.
"""

OFTEN = 32
"""Short launches of a kernel after which it is compiled: compiling takes as long as some 30 of them
in the array engine, which decodes the kernel for each.
"""

ASIDE_A_LAUNCH = 1 << 21
"""Bytes of global memory whose backup takes as long as a short launch."""

MakeWave: TypeAlias = Callable[[NDArray[np.int64], PatternTable, Sink], ArrayWave]
"""Makes a wave of the thread blocks with these numbers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen engine, as a factory of waves.

    A launch with `is_brief` is interpreted within a budget first; if it exceeds that, the engine is
    chosen again.
    """

    make: MakeWave
    is_brief: bool = False


def choose_engine(program: Program, blocks: int) -> Choice:
    """Return the engine of a launch with at most `blocks` thread blocks per wave.

    Raises CutraceError for unknown instructions, and if the launch requires the compiled engine and
    that does not support the kernel.
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
        own = Buffers() if program.waiting else buffers  # resident at once if they spin
        return CompiledWave(code, arena_buffers, own, program, numbers, patterns, sink, escapes)

    return Choice(make)


_SPENT: Counter[KernelKey] = Counter()
"""Cost of each kernel's short launches in the array engine, in units of such launches."""


def _is_launched_often(program: Program) -> bool:
    """Count a short launch; return whether its kernel had enough of them to be compiled."""
    kernel = key_of(program.kernel)
    if len(_SPENT) > KERNELS:
        _SPENT.clear()
    if _SPENT[kernel] < OFTEN:
        # The backup of memory before a launch with loops counts as part of its cost.
        device_bytes = len(program.memory.global_.used) if has_loops(kernel) else 0
        _SPENT[kernel] += 1 + min(device_bytes, ASIDE_BYTES) // ASIDE_A_LAUNCH
        return False
    return True


def _is_worth_compiling(program: Program) -> bool:
    """Return whether the launch likely takes longer in the array engine than compiling does."""
    if was_hot(program) or _is_launched_often(program):
        return True
    # Of the whole grid: the few blocks of a sample may run long.
    lanes = program.launch.blocks * program.launch.threads
    if has_loops(key_of(program.kernel)):
        return lanes >= MANY_LANES
    instructions = len(program.kernel.instructions)
    return lanes >= VERY_MANY_LANES or lanes * instructions >= MANY_INSTRUCTIONS


Column = NDArray[Any]

BRIEF = 1 << 15
"""Instructions, each of a group of warps, after which a launch is hot: some 0.3 s."""

ASIDE_BYTES = 1 << 26
"""Maximum backup of global memory, in bytes."""

_LASTING = frozenset({"sust", "sured"})
"""Opcodes whose writes are not in the backup."""

_LONG: set[KernelKey] = set()
"""Kernels that had a hot launch."""


class HotLaunchError(Exception):
    """Raised when an interpreted launch exceeds its budget."""


def may_be_hot(program: Program) -> bool:
    """Return whether a launch has loops, and can be restarted from a backup."""
    kernel = key_of(program.kernel)
    return (
        has_loops(kernel)
        and not program.launch.options.check_uninitialized
        and len(program.memory.global_.used) <= ASIDE_BYTES
        and not _has_side_effects(kernel)
    )


def was_hot(program: Program) -> bool:
    """Return whether an earlier launch of this kernel was hot."""
    return key_of(program.kernel) in _LONG


@lru_cache(maxsize=KERNELS)
def _has_side_effects(kernel: KernelKey) -> bool:
    """Return whether a kernel has effects that cannot be undone: it prints, or stores to a
    surface.
    """
    own = {span.function.name for span in kernel.kernel.functions}
    return any(
        instruction.opcode in _LASTING or _calls_beyond(instruction, own)
        for instruction in kernel.kernel.instructions
    )


def _calls_beyond(instruction: Instruction, own: set[str]) -> bool:
    """Return whether an instruction calls a function by name that is not in the kernel."""
    targets = (o.callee for o in instruction.operands if isinstance(o, CallTarget))
    return any(isinstance(callee, Symbol) and callee.name not in own for callee in targets)


def run_interpreted(
    program: Program, waves: Callable[[Sink], Iterator[ArrayWave]], sink: Sink
) -> bool:
    """Run waves in order; if the launch is hot, restore memory and return False."""
    memory = program.memory.global_
    before = memory.used.copy()
    # Rows are buffered: a restarted launch must not have written any. A fault is final, so its rows
    # go to the sink.
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
    """An instruction budget that also counts against the launch's shared `budget`."""

    def __init__(self, limit: int, budget: list[int]) -> None:
        super().__init__(limit)
        self._of_launch = budget

    def spend(self, wave: Wave, block: int, length: int) -> None:
        """Count a basic block; raise HotLaunchError if the launch's budget is used up."""
        super().spend(wave, block, length)
        self._of_launch[0] -= length
        if self._of_launch[0] < 0:
            raise HotLaunchError


class BufferedSink(NullSink):
    """A sink that buffers rows, numbered from 0, until they are handed over."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[tuple[str, dict[str, Any], int]] = []

    def put(self, table: str, **columns: Any) -> int:
        """Buffer rows; return the first number of a dictionary's rows."""
        first = super().put(table, **columns)
        self._held.append((table, columns, first))
        return first

    def hand_over(self, sink: Sink) -> None:
        """Write all rows to a sink, which must give patterns and paths the same numbers."""
        for table, columns, first in self._held:
            first_row = sink.put(table, **columns)
            if table in NUMBERED and first_row != first:
                raise AssertionError(f"{table} from {first} on are numbered {first_row}")
