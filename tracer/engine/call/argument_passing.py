"""Calling convention: arguments and results in registers, parameters that need an address.

Old PTX has registers, `.func (.reg .u32 r) f (.reg .u32 a)`, and any PTX may pass one where a
`.param` is taken. They are put into the callee's place before the call; results are taken from
there at the block after it. A parameter whose address the callee takes gets a copy in local memory.
"""

from collections.abc import Iterator

import numpy as np

from ....traces.schema import Space
from ...ptx.kernel import TYPE_BYTES, CallTarget, Operand, Register, Symbol, Variable
from ..array.decoder import Decoder, Return
from ..array.program import Group, Step
from ..array.slot import Fetch, Store
from ..kernel.parameter_layout import Place
from ..kernel.variable_layout import pointed_parameters
from ..lanes import Array
from .parameter_bytes import fetch_bytes, piece_slots, store_bytes
from .recursion import lane_numbers


def place_of(decoder: Decoder, name: str, function: int | None = None) -> Place:
    """Return the place of a parameter: the caller's `.param` stands for the callee's own."""
    place = (decoder.function if function is None else function, name)
    return decoder.parameters.get(place, place)


def pass_arguments(decoder: Decoder, target: CallTarget, callee: int) -> list[Step]:
    """Return what a call does with its arguments before the callee runs."""
    function = decoder.kernel.functions[callee].function
    steps: list[Step] = []
    for operand, variable in zip(target.arguments, function.parameters, strict=True):
        if variable.space == "reg":
            slot = decoder.slots.of_passed((callee, variable.name))
            fetch = decoder.fetch(operand, variable.element)
            steps.append(_pass(fetch, decoder.store_slot(slot, variable.element)))
        elif isinstance(operand, Symbol):
            given = place_of(decoder, operand.name)
            steps += _copy(decoder, given, place_of(decoder, variable.name, callee))
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
    """Return what copies a parameter, piece by piece; nothing where both are one place."""
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
    """Copy what a call passes to local memory, as the stack has it: no access of the kernel's."""
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
        chosen = group.guarded(None if guard is None else guard(group.frame))
        active = np.broadcast_to(True if chosen is None else chosen, shape)
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
    """Return what the caller has to take where the call comes back."""
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
    """Yield what puts a result into the caller's place, in the block after the call."""
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
    """Return the slots that a recursive call must find again, but for those of its results.

    They are of registers that are live after it, and of the calling function's own parameters.
    """
    function = decoder.kernel.functions[decoder.function].function
    taken = {
        decoder.slots.of(decoder.function, r) for r in target.returns if isinstance(r, Register)
    }
    own = [
        slot
        for variable in (*function.returns, *function.parameters)
        if variable.space == "param"
        for slot in piece_slots(decoder, place_of(decoder, variable.name))
    ]
    return tuple(sorted({*decoder.live_slots(after), *own} - taken))
