"""Runs a launch: waves of thread blocks in order, and deadlock detection.

More waves become resident only while the present ones just spin: these may wait for later blocks. A
spin loop alone is no proof of a deadlock, since warps may do all their work inside of such loops (a
tree reduction from its leaves). A launch is deadlocked if its whole state repeats: registers,
memory and SIMT stacks.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from ...base import progress
from ...base.errors import KernelFault
from .kernel.launch import Sink
from .memory.memory import BufferPool, Memory
from .rows.buffers import Buffers
from .rows.pattern import PatternTable
from .tier import LaunchTier
from .warp.instruction_set import InstructionSet
from .wave import Wave, buffers_of

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

    def lasts(self, resident: Sequence[Wave]) -> bool:
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

    def _digest(self, resident: Sequence[Wave]) -> bytes:
        whole = blake2b(self._digest_of_memory(resident))
        for wave in resident:
            for part in wave.state():
                whole.update(part.data)
        return whole.digest()

    def _digest_of_memory(self, resident: Sequence[Wave]) -> bytes:
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


def run(code: InstructionSet, sink: Sink) -> None:
    """Execute every thread of a launch, and write its rows to `sink`.

    Raises KernelFault for errors of the kernel (out of bounds, misaligned, a barrier that cannot
    complete), and CutraceError for unknown instructions.
    """
    ran = progress.run_progress()
    ran.part = 0.0
    with np.errstate(all="ignore"):
        _run_waves(code, _patterns_of(code.program.memory), sink, ran)
    ran.launches, ran.part = ran.launches + 1, 0.0


def _run_waves(
    code: InstructionSet, patterns: PatternTable, sink: Sink, ran: progress.RunProgress
) -> None:
    """Run waves in order; admit the next one early while all resident waves spin."""
    program, launch, blocks = code.program, code.program.launch, blocks_a_wave(code)
    tier = LaunchTier(code, min(blocks, launch.executed))
    waves = -(-launch.executed // blocks)
    resident: list[Wave] = []
    idle = 0
    stillness = DeadlockDetector(program.memory)
    number = 0
    while number < waves or resident:
        # Every resident wave has spun for a turn: what they wait for may come from blocks not yet
        # run.
        if number < waves and idle >= len(resident):
            own = Buffers() if code.flow.waiting else buffers_of(program.memory)
            numbers = launch.wave(number, blocks)
            resident.append(Wave(code, numbers, patterns, sink, tier, own))
            number += 1
            idle = 0
        wave = resident.pop(0)
        before = wave.progress
        if wave.run():
            idle = 0
            ran.part = (number - len(resident)) / waves
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


def _no_progress(resident: list[Wave]) -> KernelFault:
    """Return the fault of a deadlock."""
    name = resident[0].program.name
    lines = sorted({line for wave in resident for line in wave.waiting_lines()})
    return KernelFault(
        f"kernel `{name}` makes no progress: every warp that can run waits in a loop at "
        + ", ".join(lines),
        "waiting",
    )


def blocks_a_wave(code: InstructionSet) -> int:
    """Return the blocks per wave, whole clusters; a function of kernel and launch only."""
    program = code.program
    columns = -(-program.launch.threads // 32) * 32
    block_bytes = program.shared_bytes + columns * program.local_bytes
    blocks, together = (
        min(WAVE_LANES // columns, WAVE_MEMORY // max(block_bytes, 1)),
        program.launch.blocks_a_cluster,
    )
    # Such a kernel sees a block's place on the chip: no more blocks than fit may run.
    if code.traits.reads_place:
        blocks = min(blocks, program.launch.chip.sms * program.launch.resident)
    return max(1, blocks // together) * together
