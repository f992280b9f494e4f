"""Runs a launch: the choice of an engine, waves of thread blocks in order, and deadlock detection.

Execution is tiered: a short launch is interpreted; a hot one, or a kernel that is launched often,
is compiled. Both engines write the same trace, byte for byte. The array engine (the interpreter) is
the definition and supports every instruction; it needs no compiler, which takes longer than a short
launch runs. A launch with loops has an unknown length: it is interpreted within a budget, and if it
exceeds that, memory is restored and the launch restarted in the compiled engine.

More waves become resident only while the present ones just spin: these may wait for later blocks. A
spin loop alone is no proof of a deadlock, since warps may do all their work inside of such loops (a
tree reduction from its leaves). A launch is deadlocked if its whole state repeats: registers,
memory and SIMT stacks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault
from ..ptx.kernel import KERNELS, CallTarget, Instruction, Kernel, KernelKey, Symbol, key_of
from .access.address import place_parameters
from .interp.decode import decode, prepare
from .interp.wave import ArrayWave
from .kernel.launch import NUMBERED, Launch, NullSink, Sink
from .kernel.spin_loop import has_loops
from .memory.memory import BufferPool, LoadedModule, Memory
from .rows.pattern import PatternTable
from .warp.program import Program, spoken_name
from .warp.special_register import PLACE_REGISTERS

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
    program: Program, waves: Callable[[Sink, list[int]], Iterator[ArrayWave]], sink: Sink
) -> bool:
    """Run waves in order; if the launch is hot, restore memory and return False."""
    memory = program.memory.global_
    before = memory.used.copy()
    # Rows are buffered: a restarted launch must not have written any. A fault is final, so its rows
    # go to the sink.
    row_buffer, budget = BufferedSink(), [BRIEF]
    try:
        for wave in waves(row_buffer, budget):
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


class _BriefWave(ArrayWave):
    """A wave whose instructions also count against what is `left` of the launch's budget."""

    def __init__(
        self,
        program: Program,
        numbers: NDArray[np.int64],
        patterns: PatternTable,
        sink: Sink,
        left: list[int],
    ) -> None:
        super().__init__(program, numbers, patterns, sink)
        self._left = left
        self._granted = self.schedule.budget = min(self.schedule.budget, left[0])

    def renew_budget(self) -> int:
        """Return the instructions to run now; raise HotLaunchError if the launch's are used up."""
        more = super().renew_budget()
        self._spend()
        if self._left[0] < 0:
            raise HotLaunchError
        self._granted = min(more, self._left[0])
        return self._granted

    def _spend(self) -> None:
        self._left[0] -= self._granted - self.schedule.budget

    def _finish(self) -> None:
        super()._finish()
        self._spend()


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


FIRST_MARK, APART = 8, 4
"""The round in which the first state is saved, and the factor from each such round to the next."""

WINDOW = 64
"""The last round after a saved state in which the current state is compared with it."""

LONG = 1 << 13
"""Rounds after which unchanged memory is enough: a loop with a counter never repeats its state."""


class DeadlockDetector:
    """Detects a deadlock: all waves spin, and the state repeats.

    One round is one turn of every resident wave. States are compared by digest, so that one saved
    state costs no memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.reset()

    def reset(self) -> None:
        """Start over: a warp ran a block outside of spin loops."""
        self._round = 0
        self._mark, self._next = 0, FIRST_MARK
        self._noted = self._noted_memory = b""

    def lasts(self, resident: Sequence[ArrayWave]) -> bool:
        """Count a round; return whether the waves are deadlocked for certain."""
        self._round += 1
        # Save states ever more rarely, so that digests stay cheap however long the launch spins.
        if self._round == self._next:
            before, self._noted_memory = self._noted_memory, self._digest_of_memory(resident)
            if self._round >= LONG and before == self._noted_memory:
                return True
            self._noted = self._digest(resident)
            self._mark, self._next = self._round, APART * self._round
            return False
        since = self._round - self._mark
        if not self._mark or not APART <= since <= WINDOW:
            return False
        return self._digest(resident) == self._noted

    def _digest(self, resident: Sequence[ArrayWave]) -> bytes:
        whole = blake2b(self._digest_of_memory(resident))
        for wave in resident:
            for part in wave.state():
                whole.update(part.data)
        return whole.digest()

    def _digest_of_memory(self, resident: Sequence[ArrayWave]) -> bytes:
        memory = blake2b(self._memory.global_.used.data)
        for wave in resident:
            memory.update(wave.shared.data)
        return memory.digest()


WAVE_LANES = 1 << 16
"""Lanes of a wave: enough to amortise NumPy's calls, few enough for the caches."""

