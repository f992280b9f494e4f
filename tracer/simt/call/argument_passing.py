"""Calls in the interpreter: moves of arguments and results, and the stack of recursion.

A parameter with an address that the callee takes is copied to local memory.
"""

import numpy as np
from numpy.typing import NDArray

from ....traces.schema import Space
from ...ptx.kernel import CallTarget, Operand, Variable
from ..decode.decoder import Decoder, Fetch, Store
from ..decode.spill import Key, Spills
from ..kernel.layout import WIDEST, Place, Span, pointed_parameters
from ..kernel.passing import Bytes, Move, Passed, argument_moves, result_moves
from ..ops.lanes import DTYPES, LANES, Array
from ..warp.frame_stack import FrameStack
from ..warp.program import Group, Program, Step, Wave


def place_of(decoder: Decoder, name: str) -> Place:
    """Return the place of a parameter; the caller's `.param` and the callee's own share one."""
    return decoder.passing.place(decoder.function, name)


def pass_arguments(decoder: Decoder, target: CallTarget, callee: int) -> list[Step]:
    """Return the steps that pass the arguments before the callee runs."""
    caller, passing = decoder.function, decoder.passing
    moves = argument_moves(decoder.kernel, passing, caller, target, callee, decoder.refuse)
    pointed = pointed_parameters(decoder.kernel.functions[callee].function)
    return [
        *(move_step(decoder, move) for move in moves),
        *(_copy_to_local(decoder, callee, variable) for variable in pointed),
    ]


def returned_steps(decoder: Decoder, after: int) -> list[Step]:
    """Return the steps that take the results of a call, in the block `after` it."""
    decoder.pc, target, reached = decoder.returned[after]
    caller, passing = decoder.function, decoder.passing
    steps = [
        move_step(decoder, move)
        for callee in reached
        for move in result_moves(decoder.kernel, passing, caller, target, callee, decoder.refuse)
    ]
    return [*steps, restore_frame(decoder, after)] if after in decoder.spills.after else steps


def move_step(decoder: Decoder, move: Move) -> Step:
    """Return the step of a move."""
    fetch, store = _fetch(decoder, move.source, move.kind), _store(decoder, move.to, move.kind)

    def act(group: Group) -> None:
        value = fetch(group.frame)
        store(group.frame, value)

    return act


def _fetch(decoder: Decoder, source: Operand | Bytes | Passed, kind: str) -> Fetch:
    if isinstance(source, Bytes):
        return fetch_bytes(decoder, source.place, source.span, kind)
    if isinstance(source, Passed):
        return decoder.slots.fetch_slot(_passed_slot(decoder, source), DTYPES[kind])
    return decoder.fetch(source, kind)


def _store(decoder: Decoder, to: Operand | Bytes | Passed, kind: str) -> Store:
    if isinstance(to, Bytes):
        return store_bytes(decoder, to.place, to.span, kind)
    if isinstance(to, Passed):
        return decoder.store_slot(_passed_slot(decoder, to), kind)
    return decoder.store(to, kind)


def _passed_slot(decoder: Decoder, passed: Passed) -> int:
    return decoder.slots.of_key((passed.function, passed.name))


def _copy_to_local(decoder: Decoder, callee: int, variable: Variable) -> Step:
    """Copy an argument to local memory, where the stack has it; this is no access of the kernel."""
    place = decoder.passing.place(callee, variable.name)
    start = decoder.local.offsets[callee, variable.name]
    parts = [
        (start + offset, size, fetch_bytes(decoder, place, (offset, size), f"b{8 * size}"))
        for offset, size in decoder.passing.spans(place)
    ]
    guard, stride = decoder.guard(), decoder.local_stride
    calls_itself = callee in decoder.passing.recursive

    def copy(group: Group) -> None:
        shape = group.shape
        active = group.guarded_lanes(guard)
        lanes = lane_numbers(group)[active]
        frames = group.wave.frames
        level = frames.depth[lanes] * stride if calls_itself and frames is not None else 0
        shadow = group.wave.shadow
        written = None if shadow is None else shadow.of(Space.LOCAL)
        for offset, size, fetch in parts:
            value = np.broadcast_to(fetch(group.frame), shape)[active]
            octets = np.ascontiguousarray(value).view(np.uint8).reshape(-1, size)
            columns = np.reshape(level + offset, (-1, 1)) + np.arange(size)
            group.wave.local[lanes[:, None], columns] = octets
            if written is not None:
                written[lanes[:, None], columns] = 1

    return copy


def fetch_bytes(decoder: Decoder, place: Place, span: Span, kind: str) -> Fetch:
    """Return a fetch of bytes of a parameter as the PTX type `kind`."""
    pieces = _pieces(decoder, place, span)
    if len(pieces) == 1:
        return decoder.slots.fetch_slot(_slot(decoder, place, span), DTYPES[kind])
    whole = np.dtype(f"u{span[1]}")
    parts = [
        (decoder.slots.fetch_slot(_slot(decoder, place, p), np.dtype(f"u{p[1]}")), _shift(p, span))
        for p in pieces
    ]

    def fetch(frame: list[Array]) -> Array:
        joined: Array = np.zeros((1, 1), dtype=whole)
        for part, shift in parts:
            joined = joined | (part(frame).astype(whole) << whole.type(shift))
        return joined.view(DTYPES[kind])

    return fetch


