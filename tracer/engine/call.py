"""Calls: parameters by the byte, and the functions that the runtime brings (printf, assert).

A `.param` variable of a call and the callee's own parameter are one place, so that a call copies
nothing. Lanes of different call sites keep apart, since every write is merged under its lanes.
"""

from typing import TYPE_CHECKING

import numpy as np

from ...errors import KernelFault
from ..ptx.kernel import TYPE_BYTES, Address, CallTarget, Instruction, Operand, Symbol, Vector
from .array import DTYPES, Array
from .fault import source_line
from .printf import print_lanes
from .program import Step

if TYPE_CHECKING:
    from .decode import Decoder
    from .group import Group


def decode_call(decoder: "Decoder", instruction: Instruction) -> Step | None:
    """Return the step of a parameter access or a call into the runtime, or None."""
    if instruction.space == "param" and instruction.opcode in ("ld", "st"):
        return _parameter(decoder, instruction)
    if instruction.opcode == "call":
        return _runtime_call(decoder, instruction)
    return None


def _variable(decoder: "Decoder", name: str) -> tuple[int, str]:
    """Return whose parameter a name is: the caller's `.param` stands for the callee's own."""
    return decoder.parameters.get((decoder.function, name), (decoder.function, name))


def _parameter(decoder: "Decoder", instruction: Instruction) -> Step:
    load = instruction.opcode == "ld"
    value, address = instruction.operands if load else reversed(instruction.operands)
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise decoder.refuse("cutrace does not reach parameters through pointers yet")
    owner, name = _variable(decoder, address.base.name)
    offset = address.base.offset + address.offset
    kind = instruction.type
    elements = value.elements if isinstance(value, Vector) else (value,)
    keys = [
        (owner, name, offset + k * TYPE_BYTES[kind], TYPE_BYTES[kind]) for k in range(len(elements))
    ]
    steps = [_move(decoder, load, element, key, kind)
             for element, key in zip(elements, keys, strict=True)]  # fmt: skip

    def move_all(group: "Group") -> None:
        for step in steps:
            step(group)

    return steps[0] if len(steps) == 1 else move_all


def _move(
    decoder: "Decoder", load: bool, element: Operand, key: tuple[int, str, int, int], kind: str
) -> Step:
    slot = decoder.slots.of_parameter(key, decoder.argument_bytes(key))
    if load:
        fetch, store = decoder.fetch_parameter(key, slot, kind), decoder.store(element, kind)
    else:
        fetch, store = decoder.fetch(element, kind), decoder.store_slot(slot, kind)

    def move(group: "Group") -> None:
        value = fetch(group.frame)
        group.wave.owned.pop(id(value), None)
        if store is not None:
            store(group.frame, value)

    return move


def _runtime_call(decoder: "Decoder", instruction: Instruction) -> Step:
    target = next(o for o in instruction.operands if isinstance(o, CallTarget))
    name = target.callee.name
    arguments = [
        decoder.slots.of_parameter((decoder.function, o.name, 0, 8))
        for o in target.arguments
        if isinstance(o, Symbol)
    ]
    if name == "vprintf":
        if len(arguments) != 2 or len(target.returns) != 1:
            raise decoder.refuse("expected a format, a buffer and a result")
        result = decoder.slots.of_parameter((decoder.function, _name(target.returns[0]), 0, 4))
        decoder.slots.write(result, maybe=True)
        for slot in arguments:
            decoder.slots.read(slot)
        return lambda group: _printf(group, arguments, result)
    if name == "__assertfail":
        pc = decoder.pc
        return lambda group: _assertion(group, pc)
    raise decoder.refuse(f"cutrace does not have the function `{name}`")


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Symbol) else ""


def _printf(group: "Group", arguments: list[int], result: int) -> None:
    frame = group.frame
    shape = (group.rows, group.columns)
    form, values = (np.broadcast_to(frame[slot].view(np.int64), shape) for slot in arguments)
    lanes = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
    counts: Array = np.zeros(shape, dtype=DTYPES["b32"])
    counts[lanes] = print_lanes(group, form[lanes], values[lanes], np.flatnonzero(lanes))
    frame[result] = counts


def _assertion(group: "Group", pc: int) -> None:
    block = int(group.wave.blocks_of(group.warps[:1])[0])
    kernel = group.wave.program.kernel
    raise KernelFault(f"{source_line(kernel, pc)}: an assertion failed in block {block}")
