"""Shuffles, votes, matches and reductions of a warp (PTX ISA 9.7.9.6, 9.7.13).

A lane exchanges with the lanes that execute the instruction with it and are in its own mask. Lanes
of one stack entry may name different masks, as the tiles of a warp do. `jit` compiles the loops
that say what is exchanged: the interpreter calls `exchange_warps`, and machine code `exchange` for
each warp.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop_codegen import compile_routines
from ....jit.machine_code import address
from ....jit.structure import I64, U8, U32
from ....jit.value import trailing_zeros
from ...ptx.kernel import Bucket, Immediate, Instruction, Operand, Pair
from ..ops.extreme import chooser
from ..ops.lanes import DTYPES, LANES, Array, Bits, Mask, pack
from ..warp.program import Group, Step
from .decoder import Decoder, Fetch, StepTable, skip

SHUFFLE, VOTE, MATCH, REDUCE, ELECT, ACTIVE = range(6)
IDX, UP, DOWN, BFLY = range(4)
ALL, ANY, UNI, BALLOT = range(4)
ADD, MIN, MAX, AND, OR, XOR = range(6)
_MODES: Mapping[int, Mapping[str, int]] = {
    SHUFFLE: {"idx": IDX, "up": UP, "down": DOWN, "bfly": BFLY},
    VOTE: {"all": ALL, "any": ANY, "uni": UNI, "ballot": BALLOT},
    MATCH: {"all": ALL, "any": ANY},
    REDUCE: {"add": ADD, "min": MIN, "max": MAX, "and": AND, "or": OR, "xor": XOR},
}
_KINDS = {
    **{"shfl": SHUFFLE, "vote": VOTE, "match": MATCH, "redux": REDUCE, "elect": ELECT},
    **{"activemask": ACTIVE},
}
ALL_LANES = Immediate(0xFFFF_FFFF)
_NONE = Immediate(0)


def exchange_warps(
    kind: int, mode: int, warps: int, values: I64, seconds: U32, thirds: U32, active: U32,
    to: U32, holds: U8,
) -> None:  # fmt: skip
    """Exchange in some warps, with 32 values of each after another."""
    for warp in range(warps):
        exchange(
            kind, mode, values[32 * warp :], seconds[32 * warp :], thirds[32 * warp :],
            active[warp], to[32 * warp :], holds[32 * warp :],
        )  # fmt: skip


def exchange(
    kind: int, mode: int, values: I64, seconds: U32, thirds: U32, active: int, to: U32, holds: U8
) -> None:
    """Write what each lane gets in an exchange of the lanes `active`: a word, and a predicate.

    `seconds` are the offsets of a shuffle, whose clamps are `thirds`, and else the lanes' masks.
    """
    if kind == SHUFFLE:
        shuffle(mode, values, seconds, thirds, active, to, holds)
    elif kind == VOTE:
        vote(mode, values, active, seconds, to, holds)
    elif kind == MATCH:
        match_values(mode, values, active, seconds, to, holds)
    elif kind == REDUCE:
        reduce_lanes(mode, values, active, seconds, to)
    elif kind == ELECT:
        for lane in range(32):
            others = seconds[lane] & active
            to[lane] = trailing_zeros(others) if others else 31
            holds[lane] = 1 if to[lane] == lane else 0
    else:
        for lane in range(32):
            to[lane] = active


def shuffle(
    mode: int, values: I64, steps: U32, clamps: U32, active: int, to: U32, valid: U8
) -> None:
    """Write the value of each lane's source lane, and whether that is in range (PTX ISA,
    shfl.sync). A lane that is not active gives 0, as on an H200: the ISA leaves it open."""
    for lane in range(32):
        offset = steps[lane] & 31
        segment = (clamps[lane] >> 8) & 31
        last = (lane & segment) | (clamps[lane] & 31 & ~segment)
        source = (lane & segment) | (offset & ~segment)
        if mode == UP:
            source = lane - offset
        if mode == DOWN:
            source = lane + offset
        if mode == BFLY:
            source = lane ^ offset
        holds = 0
        if (mode == UP and source >= last) or (mode != UP and source <= last):
            holds = 1
        else:
            source = lane
        to[lane] = values[source] if (active >> source) & 1 else 0
        valid[lane] = holds


def vote(mode: int, values: I64, active: int, masks: U32, to: U32, holds: U8) -> None:
    """Write the vote of each lane's mask as a word, and as a predicate."""
    yes = 0
    for lane in range(32):
        yes |= (1 if values[lane] != 0 else 0) << lane
    for lane in range(32):
        others = masks[lane] & active
        outcome = yes & others
        every = 1 if outcome == others else 0
        some = 1 if outcome != 0 else 0
        to[lane] = outcome
        holds[lane] = every if mode == ALL else some
        if mode == UNI:
            holds[lane] = every | (1 - some)


