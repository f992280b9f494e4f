"""Decoding of arithmetic and moves: operands bound to a row of the operation tables."""

from typing import Any, cast

import numpy as np

from ....traces.schema import Space
from ...ptx.kernel import (
    TYPE_BYTES,
    Bucket,
    Instruction,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Special,
    Symbol,
    Vector,
)
from ..access.cluster import GENERIC as OF_CLUSTER
from ..call.argument_passing import lane_numbers
from ..decode.address import elements, place_parameters
from ..decode.decoder import Decoder, Fetch, StepTable, Store, skip
from ..memory.memory import WINDOWS
from ..ops.family import SHARED_FAMILIES
from ..ops.lanes import DTYPES, Array, scalar
from ..ops.rule import Rule
from ..warp.program import Group, Step


def decode_alu(decoder: Decoder, instruction: Instruction, rule: Rule) -> Step:
    """Bind an operation table's row to the instruction's operands."""
    results, operands = _split(instruction)
    if len(operands) != len(rule.sources):
        raise decoder.refuse(f"expected {len(rule.sources)} sources, found {len(operands)}")
    if instruction.opcode != "cvt":
        _require_sizes(decoder, [*results, *operands], [*rule.results, *rule.sources])
    fetches = [decoder.fetch(o, k) for o, k in zip(operands, rule.sources, strict=True)]
    carry = decoder.slots.of_carry(decoder.function)
    if rule.carry_in:
        fetches.append(decoder.slots.fetch_slot(carry, DTYPES["pred"]))
    stores = [decoder.store(o, k) for o, k in zip(results, rule.results, strict=False)]
    if rule.carry_out:
        stores.append(decoder.store_slot(carry, "pred"))
    guard = decoder.guard()
    step = _bind(rule, fetches, stores)
    return step if guard is None else _counted(step, guard, decoder.pc)


def _require_sizes(decoder: Decoder, operands: list[Operand], kinds: list[str]) -> None:
    """Refuse registers of another width than the instruction's (`cvt` takes any)."""
    for operand, kind in zip(operands, kinds, strict=False):
        register = operand.register if isinstance(operand, (Part, Not)) else operand
        if isinstance(register, Register):
            size, expected = TYPE_BYTES[register.type], DTYPES[kind].itemsize
            if size != expected or (register.type == "pred") != (kind == "pred"):
                requirement = "a predicate" if kind == "pred" else f"{8 * expected} bits"
                raise decoder.refuse(
                    f"`{register.name}` is .{register.type}, expected {requirement}"
                )


def _split(instruction: Instruction) -> tuple[list[Operand], list[Operand]]:
    first, *source_operands = instruction.operands
    if instruction.opcode == "cvt":  # of four numbers at once
        source_operands = [e for operand in source_operands for e in elements(operand)]
    if isinstance(first, Pair):
        return [first.first, first.second], source_operands
    return [first], source_operands


def _bind(rule: Rule, fetches: list[Fetch], stores: list[Store | None]) -> Step:
    compute = rule.compute

    def many(group: Group) -> None:
        frame = group.frame
        values = compute(*[fetch(frame) for fetch in fetches])
        for store, value in zip(stores, values, strict=True):
            if store is not None:
                store(frame, value)

    if len(stores) > 1:
        return many
    store = stores[0]
    if store is None:
        return _nothing

    def one(group: Group) -> None:
        frame = group.frame
        store(frame, cast(Array, compute(*[fetch(frame) for fetch in fetches])))

    return one


def _nothing(group: Group) -> None:
    """Do nothing: the result is unused."""


def _counted(step: Step, guard: Fetch, pc: int) -> Step:
    """Return the step extended to count the lanes with a true guard."""

    def counted(group: Group) -> None:
        lanes = np.bitwise_count(group.pack(guard(group.frame)))
        sums = np.bincount(group.row_block, lanes, group.wave.blocks)
        group.wave.rows.count_lanes_on(pc, sums.astype(np.uint64))
        step(group)

    return counted


_TIMERS = frozenset({"%globaltimer", "%globaltimer_lo"})
_CLOCKS = frozenset({"%clock", "%clock64"}) | _TIMERS
NO_EFFECT = frozenset(SHARED_FAMILIES["no effect here"])
"""Hints, fences and waits: accesses are in order here, and no time passes."""

_SPACES = {"shared": Space.SHARED, "local": Space.LOCAL, "const": Space.CONST}


