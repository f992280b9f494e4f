"""Run a launch: blocks in order, a wave of them at a time, rows to the sink."""

from collections.abc import Callable, Iterator

import numpy as np

from ...errors import CutraceError, KernelFault
from ..ptx.kernel import Kernel
from .array.deadlock import Stillness
from .array.decode import prepare
from .array.program import Program, spoken_name
from .array.special_register import PLACE_REGISTERS
from .array.wave import ArrayWave
from .engine_choice import Choice, MakeWave, choose_engine
from .launch import Launch, Sink
from .memory.memory import LoadedModule, Memory
from .reuse import Reuse
from .rows.pattern import PatternTable
from .small_launch import run_briefly

WAVE_LANES = 1 << 16
"""Lanes that run together: enough to amortise NumPy's calls, few enough for the caches."""

WAVE_MEMORY = 1 << 28
"""Bytes of shared and local memory that the blocks of a wave may hold together."""

_PATTERNS = Reuse(PatternTable)
"""The dictionary of each session."""


def run(kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule, sink: Sink) -> None:
    """Execute every thread of a launch and hand its rows to `sink`.

    Raises KernelFault for what the kernel does wrong (outside its arrays, misaligned, a barrier
    that cannot complete), CutraceError for instructions that cutrace does not know.
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
    """Run all waves by the engine that was chosen; anew by another where it was not brief."""
    if choice.is_brief:
        if run_briefly(program, _waves_in_turn(program, blocks, choice, patterns), sink):
            return
        patterns.begin_launch()
        choice = choose_engine(program, blocks)
    _run_waves(program, blocks, choice.make, patterns, sink)


def _waves_in_turn(
    program: Program, blocks: int, choice: Choice, patterns: PatternTable
) -> Callable[[Sink], Iterator[ArrayWave]]:
    """Return what makes the waves of a launch, each when it is its turn."""
    launch = program.launch

    def waves(sink: Sink) -> Iterator[ArrayWave]:
        for number in range(-(-launch.executed // blocks)):
            yield choice.make(launch.wave(number, blocks), patterns, sink)

    return waves


def _run_waves(
    program: Program, blocks: int, make: MakeWave, patterns: PatternTable, sink: Sink
) -> None:
    """Run one wave after another; admit the next one early while those before only wait."""
    launch = program.launch
    waves = -(-launch.executed // blocks)
    resident: list[ArrayWave] = []
    idle = 0
    stillness = Stillness(program.memory)
    number = 0
    while number < waves or resident:
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
    """Return the dictionary of a session, empty."""
    found = _PATTERNS.of(memory)
    found.begin_launch()
    return found


def _no_progress(resident: list[ArrayWave]) -> KernelFault:
    """Return the fault of warps that wait for what nobody will do."""
    name = resident[0].program.name
    lines = sorted({line for wave in resident for line in wave.waiting_lines()})
    return KernelFault(
        f"kernel `{name}` makes no progress: every warp that can run waits in a loop at "
        + ", ".join(lines),
        "waiting",
    )


def blocks_a_wave(program: Program) -> int:
    """Return how many blocks run together, whole clusters: it depends on kernel and launch only."""
    columns = -(-program.launch.threads // 32) * 32
    held = program.shared_bytes + columns * program.local_bytes
    blocks, together = (
        min(WAVE_LANES // columns, WAVE_MEMORY // max(held, 1)),
        program.launch.blocks_a_cluster,
    )
    if program.specials.keys() & PLACE_REGISTERS:
        blocks = min(blocks, program.launch.chip.sms * program.launch.resident)
    return max(1, blocks // together) * together
