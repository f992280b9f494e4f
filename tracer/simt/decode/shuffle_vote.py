"""Shuffles, votes, matches and reductions of a warp (PTX ISA 9.7.9.6, 9.7.13).

A lane exchanges with the lanes that execute the instruction with it and are in its own mask. Lanes
of one stack entry may name different masks, as the tiles of a warp do.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.kernel import Bucket, Immediate, Instruction, Operand, Pair
from ..ops.extreme import chooser
from ..ops.lanes import DTYPES, LANES, Array, Bits, Mask, pack
from ..warp.program import Group, Step
from .decoder import Decoder, Fetch, StepTable, Store, immediate, skip

ALL_LANES = 0xFFFF_FFFF
_LANE = np.arange(LANES, dtype=np.int64)[None]
_NOTHING = np.uint32(0)
_REDUCTIONS: Mapping[str, tuple[Callable[..., Array], Callable[[np.dtype[Any]], int]]] = {
    "add": (np.add.reduce, lambda dtype: 0),
    "min": (np.minimum.reduce, lambda dtype: int(np.iinfo(dtype).max)),
    "max": (np.maximum.reduce, lambda dtype: int(np.iinfo(dtype).min)),
    "and": (np.bitwise_and.reduce, lambda dtype: -1),
    "or": (np.bitwise_or.reduce, lambda dtype: 0),
    "xor": (np.bitwise_xor.reduce, lambda dtype: 0),
}


def put(group: Group, store: Store | None, value: Array) -> None:
    """Store (warps, 32) or (warps, 1), unless the result is unused."""
    if store is not None:
        store(group.frame, by_lane(group, value))


@dataclass(frozen=True, slots=True)
class Collective:
    """A warp-wide operation: `compute(active, others, *values)` gives a result for each of
    `outputs`, registers with their types.

    Values and results are (warps, 32), results also (warps, 1); `active` are the lanes that take
    part, `others` the lanes that each of them exchanges with.
    """

    sources: tuple[Fetch, ...]
    outputs: tuple[tuple[Operand, str], ...]
    compute: Callable[..., tuple[Array, ...]]
    members: Fetch | None = None


def decode_collective(decoder: Decoder, instruction: Instruction) -> Collective | None:
    """Return the warp-wide operation of an instruction, or None if it is of another kind."""
    decode = _COLLECTIVES.get(instruction.opcode)
    return None if decode is None else decode(decoder, instruction)


def _together(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode an instruction of `_COLLECTIVES`."""
    collective = _COLLECTIVES[instruction.opcode](decoder, instruction)
    stores = [decoder.store(*output) for output in collective.outputs]
    guard = decoder.guard()

    def act(group: Group) -> None:
        active = active_lanes(group, guard)
        others = others_of(group, active, collective.members)
        values = [by_warp(group, fetch(group.frame)) for fetch in collective.sources]
        results = collective.compute(active, others, *values)
        for store, result in zip(stores, results, strict=True):
            put(group, store, result)

    return act


def by_warp(group: Group, value: Array) -> Array:
    """Return a value as (warps, 32)."""
    return np.broadcast_to(value, (group.rows, group.columns)).reshape(-1, LANES)


def by_lane(group: Group, value: Array) -> Array:
    """Return (warps, 32) or (warps, 1) in the group's shape."""
    return np.broadcast_to(value, (value.shape[0], LANES)).reshape(group.rows, group.columns)


def active_lanes(group: Group, guard: Fetch | None) -> Mask:
    """Return the active lanes (warps, 32) with a true guard."""
    lanes = group.guarded(None if guard is None else guard(group.frame))
    return by_warp(group, np.ones((1, 1), dtype=np.bool_) if lanes is None else lanes)


def _outputs(operand: Operand) -> tuple[tuple[Operand, str], ...]:
    """Return the value and the predicate that an instruction writes."""
    if not isinstance(operand, Pair):
        return ((operand, "b32"), (Bucket(), "pred"))
    return ((operand.first, "b32"), (operand.second, "pred"))


def _members(decoder: Decoder, instruction: Instruction, place: int) -> Fetch | None:
    """Return a fetch of the instruction's member mask, per lane; None if it names all lanes."""
    if "sync" not in instruction.modifiers:
        return None
    mask = instruction.operands[place]
    if isinstance(mask, Immediate) and int(immediate(mask, "b32").flat[0]) == ALL_LANES:
        return None
    return decoder.fetch(mask, "b32")


def others_of(group: Group, active: Mask, members: Fetch | None) -> Bits:
    """Return the active lanes that each lane exchanges with: (warps, 1), or (warps, 32) by its
    mask.
    """
    everyone = pack(active)[:, None]
    return everyone if members is None else everyone & by_warp(group, members(group.frame))


def _unpacked(lanes: Bits) -> Mask:
    """Return (n, k) masks as (n, k, 32)."""
    bits: Bits = lanes[:, :, None] >> _LANE.astype(np.uint32)[None] & np.uint32(1)
    return bits.astype(np.bool_)


