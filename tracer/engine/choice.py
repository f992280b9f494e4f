"""Which engine runs a launch: arrays over many warps at once, or compiled basic blocks.

Both give the same trace to the last byte. The array engine is the definition and knows every
instruction; it needs no compiler, which a short launch would wait for longer than it runs.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import CutraceError
from .alike import alike, has_loops
from .decode import decode
from .launch import Sink
from .memory import takes_parameter_address
from .pattern import PatternTable
from .program import Program
from .wave import Wave

MANY_LANES = 1 << 12
"""Lanes of a launch whose loops are worth compiling: that takes some 0.1 s, once, while a skewed
loop of as few lanes takes seconds where each step is a call of NumPy."""

VERY_MANY_LANES = 1 << 18
"""Lanes of a launch that is worth compiling though each runs every instruction once at most."""

MakeWave: TypeAlias = Callable[[NDArray[np.int64], PatternTable, Sink], Wave]
"""Makes a wave of the thread blocks with these numbers."""


def choose_engine(program: Program, blocks: int) -> MakeWave:
    """Return what makes the waves of a launch, of `blocks` thread blocks at most.

    CutraceError for instructions that cutrace does not know, and where the launch asks for the
    compiled engine and that does not know the kernel.
    """
    asked = program.launch.watch.engine
    if any(map(takes_parameter_address, program.kernel.instructions)):
        if asked == "compiled":
            raise CutraceError("the compiled engine knows no generic address of a parameter")
        return _array(program)
    if asked == "array" or (asked == "auto" and not _is_worth_compiling(program)):
        return _array(program)
    try:
        return _compiled(program, blocks)
    except CutraceError:
        if asked == "compiled":
            raise
        return _array(program)


def _array(program: Program) -> MakeWave:
    decode(program)
    return lambda numbers, patterns, sink: Wave(program, numbers, patterns, sink)


def _compiled(program: Program, blocks: int) -> MakeWave:
    from .compiled.code import buffers_of, compile_kernel, refuse_launch
    from .compiled.wave import CompiledWave

    refuse_launch(program)
    code = compile_kernel(program)
    code.refuse_large(min(blocks, program.launch.executed) * -(-program.launch.threads // 32))
    buffers = buffers_of(program.memory)
    return lambda numbers, patterns, sink: CompiledWave(
        code, buffers, program, numbers, patterns, sink
    )


def _is_worth_compiling(program: Program) -> bool:
    """Whether the launch is likely to take longer in the array engine than compiling does."""
    lanes = program.launch.blocks * program.launch.threads  # a sample's few blocks may run long
    return lanes >= (MANY_LANES if has_loops(alike(program.kernel)) else VERY_MANY_LANES)
