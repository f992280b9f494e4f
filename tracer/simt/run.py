"""Runs a launch: waves of thread blocks in order, and deadlock detection.

More waves become resident only while the present ones just spin: these may wait for later blocks. A
spin loop alone is no proof of a deadlock, since warps may do all their work inside of such loops (a
tree reduction from its leaves). A launch is deadlocked if its whole state repeats: registers,
memory and SIMT stacks.
"""

from collections.abc import Sequence
from hashlib import blake2b
from math import ceil
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

from ...base import progress
from ...base.errors import KernelFault
from .access.reach import NOTE
from .kernel.launch import Launch, NullSink, Sink
from .memory.memory import Memory
from .parallel import Work, run_on_threads
from .tier import LaunchTier
from .warp.instruction_set import InstructionSet
from .wave import Wave, WaveMaker, WavePools, pools_of

FIRST_MARK, APART = 8, 4
"""The round in which the first state is saved, and the factor from each such round to the next."""

WINDOW = 64
"""The last round after a saved state in which the current state is compared with it."""

LONG = 1 << 13
"""Rounds after which unchanged memory is enough: a loop with a counter never repeats its state."""


LEAP, LONGEST_LEAP = 1 << 20, 1 << 31
"""Cycles that pass in a round in which all warps wait, twice as many in each next one: a loop with
a time limit ends by it."""


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
"""Limit of shared and local memory of a wave's blocks, and of its warps' buffers, in bytes."""

ACCESS_BYTES = 24 + 8 * 32
"""Bytes of these buffers for each memory access of a basic block: a row, and a value of 8 bytes per
lane. Unrolled loops have thousands of accesses, and machine code refuses larger buffers."""

LONG_LAUNCH = 2
"""Full waves beyond which a launch is long. Its first wave tells how long a block runs, and where
it stores; the others may run on threads."""

FIRST_PART = 64
"""The first wave of a kernel with loops is this part of its launch."""

MANY_THREADS = 1 << 15
"""Threads from which on a launch of one wave of a kernel with loops may be long. One of two waves
may as well be short, as a level of a search is: a third wave would take a tenth of its time."""

TOLD, TELL_SECONDS = 16, 0.1
"""One thread tells how far it is after so many waves at most, fewer if they take longer."""

WAVE_STEPS = 1 << 16
"""Instructions of warps that later waves have, at least: some milliseconds."""

MANY_WAVES = 64
"""Waves that are enough for any number of threads."""


def run(code: InstructionSet, sink: Sink) -> None:
    """Execute every thread of a launch, and write its rows to `sink`.

    Raises KernelFault for errors of the kernel (out of bounds, misaligned, a barrier that cannot
    complete), and CutraceError for unknown instructions.
    """
    ran = progress.run_progress()
    ran.part = 0.0
    launch, blocks = code.program.launch, blocks_a_wave(code)
    pools = pools_of(code.program.memory)
    tier = LaunchTier(code, min(blocks, launch.executed))
    with np.errstate(all="ignore"):
        if _may_run_apart(code, blocks):
            _run_apart(code, blocks, tier, pools, sink, ran)
        else:
            _run_in_order(code, cut(launch, 0, blocks), 0, tier, pools, sink, ran)
    ran.launches, ran.part = ran.launches + 1, 0.0


def _run_apart(
    code: InstructionSet, blocks: int, tier: LaunchTier, pools: WavePools, sink: Sink,
    ran: progress.RunProgress,
) -> None:  # fmt: skip
    """Run a first wave of `blocks` blocks, and the others on threads if their stores allow it."""
    program, launch = code.program, code.program.launch
    arenas = program.memory.global_, program.memory.const, program.memory.surface
    stored = np.zeros(sum(len(arena.allocations) for arena in arenas), np.int32)
    jobs = launch.options.threads
    maker = WaveMaker(code, pools, tier, NOTE, stored if jobs > 1 else None)
    begin = _first_blocks(code, blocks)
    first = maker.make(launch.numbers(0, begin), sink)
    is_compiled = tier.is_compiled
    first.run()
    first.release()
    waves = cut(launch, begin, _blocks_for(code, blocks, first.steps / begin))

    def tell(written: int) -> None:
        ran.part = (begin + sum(map(len, waves[:written]))) / launch.executed

    tell(0)
    written, jobs = 0, min(jobs, len(waves) - 1)
    if is_compiled and jobs > 1:
        one, start = maker.make(waves[0], sink), thread_time()  # by now the arrays have pages
        one.run()
        one.release()
        begin, waves = begin + len(waves[0]), waves[1:]
        tell(0)
        work = Work((thread_time() - start) * len(waves), one.rows.accesses.taken)
        written = run_on_threads(code, waves, tier, stored, jobs, work, pools.patterns, sink, tell)
        if written < len(waves):  # memory is as before: run them again, whose rows are written
            again = WaveMaker(code, pools_of(program.memory, 1), tier)
            again.run(waves[:written], NullSink())
    maker = WaveMaker(code, pools, tier)
    many = 1
    while written < len(waves):
        begun = perf_counter()
        maker.run(waves[written : written + many], sink)
        written = min(written + many, len(waves))
        tell(written)
        many = max(1, min(TOLD, int(many * TELL_SECONDS / (perf_counter() - begun))))
    maker.close()