def store_bytes(decoder: Decoder, place: Place, span: Span, kind: str) -> Store:
    """Return a store of a value of type `kind` to bytes of a parameter."""
    pieces = _pieces(decoder, place, span)
    if len(pieces) == 1:
        return decoder.store_slot(_slot(decoder, place, span), kind)
    whole = np.dtype(f"u{span[1]}")
    parts = [
        (decoder.store_slot(_slot(decoder, place, p), f"b{8 * p[1]}"), _shift(p, span), p[1])
        for p in pieces
    ]

    def store(frame: list[Array], value: Array) -> None:
        bits = value.view(whole)
        for put, shift, size in parts:
            put(frame, (bits >> whole.type(shift)).astype(f"u{size}"))

    return store


def _shift(piece: Span, span: Span) -> int:
    return 8 * (piece[0] - span[0])


def _pieces(decoder: Decoder, place: Place, span: Span) -> tuple[Span, ...]:
    """Return the pieces of a span; a kernel argument is always read whole."""
    if decoder.argument_bytes((*place, *span)) is not None:
        return (span,)
    start, size = span
    pieces = tuple(p for p in decoder.passing.spans(place) if start <= p[0] < start + size)
    if len(pieces) > 1 and size > WIDEST:
        raise decoder.refuse("128 bits of a parameter that others take in parts")
    return pieces


def _slot(decoder: Decoder, place: Place, span: Span) -> int:
    key = (*place, *span)
    return decoder.slots.of_parameter(key, decoder.argument_bytes(key))


def lane_numbers(group: Group) -> NDArray[np.intp]:
    """Return the number in the wave of each lane of the group's shape."""
    numbers = group.place[:, None] * LANES + np.arange(LANES)
    return numbers.reshape(group.shape)


def save_frame(decoder: Decoder, after: int) -> Step:
    """Return the step that saves registers before a recursive call, for the lanes that make it.

    KernelFault for a lane that is too deep already.
    """
    spills, pc = decoder.spills.after[after], decoder.pc
    slots = [decoder.slots.read(_slot_of(decoder, spill.key)) for spill in spills]

    def save(group: Group) -> None:
        stack = stack_of(group.wave, decoder.spills)
        active, lanes = _active(group)
        while lanes.size and int(stack.depth[lanes].max()) >= stack.levels:
            grow(stack, group.wave.program, pc)
        place = stack.depth[lanes], *np.divmod(lanes, LANES)
        for spill, slot in zip(spills, slots, strict=True):
            value = np.broadcast_to(group.frame[slot], active.shape)[active]
            stack.lanes_of(spill.offset, value.dtype)[place] = value
        stack.depth[lanes] += 1

    return save


def restore_frame(decoder: Decoder, after: int) -> Step:
    """Return the step that restores the saved registers after a call."""
    spills = decoder.spills.after[after]
    slots = [decoder.slots.write(_slot_of(decoder, spill.key), maybe=True) for spill in spills]

    def restore(group: Group) -> None:
        stack = stack_of(group.wave, decoder.spills)
        active, lanes = _active(group)
        stack.depth[lanes] -= 1
        place = stack.depth[lanes], *np.divmod(lanes, LANES)
        for spill, slot in zip(spills, slots, strict=True):
            whole = np.array(np.broadcast_to(group.frame[slot], active.shape), order="C")
            whole[active] = stack.lanes_of(spill.offset, whole.dtype)[place]
            group.frame[slot] = whole

    return restore


def _slot_of(decoder: Decoder, key: Key) -> int:
    """Return the slot of a register that a call saves."""
    if len(key) == 4:
        return _slot(decoder, key[:2], key[2:])
    return decoder.slots.of_key(key)


def _active(group: Group) -> tuple[Array, NDArray[np.intp]]:
    """Return the active lanes in the group's shape, and their numbers in the wave."""
    active = group.guarded_lanes(None)
    return active, lane_numbers(group)[active]


def stack_of(wave: Wave, spills: Spills) -> FrameStack:
    """Return the stack of a wave, made when it is first needed."""
    if wave.frames is None:
        wave.frames = FrameStack(spills.level_bytes, spills.most_levels, wave.warps)
    return wave.frames


def grow(stack: FrameStack, program: Program, pc: int) -> None:
    """Make room for twice as many levels; KernelFault if there are no more."""
    if stack.levels == stack.most:
        levels = stack.most + 1
        problem = f"calls itself more than {levels} level{'s' * (levels > 1)} deep"
        raise program.fault(pc, problem)
    stack.grow(2 * stack.levels)