def match_values(mode: int, values: I64, active: int, masks: U32, to: U32, holds: U8) -> None:
    """Write the lanes of each lane's mask that have its value; with ALL all lanes of the mask or
    none, and whether they agree."""
    for lane in range(32):
        others = masks[lane] & active
        peers = 0
        for other in range(32):
            if (others >> other) & 1 and values[other] == values[lane]:
                peers = peers | (1 << other)
        agree = 1 if peers == others else 0
        if mode == ALL and not agree:
            peers = 0
        to[lane] = peers
        holds[lane] = agree


def reduce_lanes(operation: int, values: I64, active: int, masks: U32, to: U32) -> None:
    """Write the reduction of the active lanes in each lane's mask."""
    remainder = active
    while remainder:
        first = trailing_zeros(remainder)
        mask = masks[first]
        total = reduce_some(operation, values, (active & mask) | (1 << first))
        for lane in range(first, 32):
            if (remainder >> lane) & 1 and masks[lane] == mask:
                to[lane] = total
                remainder = remainder & ~(1 << lane)


def reduce_some(operation: int, values: I64, lanes: int) -> int:
    """Return the reduction of the values of some lanes."""
    first = trailing_zeros(lanes)
    total = values[first]
    for lane in range(first + 1, 32):
        if (lanes >> lane) & 1:
            total = combine(operation, total, values[lane])
    return int(total)


def combine(operation: int, a: int, b: int) -> int:
    """Return the reduction of two values."""
    if operation == ADD:
        return a + b
    if operation == MIN:
        return min(a, b)
    if operation == MAX:
        return max(a, b)
    if operation == AND:
        return a & b
    return a | b if operation == OR else a ^ b


@dataclass(frozen=True, slots=True)
class Exchange:
    """The arguments of `exchange` for an instruction: operands with their types, and the results
    that it writes, words or predicates."""

    kind: int
    mode: int
    value: tuple[Operand, str]
    second: Operand
    third: Operand
    outputs: tuple[tuple[Operand, str], ...]


def exchange_of(instruction: Instruction) -> Exchange | None:
    """Return the exchange of an instruction, None if `exchange` has it not."""
    kind, operands = _KINDS.get(instruction.opcode), instruction.operands
    if kind is None or (kind == REDUCE and instruction.type not in ("u32", "s32", "b32")):
        return None
    modes = _MODES.get(kind)
    mode = next(modes[m] for m in instruction.modifiers if m in modes) if modes else 0
    types = {SHUFFLE: "b32", VOTE: "pred", ELECT: "b32", ACTIVE: "b32"}
    value = _NONE if kind in (ELECT, ACTIVE) else operands[1]
    second, third = operands[2:4] if kind == SHUFFLE else (_members(instruction), _NONE)
    to = operands[0]
    outputs: tuple[tuple[Operand, str], ...]
    if kind in (SHUFFLE, MATCH, ELECT):
        first, holds = (to.first, to.second) if isinstance(to, Pair) else (to, Bucket())
        outputs = ((first, "b32"), (holds, "pred"))
    elif kind == VOTE:
        outputs = ((to, "b32" if mode == BALLOT else "pred"),)
    else:
        outputs = ((to, instruction.type if kind == REDUCE else "b32"),)
    return Exchange(kind, mode, (value, types.get(kind, instruction.type)), second, third, outputs)