def cut(launch: Launch, first: int, blocks: int) -> list[NDArray[np.int64]]:
    """Return the grid numbers of the blocks from `first` on, `blocks` per wave."""
    return [
        launch.numbers(each, min(blocks, launch.executed - each))
        for each in range(first, launch.executed, blocks)
    ]


def _may_run_apart(code: InstructionSet, blocks: int) -> bool:
    """Return whether a launch is long, and its blocks do not depend on one another by its code."""
    launch, traits = code.program.launch, code.traits
    if traits.moves is None or code.flow.waiting or launch.blocks_a_cluster > 1:
        return False
    if launch.options.check_uninitialized:
        return False
    many = launch.executed * launch.threads >= MANY_THREADS and launch.executed >= FIRST_PART
    may_last = traits.has_loops and launch.executed <= blocks and many
    return launch.executed > LONG_LAUNCH * blocks or may_last


def _first_blocks(code: InstructionSet, blocks: int) -> int:
    """Return the blocks of the first wave: few of a kernel with loops, which may run long."""
    return (
        min(blocks, -(-code.program.launch.executed // FIRST_PART))
        if code.traits.has_loops
        else blocks
    )


def _blocks_for(code: InstructionSet, blocks: int, steps: float) -> int:
    """Return the blocks of later waves; one of the first ran `steps` instructions of warps."""
    fewest = ceil(WAVE_STEPS / max(steps, 1))
    return min(blocks, max(fewest, -(-code.program.launch.executed // MANY_WAVES)))


def _run_in_order(
    code: InstructionSet, waves: Sequence[NDArray[np.int64]], done: int, tier: LaunchTier,
    pools: WavePools, sink: Sink, ran: progress.RunProgress,
) -> None:  # fmt: skip
    """Run waves in order; admit the next one early while all resident waves spin.

    `done` blocks of the launch have run before.
    """
    resident: list[Wave] = []
    maker = WaveMaker(code, pools, tier)
    idle, leap = 0, LEAP
    stillness = DeadlockDetector(code.program.memory)
    number = 0
    while number < len(waves) or resident:
        # Every resident wave has spun for a turn: what they wait for may come from blocks not yet
        # run.
        if number < len(waves) and idle >= len(resident):
            resident.append(maker.make(waves[number], sink))
            number += 1
            idle = 0
        wave = resident.pop(0)
        before = wave.progress
        if wave.run():
            maker.end(wave)
            idle = 0
            done += wave.blocks
            ran.part = done / code.program.launch.executed
        else:
            resident.append(wave)
            idle = idle + 1 if wave.progress == before else 0
        if not idle:
            stillness.reset()
            leap = LEAP
        elif number >= len(waves) and idle % len(resident) == 0:
            if stillness.lasts(resident):
                raise _no_progress(resident)
            for each in resident:
                each.pass_time(leap)
            leap = min(2 * leap, LONGEST_LEAP)
    maker.close()


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
    buffer_bytes = columns // 32 * ACCESS_BYTES * code.traits.accesses
    blocks, together = (
        min(WAVE_LANES // columns, WAVE_MEMORY // max(block_bytes, buffer_bytes, 1)),
        program.launch.blocks_a_cluster,
    )
    # Such a kernel sees a block's place on the chip: no more blocks than fit may run.
    if code.traits.reads_place:
        blocks = min(blocks, program.launch.chip.sms * program.launch.resident)
    return max(1, blocks // together) * together
