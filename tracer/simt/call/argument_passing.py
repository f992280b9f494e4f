"""The calling convention: arguments and results in registers, and parameters with an address.

Old PTX has registers, `.func (.reg .u32 r) f (.reg .u32 a)`, and any PTX may pass a register for a
`.param`. The caller copies them to the callee's place before the call, and copies results back in
the block after it. A parameter with an address that the callee takes is copied to local memory.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ....base.errors import KernelFault
from ....traces.schema import Space
from ...ptx.kernel import TYPE_BYTES, CallTarget, Operand, Register, Symbol, Variable
from ..decode.decoder import Decoder, Fetch, Return, Store
from ..kernel.layout import WIDEST, Place, Span, pointed_parameters
from ..ops.lanes import DTYPES, LANES, Array
from ..warp.program import FrameStack, Group, Program, Step, Wave


def place_of(decoder: Decoder, name: str, function: int | None = None) -> Place:
    """Return the place of a parameter; the caller's `.param` and the callee's own share one."""
    place = (decoder.function if function is None else function, name)
    return decoder.parameters.get(place, place)


def pass_arguments(decoder: Decoder, target: CallTarget, callee: int) -> list[Step]:
    """Return the steps that pass the arguments before the callee runs."""
    function = decoder.kernel.functions[callee].function
    steps: list[Step] = []
    for operand, variable in zip(target.arguments, function.parameters, strict=True):
        if variable.space == "reg":
            slot = decoder.slots.of_passed((callee, variable.name))
            fetch = decoder.fetch(operand, variable.element)
            steps.append(_pass(fetch, decoder.store_slot(slot, variable.element)))
        elif isinstance(operand, Symbol):
            source_place = place_of(decoder, operand.name)
            steps += _copy(decoder, source_place, place_of(decoder, variable.name, callee))
        else:
            steps.append(_pass_register(decoder, operand, variable, callee))
    steps += [_copy_to_local(decoder, callee, v) for v in pointed_parameters(function)]
    return steps


def _pass_register(decoder: Decoder, operand: Operand, variable: Variable, callee: int) -> Step:
    kind = variable.element
    _require_register(decoder, variable)
    place = place_of(decoder, variable.name, callee)
    store = store_bytes(decoder, place, (0, variable.size), kind)
    return _pass(decoder.fetch(operand, kind), store)


def _require_register(decoder: Decoder, variable: Variable) -> None:
    if variable.size != TYPE_BYTES[variable.element]:
        raise decoder.refuse(f"`{variable.name}` has {variable.size} bytes, and is no register's")


def _copy(decoder: Decoder, source: Place, to: Place) -> list[Step]:
    """Return the steps that copy a parameter, piece by piece; none if both are one place."""
    if source == to:
        return []
    return [
        _pass(
            fetch_bytes(decoder, source, (offset, size), f"b{8 * size}"),
            store_bytes(decoder, to, (offset, size), f"b{8 * size}"),
        )
        for offset, size in decoder.pieces[to]
    ]


def _pass(fetch: Fetch, store: Store) -> Step:
    def move(group: Group) -> None:
        value = fetch(group.frame)
        store(group.frame, value)

    return move


def _copy_to_local(decoder: Decoder, callee: int, variable: Variable) -> Step:
    """Copy an argument to local memory, where the stack has it; this is no access of the kernel."""
    place = place_of(decoder, variable.name, callee)
    start = decoder.local.offsets[callee, variable.name]
    parts = [
        (start + offset, size, fetch_bytes(decoder, place, (offset, size), f"b{8 * size}"))
        for offset, size in decoder.pieces.get(place, ())
    ]
    guard, stride = decoder.guard(), decoder.local_stride
    calls_itself = callee in decoder.recursive

    def copy(group: Group) -> None:
        shape = (group.rows, group.columns)
        lane_mask = group.guarded(None if guard is None else guard(group.frame))
        active = np.broadcast_to(True if lane_mask is None else lane_mask, shape)
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


def returned(decoder: Decoder, target: CallTarget, callee: int) -> list[Return]:
    """Return the results that the caller must take after the call."""
    variables = decoder.kernel.functions[callee].function.returns
    for operand, variable in zip(target.returns, variables, strict=True):
        if isinstance(operand, Register):
            _require_register(decoder, variable)
    return [
        (callee, variable, operand)
        for operand, variable in zip(target.returns, variables, strict=True)
        if isinstance(operand, (Register, Symbol))
    ]


def take_returned(
    decoder: Decoder, callee: int, variable: Variable, to: Register | Symbol
) -> Iterator[Step]:
    """Yield the steps that copy a result to the caller's place, in the block after the call."""
    source = place_of(decoder, variable.name, callee)
    if isinstance(to, Symbol):
        yield from _copy(decoder, source, place_of(decoder, to.name))
        return
    slots = decoder.slots
    slot = slots.of(decoder.function, to)
    dtype = slots.zeros[slot].dtype
    if variable.space == "reg":
        fetch = slots.fetch_slot(slots.of_passed((callee, variable.name)), dtype)
    else:
        fetch = fetch_bytes(decoder, source, (0, variable.size), variable.element)
    slots.write(slot)

    def take(group: Group) -> None:
        value: Array = fetch(group.frame)
        same = value.dtype.itemsize == dtype.itemsize
        group.frame[slot] = value.view(dtype) if same else value.astype(dtype)

    yield take