WAVE_MEMORY = 1 << 28
"""Limit of shared and local memory of a wave's blocks, in bytes."""

_PATTERNS = BufferPool(PatternTable)
"""The pattern table of each session."""


def run(kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule, sink: Sink) -> None:
    """Execute every thread of a launch, and write its rows to `sink`.

    Raises KernelFault for errors of the kernel (out of bounds, misaligned, a barrier that cannot
    complete), and CutraceError for unknown instructions.
    """
    if len(launch.arguments) != len(kernel.parameters):
        raise CutraceError(
            f"kernel `{spoken_name(kernel, launch)}` takes {len(kernel.parameters)} arguments, "
            f"{len(launch.arguments)} were given"
        )
    program = prepare(kernel, launch, memory, loaded)
    blocks = blocks_a_wave(program)
    ran = launch.options.ran
    ran.part = 0.0
    with np.errstate(all="ignore"):
        _run_blocks(program, blocks, choose_engine(program, blocks), _patterns_of(memory), sink)
    ran.launches, ran.part = ran.launches + 1, 0.0


def _run_blocks(
    program: Program, blocks: int, choice: Choice, patterns: PatternTable, sink: Sink
) -> None:
    """Run all waves; a hot launch is restarted in the compiled engine."""
    if choice.is_brief:
        if run_interpreted(program, _waves_in_turn(program, blocks, patterns), sink):
            return
        patterns.begin_launch()
        choice = choose_engine(program, blocks)
    _run_waves(program, blocks, choice.make, patterns, sink)


def _waves_in_turn(
    program: Program, blocks: int, patterns: PatternTable
) -> Callable[[Sink, list[int]], Iterator[ArrayWave]]:
    """Return a function to an iterator that makes each wave when it is needed."""
    launch = program.launch

    def waves(sink: Sink, left: list[int]) -> Iterator[ArrayWave]:
        for number in range(-(-launch.executed // blocks)):
            yield _BriefWave(program, launch.wave(number, blocks), patterns, sink, left)

    return waves


def _run_waves(
    program: Program, blocks: int, make: MakeWave, patterns: PatternTable, sink: Sink
) -> None:
    """Run waves in order; admit the next one early while all resident waves spin."""
    launch = program.launch
    waves = -(-launch.executed // blocks)
    resident: list[ArrayWave] = []
    idle = 0
    stillness = DeadlockDetector(program.memory)
    number = 0
    while number < waves or resident:
        # Every resident wave has spun for a turn: what they wait for may come from blocks not yet
        # run.
        if number < waves and idle >= len(resident):
            resident.append(make(launch.wave(number, blocks), patterns, sink))
            number += 1
            idle = 0
        wave = resident.pop(0)
        before = wave.progress
        if wave.run():
            idle = 0
            launch.options.ran.part = (number - len(resident)) / waves
        else:
            resident.append(wave)
            idle = idle + 1 if wave.progress == before else 0
        if not idle:
            stillness.reset()
        elif number >= waves and idle % len(resident) == 0 and stillness.lasts(resident):
            raise _no_progress(resident)


def _patterns_of(memory: Memory) -> PatternTable:
    """Return a session's pattern table, reset for a new launch."""
    patterns = _PATTERNS.of(memory)
    patterns.begin_launch()
    return patterns


def _no_progress(resident: list[ArrayWave]) -> KernelFault:
    """Return the fault of a deadlock."""
    name = resident[0].program.name
    lines = sorted({line for wave in resident for line in wave.waiting_lines()})
    return KernelFault(
        f"kernel `{name}` makes no progress: every warp that can run waits in a loop at "
        + ", ".join(lines),
        "waiting",
    )


def blocks_a_wave(program: Program) -> int:
    """Return the blocks per wave, whole clusters; a function of kernel and launch only."""
    columns = -(-program.launch.threads // 32) * 32
    block_bytes = program.shared_bytes + columns * program.local_bytes
    blocks, together = (
        min(WAVE_LANES // columns, WAVE_MEMORY // max(block_bytes, 1)),
        program.launch.blocks_a_cluster,
    )
    # A kernel that reads %smid sees a block's place on the chip: no more blocks than fit may run.
    if program.specials.keys() & PLACE_REGISTERS:
        blocks = min(blocks, program.launch.chip.sms * program.launch.resident)
    return max(1, blocks // together) * together