def _members(instruction: Instruction) -> Operand:
    """Return the member mask of an instruction, which may differ by lane."""
    if "sync" not in instruction.modifiers:
        return ALL_LANES
    return instruction.operands[1 if instruction.opcode == "elect" else 2]


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
    form = exchange_of(instruction)
    if form is not None:
        sources = [decoder.fetch(*form.value)]
        members = None
        if form.kind == SHUFFLE:
            sources += [decoder.fetch(operand, "u32") for operand in (form.second, form.third)]
        else:
            members = decoder.fetch(form.second, "b32")
        return Collective(tuple(sources), form.outputs, _computed(form), members)
    return _reduce_floats(decoder, instruction) if instruction.opcode == "redux" else None


def _computed(form: Exchange) -> Callable[..., tuple[Array, ...]]:
    """Return the `compute` of a Collective that is an exchange."""

    def compute(active: Mask, others: Bits, value: Array, *more: Array) -> tuple[Array, ...]:
        shape = active.shape
        values = np.ascontiguousarray(np.broadcast_to(value, shape), np.int64)
        pairs = more or (others, others)
        seconds, thirds = (
            np.ascontiguousarray(np.broadcast_to(each, shape), np.uint32) for each in pairs
        )
        packed = np.ascontiguousarray(pack(active))
        to, holds = np.zeros(shape, np.uint32), np.zeros(shape, np.bool_)
        arrays = (values, seconds, thirds, packed, to, holds)
        (run,) = compile_routines(exchange_warps, vectors=True)
        run(form.kind, form.mode, shape[0], *map(address, arrays))
        return tuple(holds if kind == "pred" else to.view(DTYPES[kind]) for _, kind in form.outputs)

    return compute


def _together(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a warp-wide operation."""
    collective = decode_collective(decoder, instruction)
    if collective is None:
        raise decoder.refuse("cutrace does not know this instruction")
    stores = [decoder.store(*output) for output in collective.outputs]
    guard = decoder.guard()

    def act(group: Group) -> None:
        active = group.guarded_lanes(guard)
        others = others_of(group, active, collective.members)
        values = [by_warp(group, fetch(group.frame)) for fetch in collective.sources]
        results = collective.compute(active, others, *values)
        for store, result in zip(stores, results, strict=True):
            store(group.frame, result)

    return act


def by_warp(group: Group, value: Array) -> Array:
    """Return a value as (warps, 32)."""
    return np.broadcast_to(value, group.shape)


def others_of(group: Group, active: Mask, members: Fetch | None) -> Bits:
    """Return the active lanes that each lane exchanges with, all (warps, 1) or, by its mask,
    (warps, 32).
    """
    everyone = pack(active)[:, None]
    return everyone if members is None else everyone & by_warp(group, members(group.frame))


def _unpacked(lanes: Bits) -> Mask:
    """Return (n, k) masks as (n, k, 32)."""
    bits: Bits = lanes[:, :, None] >> np.arange(LANES, dtype=np.uint32) & np.uint32(1)
    return bits.astype(np.bool_)


def _warp_barrier(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Decode `bar.warp.sync`, at which all lanes are here; other barriers end a basic block."""
    return skip(decoder, instruction) if "warp" in instruction.modifiers else None


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

    members = decoder.fetch(_members(instruction), "b32")
    return Collective((decoder.fetch(source, "b32"),), ((to, "b32"),), redux, members)


def first_lane(lanes: Bits) -> NDArray[np.int64]:
    """Return the index of the lowest one bit; 31 if there is none."""
    none_below: Bits = np.bitwise_count(~lanes & (lanes - np.uint32(1)))
    return np.minimum(none_below.astype(np.int64), LANES - 1)


STEPS: StepTable = {
    "bar": _warp_barrier,
    "barrier": _warp_barrier,
    **dict.fromkeys(_KINDS, _together),
}
