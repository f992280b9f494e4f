"""Calls: parameter accesses by byte, and the runtime functions: printf, assert, malloc.

A `.param` variable of a call and the callee's own parameter share one place, so that a call copies
nothing. Lanes of different call sites do not interfere, since every write is masked by its lanes.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ....base.errors import KernelFault
from ...ptx.kernel import CallTarget, Instruction
from ..access.bounds import name_lane
from ..decode.decoder import Decoder, StepTable
from ..kernel.passing import parameter_moves
from ..memory.device_runtime import Heap
from ..ops.lanes import DTYPES, Array
from ..warp.program import Group, Step
from .argument_passing import move_step
from .device_launch import argument_words, by_lane, lane_words, store_result
from .device_launch import make_step as make_launch_step
from .printf import print_lanes, string_at


def _parameter(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Decode an access of a parameter by name."""
    if instruction.space != "param":
        return None
    moves = parameter_moves(decoder.passing, decoder.function, instruction, decoder.refuse)
    steps = [move_step(decoder, move) for move in moves]

    def move_all(group: Group) -> None:
        for step in steps:
            step(group)

    return steps[0] if len(steps) == 1 else move_all


def _runtime_call(decoder: Decoder, instruction: Instruction) -> Step:
    target = next(o for o in instruction.operands if isinstance(o, CallTarget))
    name = target.callee.name
    make = BROUGHT.get(name)
    if make is None:
        if (step := make_launch_step(decoder, target, name)) is not None:
            return step
        raise decoder.refuse(f"cutrace does not have the function `{name}`")
    return make(decoder, target)


STEPS: StepTable = {"ld": _parameter, "st": _parameter, "call": _runtime_call}


def _printf(decoder: Decoder, target: CallTarget) -> Step:
    _require_counts(decoder, target, 2, 1, "expected a format, a buffer and a result")
    take, give = argument_words(decoder, target, ((8,), (8,))), store_result(decoder, target)

    def printf(group: Group) -> None:
        words, lanes = lane_words(group, take)
        counts: Array = np.zeros(group.shape, dtype=DTYPES["b32"])
        counts[lanes] = print_lanes(group, words, np.flatnonzero(lanes))
        give(group.frame, counts)

    return printf


def _require_counts(
    decoder: Decoder, target: CallTarget, arguments: int, returns: int, expected: str
) -> None:
    if len(target.arguments) != arguments or len(target.returns) != returns:
        raise decoder.refuse(expected)


def _assert(decoder: Decoder, target: CallTarget) -> Step:
    """`__assertfail(text, file, line, function, bytes of a character)`."""
    if not target.arguments:
        raise decoder.refuse("expected the text of an assertion")
    take, pc = argument_words(decoder, target, ((8,),)), decoder.pc

    def fail(group: Group) -> None:
        ((text,), *_), lanes = lane_words(group, take)
        first = int(np.flatnonzero(lanes)[0])
        what = f"assertion `{string_at(group, first, text)}`" if text else "an assertion"
        line = group.wave.program.source_line(pc)
        raise KernelFault(f"{line}: {what} failed in {name_lane(group, first)}", "assertion")

    return fail


def _malloc(decoder: Decoder, target: CallTarget) -> Step:
    _require_counts(decoder, target, 1, 1, "expected a size and a result")
    take, heap = argument_words(decoder, target, ((8,),)), _heap(decoder)
    return by_lane(decoder, target, take, lambda words: heap.take(words[0]))


def _free(decoder: Decoder, target: CallTarget) -> Step:
    _require_counts(decoder, target, 1, 0, "expected an address")
    take, heap, pc = argument_words(decoder, target, ((8,),)), _heap(decoder), decoder.pc

    def free(group: Group) -> None:
        for (address,) in lane_words(group, take)[0]:
            if address and not heap.give(address):
                line = group.wave.program.source_line(pc)
                raise KernelFault(
                    f"{line}: free({address:#x}): expected what malloc gave, and once", "heap"
                )

    return free


def _heap(decoder: Decoder) -> Heap:
    assert decoder.memory.heap is not None, "a module that declares malloc has a heap"
    return decoder.memory.heap


BROUGHT: Mapping[str, Callable[[Decoder, CallTarget], Step]] = {
    "vprintf": _printf,
    "__assertfail": _assert,
    "malloc": _malloc,
    "free": _free,
}
"""The runtime functions, by the name that the compiler calls."""