def frame_slots(decoder: Decoder, target: CallTarget, after: int) -> tuple[int, ...]:
    """Return the slots that a recursive call must preserve, except those of its results.

    They are the registers that are live after it, and the parameters of the calling function.
    """
    function = decoder.kernel.functions[decoder.function].function
    result_slots = {
        decoder.slots.of(decoder.function, r) for r in target.returns if isinstance(r, Register)
    }
    own = [
        slot
        for variable in (*function.returns, *function.parameters)
        if variable.space == "param"
        for slot in piece_slots(decoder, place_of(decoder, variable.name))
    ]
    return tuple(sorted({*decoder.live_slots(after), *own} - result_slots))


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


def piece_slots(decoder: Decoder, place: Place) -> list[int]:
    """Return the slots of all pieces of a parameter."""
    return [_slot(decoder, place, piece) for piece in decoder.pieces.get(place, ())]


def _shift(piece: Span, span: Span) -> int:
    return 8 * (piece[0] - span[0])


def _pieces(decoder: Decoder, place: Place, span: Span) -> tuple[Span, ...]:
    """Return the pieces of a span; a kernel argument is always read whole."""
    if decoder.argument_bytes((*place, *span)) is not None:
        return (span,)
    start, size = span
    pieces = tuple(p for p in decoder.pieces[place] if start <= p[0] < start + size)
    if len(pieces) > 1 and size > WIDEST:
        raise decoder.refuse("128 bits of a parameter that others take in parts")
    return pieces


def _slot(decoder: Decoder, place: Place, span: Span) -> int:
    key = (*place, *span)
    return decoder.slots.of_parameter(key, decoder.argument_bytes(key))


def lane_numbers(group: Group) -> NDArray[np.intp]:
    """Return the number in the wave of each lane of the group's shape."""
    numbers = group.place[:, None] * LANES + np.arange(LANES)
    return numbers.reshape(group.rows, group.columns)


def save_frame(slots: tuple[int, ...], pc: int, levels: int) -> Step:
    """Return the step that spills registers before a call, for the lanes that make it.

    KernelFault for a lane that is `levels` deep already.
    """

    def save(group: Group) -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        lanes = lane_numbers(group)[active]
        stack = _stack(group.wave)
        if lanes.size and int(stack.depth[lanes].max()) >= levels - 1:
            raise too_deep(group.wave.program, pc, levels)
        values = {s: np.broadcast_to(group.frame[s], shape)[active] for s in slots}
        stack.push(lanes, values)

    return save


def too_deep(program: Program, pc: int, levels: int) -> KernelFault:
    """Return the fault of a lane that calls itself when it is `levels` deep."""
    return KernelFault(
        f"{program.source_line(pc)}: kernel `{program.name}` calls itself "
        f"more than {levels} level{'s' * (levels > 1)} deep"
    )


def restore_frame(slots: tuple[int, ...]) -> Step:
    """Return the step that restores the spilled registers after a call."""

    def restore(group: Group) -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        values = _stack(group.wave).pop(lane_numbers(group)[active], slots)
        for slot, value in zip(slots, values, strict=True):
            whole = np.array(np.broadcast_to(group.frame[slot], shape), order="C")
            whole[active] = value.view(whole.dtype)
            group.frame[slot] = whole

    return restore


def _stack(wave: Wave) -> FrameStack:
    if wave.frames is None:
        wave.frames = FrameStack(wave.warps * LANES)
    return wave.frames
