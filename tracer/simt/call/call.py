"""Calls: parameter accesses by byte, and the runtime functions: printf, assert, malloc.

A `.param` variable of a call and the callee's own parameter share one place, so that a call copies
nothing. Lanes of different call sites do not interfere, since every write is masked by its lanes.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ....base.errors import KernelFault
from ...ptx.kernel import CallTarget, Instruction, Operand, Symbol
from ..access.bounds import name_lane
from ..decode.decoder import Decoder, StepTable
from ..kernel.passing import parameter_moves
from ..memory.device_runtime import Heap
from ..ops.lanes import DTYPES, Array
from ..warp.program import Group, Step
from .argument_passing import fetch_bytes, move_step, place_of, store_bytes
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
    if len(target.arguments) != 2 or len(target.returns) != 1:
        raise decoder.refuse("expected a format, a buffer and a result")
    places = [place_of(decoder, _name(o)) for o in (*target.arguments, *target.returns)]
    takes = [fetch_bytes(decoder, place, (0, 8), "s64") for place in places[:2]]
    give = store_bytes(decoder, places[2], (0, 4), "b32")

    def printf(group: Group) -> None:
        frame = group.frame
        shape = (group.rows, group.columns)
        form, values = (np.broadcast_to(take(frame), shape) for take in takes)
        lanes = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        counts: Array = np.zeros(shape, dtype=DTYPES["b32"])
        counts[lanes] = print_lanes(group, form[lanes], values[lanes], np.flatnonzero(lanes))
        give(frame, counts)

    return printf


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Symbol) else ""


def _assert(decoder: Decoder, target: CallTarget) -> Step:
    """`__assertfail(text, file, line, function, bytes of a character)`."""
    if not target.arguments:
        raise decoder.refuse("expected the text of an assertion")
    fetch = fetch_bytes(decoder, place_of(decoder, _name(target.arguments[0])), (0, 8), "u64")
    pc = decoder.pc

    def fail(group: Group) -> None:
        texts, lanes = _by_lane(group, fetch(group.frame))
        first = int(np.flatnonzero(lanes)[0])
        what = f"assertion `{string_at(group, first, texts[0])}`" if texts[0] else "an assertion"
        line = group.wave.program.source_line(pc)
        raise KernelFault(f"{line}: {what} failed in {name_lane(group, first)}", "assertion")

    return fail


def _malloc(decoder: Decoder, target: CallTarget) -> Step:
    if len(target.arguments) != 1 or len(target.returns) != 1:
        raise decoder.refuse("expected a size and a result")
    fetch = fetch_bytes(decoder, place_of(decoder, _name(target.arguments[0])), (0, 8), "u64")
    give = store_bytes(decoder, place_of(decoder, _name(target.returns[0])), (0, 8), "u64")
    heap = _heap(decoder)

    def malloc(group: Group) -> None:
        sizes, lanes = _by_lane(group, fetch(group.frame))
        addresses: Array = np.zeros(lanes.shape, dtype=np.uint64)
        addresses[lanes] = [heap.take(size) for size in sizes]
        give(group.frame, addresses)

    return malloc


def _free(decoder: Decoder, target: CallTarget) -> Step:
    if len(target.arguments) != 1 or target.returns:
        raise decoder.refuse("expected an address")
    fetch = fetch_bytes(decoder, place_of(decoder, _name(target.arguments[0])), (0, 8), "u64")
    heap, pc = _heap(decoder), decoder.pc

    def free(group: Group) -> None:
        for address in _by_lane(group, fetch(group.frame))[0]:
            if address and not heap.give(address):
                line = group.wave.program.source_line(pc)
                raise KernelFault(
                    f"{line}: free({address:#x}): expected what malloc gave, and once", "heap"
                )

    return free


def _by_lane(group: Group, value: Array) -> tuple[list[int], Array]:
    """Return a value for each active lane in order, and the active lanes of the group."""
    shape = (group.rows, group.columns)
    lanes = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
    return np.broadcast_to(value, shape)[lanes].tolist(), lanes


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
