"""Run a launch: blocks in order, a wave of them at a time, rows to the sink."""

import numpy as np

from ...errors import CutraceError
from ..ptx.kernel import Kernel
from .decode import decode
from .launch import Launch, Sink
from .memory import LoadedModule, Memory
from .pattern import PatternTable
from .program import Program
from .wave import Wave

WAVE_LANES = 1 << 16
"""Lanes that run together: enough to amortise NumPy's calls, few enough for the caches."""

WAVE_MEMORY = 1 << 28
"""Bytes of shared and local memory that the blocks of a wave may hold together."""


def run(kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule, sink: Sink) -> None:
    """Execute every thread of a launch and hand its rows to `sink`.

    Raises KernelFault for what the kernel does wrong (outside its arrays, misaligned, a barrier
    that cannot complete), CutraceError for instructions that cutrace does not know.
    """
    if len(launch.arguments) != len(kernel.parameters):
        raise CutraceError(
            f"kernel `{kernel.name}` takes {len(kernel.parameters)} arguments, "
            f"{len(launch.arguments)} were given"
        )
    program = decode(kernel, launch, memory, loaded)
    patterns = PatternTable()
    blocks = blocks_a_wave(program)
    with np.errstate(all="ignore"):
        for first in range(0, launch.blocks, blocks):
            Wave(program, first, min(blocks, launch.blocks - first), patterns, sink).run()


def blocks_a_wave(program: Program) -> int:
    """Return how many blocks run together: it depends on kernel and launch only."""
    columns = -(-program.launch.threads // 32) * 32
    held = program.shared_bytes + columns * program.local_bytes
    return max(1, min(WAVE_LANES // columns, WAVE_MEMORY // max(held, 1)))