def _shuffle(decoder: Decoder, instruction: Instruction) -> Collective:
    """Decode `shfl`. A source lane that does not execute it gives 0, as on an H200: the ISA leaves
    it open.
    """
    to, *operands = instruction.operands
    mode = next(m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx"))
    kinds = ("b32", "u32", "u32")
    fetches = tuple(decoder.fetch(o, k) for o, k in zip(operands[:3], kinds, strict=True))

    def shuffle(
        active: Mask, others: Bits, value: Array, step: Array, clamp: Array
    ) -> tuple[Array, ...]:
        source, valid = _source_lane(mode, step & np.uint32(31), clamp)
        values = np.where(active, value, _NOTHING)
        return np.take_along_axis(values, source, axis=1), valid

    return Collective(fetches, _outputs(to), shuffle)


def _source_lane(mode: str, step: Array, clamp: Array) -> tuple[NDArray[np.int64], Mask]:
    """Return the lane that each lane reads, and whether it is in range (PTX ISA, shfl.sync)."""
    offset = step.astype(np.int64)
    segment = (clamp.astype(np.int64) >> 8) & 31
    last = (_LANE & segment) | (clamp.astype(np.int64) & 31 & ~segment)
    if mode == "up":
        source = _LANE - offset
        valid = source >= last
    elif mode == "down":
        source = _LANE + offset
        valid = source <= last
    elif mode == "bfly":
        source = _LANE ^ offset
        valid = source <= last
    else:
        source = (_LANE & segment) | (offset & ~segment)
        valid = source <= last
    return np.where(valid, source, _LANE), valid


def _vote(decoder: Decoder, instruction: Instruction) -> Collective:
    to, source = instruction.operands[:2]
    mode = next(m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot"))

    def vote(active: Mask, others: Bits, holds: Array) -> tuple[Array, ...]:
        on = pack(active & holds)[:, None] & others
        if mode == "ballot":
            return (on,)
        every, some = on == others, on != 0
        return ({"all": every, "any": some, "uni": every | ~some}[mode],)

    output = (to, "b32" if mode == "ballot" else "pred")
    members = _members(decoder, instruction, 2)
    return Collective((decoder.fetch(source, "pred"),), (output,), vote, members)


def _warp_barrier(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Decode `bar.warp.sync`, at which all lanes are here; other barriers end a basic block."""
    return skip(decoder, instruction) if "warp" in instruction.modifiers else None


def _active_mask(decoder: Decoder, instruction: Instruction) -> Step:
    store, guard = decoder.store(instruction.operands[0], "b32"), decoder.guard()

    return lambda group: put(group, store, pack(active_lanes(group, guard))[:, None])


def _match(decoder: Decoder, instruction: Instruction) -> Collective:
    to, source = instruction.operands[:2]
    everyone = "all" in instruction.modifiers

    def match(active: Mask, others: Bits, values: Array) -> tuple[Array, ...]:
        equal = values[:, :, None] == values[:, None, :]
        masks: Bits = pack(equal.reshape(-1, LANES)).reshape(-1, LANES) & others
        agree = masks == others
        return (np.where(agree, others, np.uint32(0)) if everyone else masks), agree

    fetch, members = decoder.fetch(source, instruction.type), _members(decoder, instruction, 2)
    return Collective((fetch,), _outputs(to), match, members)


def _reduce(decoder: Decoder, instruction: Instruction) -> Collective:
    to, source = instruction.operands[:2]
    kind = instruction.type
    if kind == "f32":
        return _reduce_floats(decoder, instruction)
    if kind not in ("u32", "s32", "b32"):
        raise decoder.refuse("cutrace does not know this instruction")
    reduce, neutral = _REDUCTIONS[next(m for m in instruction.modifiers if m in _REDUCTIONS)]
    dtype = DTYPES[kind]
    empty = np.array(neutral(dtype) & 0xFFFFFFFF, dtype=np.uint32).view(dtype)

    def redux(active: Mask, others: Bits, values: Array) -> tuple[Array, ...]:
        inside = np.where(_unpacked(others), values[:, None, :], empty)
        return (reduce(inside, axis=2, dtype=dtype),)

    members = _members(decoder, instruction, 2)
    return Collective((decoder.fetch(source, kind),), ((to, kind),), redux, members)


def _reduce_floats(decoder: Decoder, instruction: Instruction) -> Collective:
    """Reduce f32 by minimum or maximum; inactive lanes repeat the first active one."""
    to, source = instruction.operands[:2]
    modifiers = instruction.modifiers
    choose = chooser("f32", "min" in modifiers, nan="NaN" in modifiers)
    keep = np.uint32(0x7FFF_FFFF if "abs" in modifiers else 0xFFFF_FFFF)

    def redux(active: Mask, others: Bits, values: Array) -> tuple[Array, ...]:
        values = values & keep
        total = first = np.take_along_axis(values, first_lane(others), axis=1)
        inside = _unpacked(others)
        for lane in range(LANES):
            here = values[:, lane : lane + 1]
            total = choose(total, np.where(inside[:, :, lane], here, first))
        return (total,)

    members = _members(decoder, instruction, 2)
    return Collective((decoder.fetch(source, "b32"),), ((to, "b32"),), redux, members)


def first_lane(lanes: Bits) -> NDArray[np.int64]:
    """Return the index of the lowest one bit; 31 if there is none."""
    none_below: Bits = np.bitwise_count(~lanes & (lanes - np.uint32(1)))
    return np.minimum(none_below.astype(np.int64), LANES - 1)


def _elect(decoder: Decoder, instruction: Instruction) -> Collective:
    def elect(active: Mask, others: Bits) -> tuple[Array, ...]:
        leader = first_lane(others)
        return leader.astype(np.uint32), leader == _LANE

    outputs = _outputs(instruction.operands[0])
    return Collective((), outputs, elect, _members(decoder, instruction, 1))


_COLLECTIVES: Mapping[str, Callable[[Decoder, Instruction], Collective]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
}

STEPS: StepTable = {
    "activemask": _active_mask,
    "bar": _warp_barrier,
    "barrier": _warp_barrier,
    **dict.fromkeys(_COLLECTIVES, _together),
}
