"""Which engine runs a launch: arrays over many warps at once, or compiled basic blocks.

Both give the same trace to the last byte. The array engine is the definition and knows every
instruction; it needs no compiler, which a short launch would wait for longer than it runs.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from .array.decode import decode
from .array.program import Program
from .array.wave import ArrayWave
from .kernel.same_kernel import KERNELS, Alike, alike, has_loops
from .launch import Sink
from .memory.parameter import place_parameters
from .rows.pattern import PatternTable
from .small_launch import ASIDE_BYTES, may_be_long, was_long

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
    asked = program.launch.options.engine
    if asked == "array":
        return _array(program)
    if asked == "auto" and not _is_worth_compiling(program):
        return replace(_array(program), is_brief=may_be_long(program))
    try:
        return _compiled(program, blocks)
    except CutraceError:
        if asked == "compiled":
            raise
        return _array(program)


def _array(program: Program) -> Choice:
    decode(program)
    return Choice(lambda numbers, patterns, sink: ArrayWave(program, numbers, patterns, sink))


def _compiled(program: Program, blocks: int) -> Choice:
    from .compiled.compiled_kernel import Buffers, buffers_of, compile_kernel, refuse_launch
    from .compiled.escape import Escapes
    from .compiled.machine_room import rooms_of
    from .compiled.wave import CompiledWave

    refuse_launch(program)
    code = compile_kernel(program)
    code.refuse_large(min(blocks, program.launch.executed) * -(-program.launch.threads // 32))
    buffers, rooms = buffers_of(program.memory), rooms_of(program.memory)
    escapes = Escapes(program, code.made)
    place_parameters(program)

    def make(numbers: NDArray[np.int64], patterns: PatternTable, sink: Sink) -> CompiledWave:
        own = Buffers() if program.waiting else buffers  # waves that wait are there at once
        return CompiledWave(code, rooms, own, program, numbers, patterns, sink, escapes)

    return Choice(make)


_SPENT: Counter[Alike] = Counter()
"""What the array engine spent on the short launches of each kernel, in such launches."""


def _is_launched_often(program: Program) -> bool:
    """Count a short launch; whether there were so many of its kernel that it is compiled."""
    kernel = alike(program.kernel)
    if len(_SPENT) > KERNELS:
        _SPENT.clear()
    if _SPENT[kernel] < OFTEN:
        aside = len(program.memory.global_.used) if has_loops(kernel) else 0
        _SPENT[kernel] += 1 + min(aside, ASIDE_BYTES) // ASIDE_A_LAUNCH
        return False
    return True


def _is_worth_compiling(program: Program) -> bool:
    """Whether the launch is likely to take longer in the array engine than compiling does."""
    if was_long(program) or _is_launched_often(program):
        return True
    lanes = program.launch.blocks * program.launch.threads  # a sample's few blocks may run long
    if has_loops(alike(program.kernel)):
        return lanes >= MANY_LANES
    instructions = len(program.kernel.instructions)
    return lanes >= VERY_MANY_LANES or lanes * instructions >= MANY_INSTRUCTIONS
