"""Which engine runs a launch: arrays over many warps at once, or compiled basic blocks.

Both give the same trace to the last byte. The array engine is the definition and knows every
instruction; it is quick where many warps stay together.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import CutraceError
from .launch import Sink
from .memory import LoadedModule
from .pattern import PatternTable
from .program import Program
from .wave import Wave

MakeWave: TypeAlias = Callable[[NDArray[np.int64], PatternTable, Sink], Wave]
"""Makes a wave of the thread blocks with these numbers."""


def choose_engine(program: Program, loaded: LoadedModule, blocks: int) -> MakeWave:
    """Return what makes the waves of a launch, of `blocks` thread blocks at most.

    CutraceError where the launch asks for the compiled engine and that does not know the kernel.
    """
    asked = program.launch.watch.engine
    if asked == "array" or (asked == "auto" and not _is_worth_compiling(program)):
        return _array(program)
    try:
        return _compiled(program, loaded, blocks)
    except CutraceError:
        if asked == "compiled":
            raise
        return _array(program)


def _array(program: Program) -> MakeWave:
    return lambda numbers, patterns, sink: Wave(program, numbers, patterns, sink)


def _compiled(program: Program, loaded: LoadedModule, blocks: int) -> MakeWave:
    from .compiled.code import CompiledKernel
    from .compiled.wave import CompiledWave

    warps = min(blocks, program.launch.executed) * -(-program.launch.threads // 32)
    code = CompiledKernel(program, loaded, warps)
    return lambda numbers, patterns, sink: CompiledWave(code, program, numbers, patterns, sink)


def _is_worth_compiling(program: Program) -> bool:
    return False