def _move(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    kind = instruction.type
    if isinstance(source, Vector) and isinstance(to, Vector):
        return _move_vector(decoder, to, source, kind)
    if isinstance(source, Vector):
        return _pack(decoder, to, source, kind)
    if isinstance(to, Vector):
        return _unpack(decoder, to, source, kind)
    if isinstance(source, Special) and source.name in _CLOCKS:
        begin = decoder.launch.begin if source.name in _TIMERS else 0
        return _clock(decoder, to, kind, begin)
    fetch, store = decoder.fetch(source, kind), decoder.store(to, kind)
    if store is None:
        return skip(decoder, instruction)
    if isinstance(source, Symbol) and decoder.has_frames(source.name):
        return _frame_address(fetch, store, decoder.local_stride, DTYPES[kind])

    def move(group: Group) -> None:
        value = fetch(group.frame)
        store(group.frame, value)

    return move


def _frame_address(fetch: Fetch, store: Store, stride: int, dtype: np.dtype[Any]) -> Step:
    """Return the step of a local variable's address in the frame of each lane's recursion level."""

    def locate(group: Group) -> None:
        frames = group.wave.frames
        value = fetch(group.frame)
        if frames is not None:
            value = value + frames.depth[lane_numbers(group)].astype(dtype) * dtype.type(stride)
        store(group.frame, value)

    return locate


def _move_vector(decoder: Decoder, to: Vector, source: Vector, kind: str) -> Step:
    fetches = [decoder.fetch(element, kind) for element in source.elements]
    stores = [decoder.store(element, kind) for element in to.elements]

    def move(group: Group) -> None:
        values = [fetch(group.frame) for fetch in fetches]
        for value, store in zip(values, stores, strict=True):
            if store is not None:
                store(group.frame, value)

    return move


def _clock(decoder: Decoder, to: Operand, kind: str, begin: int) -> Step:
    dtype = DTYPES[kind]
    store = decoder.store(to, kind)
    position = scalar(begin + decoder.position, dtype)[0, 0]

    def clock(group: Group) -> None:
        if store is not None:
            store(group.frame, (group.step.astype(dtype) + position)[:, None])

    return clock


def _element_type(kind: str, count: int) -> str:
    return f"b{8 * TYPE_BYTES[kind] // count}"


def _pack(decoder: Decoder, to: Operand, source: Vector, kind: str) -> Step:
    """Concatenate registers, the lowest bits first."""
    if any(isinstance(element, Special) for element in source.elements):
        raise decoder.refuse("expected a register as long as all parts of the special one")
    part = _element_type(kind, len(source.elements))
    fetches = [decoder.fetch(element, part) for element in source.elements]
    store = decoder.store(to, kind)

    def pack(group: Group) -> None:
        parts = np.broadcast_arrays(*(fetch(group.frame) for fetch in fetches))
        if store is not None:
            store(group.frame, np.stack(parts, axis=-1).view(DTYPES[kind])[..., 0])

    return pack


def _unpack(decoder: Decoder, to: Vector, source: Operand, kind: str) -> Step:
    part = _element_type(kind, len(to.elements))
    fetch = decoder.fetch(source, f"b{8 * TYPE_BYTES[kind]}")
    stores = [None if isinstance(e, Bucket) else decoder.store(e, part) for e in to.elements]

    def unpack(group: Group) -> None:
        value = np.ascontiguousarray(fetch(group.frame))
        parts = value[..., None].view(DTYPES[part])
        for place, store in enumerate(stores):
            if store is not None:
                store(group.frame, np.ascontiguousarray(parts[..., place]))

    return unpack


def _convert_address(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    kind = instruction.type
    fetch, store = decoder.fetch(source, kind), decoder.store(to, kind)
    space = _SPACES.get(instruction.space)
    start = WINDOWS[space][0] if space else 0
    if instruction.space == "param":
        start = place_parameters(decoder)[0]
    shift = DTYPES[kind].type(start)
    back = "to" in instruction.modifiers

    def convert(group: Group) -> None:
        value = fetch(group.frame)
        if start:
            value = value - shift if back else value + shift
        if store is not None:
            store(group.frame, value)

    return convert


def _is_in_space(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `isspacep`: an address in no other window is global."""
    to, source = instruction.operands
    kind = "u64" if isinstance(source, Register) and TYPE_BYTES[source.type] == 8 else "u32"
    fetch, store = decoder.fetch(source, kind), decoder.store(to, "pred")
    space = _SPACES.get(instruction.space)
    others = [WINDOWS[space]] if space else [WINDOWS[other] for other in _SPACES.values()]
    if space is None or "shared::cluster" in instruction.modifiers:
        others.append(OF_CLUSTER)
    is_parameter = instruction.space == "param"
    windows = [place_parameters(decoder)] if is_parameter else others

    def test(group: Group) -> None:
        address = fetch(group.frame)
        inside: Array = np.zeros((1, 1), dtype=np.bool_)
        for start, end in windows:
            inside = inside | ((address >= start) & (address < end))
        if store is not None:
            store(group.frame, inside if space or is_parameter else ~inside)

    return test


def _policy(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `createpolicy`: cache hints are ignored, so every policy is 0."""
    store = decoder.store(instruction.operands[0], "b64")
    none = scalar(0, DTYPES["b64"])

    def make(group: Group) -> None:
        if store is not None:
            store(group.frame, none)

    return make


STEPS: StepTable = {
    **dict.fromkeys(NO_EFFECT, skip),
    "mov": _move,
    "cvta": _convert_address,
    "isspacep": _is_in_space,
    "createpolicy": _policy,
}
