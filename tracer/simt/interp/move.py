"""Decoding of arithmetic and moves: operands bound to a row of the operation tables."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...ptx.kernel import (
    TYPE_BYTES,
    Instruction,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Special,
    Symbol,
)
from ..call.argument_passing import lane_numbers
from ..decode.address import elements, place_parameters
from ..decode.decoder import Decoder, Fetch, StepTable, Store, discard, skip
from ..decode.move import move_rule
from ..decode.special_register import CLOCKS
from ..ops.family import SHARED_FAMILIES
from ..ops.lanes import DTYPES, Array, scalar
from ..ops.rule import Rule
from ..warp.program import Group, Step


def decode_alu(decoder: Decoder, instruction: Instruction, rule: Rule) -> Step:
    """Bind an operation table's row to the instruction's operands."""
    results, operands = split_operands(instruction)
    if len(operands) != len(rule.sources):
        raise decoder.refuse(f"expected {len(rule.sources)} sources, found {len(operands)}")
    if instruction.opcode != "cvt":
        _require_sizes(decoder, [*results, *operands], [*rule.results, *rule.sources])
    step, guard = _bind(decoder, rule, results, operands), decoder.guard()
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


def split_operands(instruction: Instruction) -> tuple[list[Operand], list[Operand]]:
    """Return the operands that are results, and those that are sources."""
    first, *source_operands = instruction.operands
    if instruction.opcode == "cvt":  # of four numbers at once
        source_operands = [e for operand in source_operands for e in elements(operand)]
    if isinstance(first, Pair):
        return [first.first, first.second], source_operands
    return [first], source_operands


def _bind(
    decoder: Decoder, rule: Rule, results: Sequence[Operand], operands: Sequence[Operand]
) -> Step:
    """Return the step that computes the results of a row from its operands."""
    fetches = [decoder.fetch(o, k) for o, k in zip(operands, rule.sources, strict=True)]
    carry = decoder.slots.of_carry(decoder.function)
    if rule.carry_in:
        fetches.append(decoder.slots.fetch_slot(carry, DTYPES["pred"]))
    stores = [decoder.store(o, k) for o, k in zip(results, rule.results, strict=False)]
    if rule.carry_out:
        stores.append(decoder.store_slot(carry, "pred"))
    compute = rule.compute

    def many(group: Group) -> None:
        frame = group.frame
        values = compute(*[fetch(frame) for fetch in fetches])
        for store, value in zip(stores, values, strict=True):
            store(frame, value)

    if len(stores) > 1:
        return many
    store = stores[0]
    if store is discard:
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
NO_EFFECT = frozenset(SHARED_FAMILIES["no effect here"])
"""Hints, fences and waits: accesses are in order here, and no time passes."""


def _decode_move(decoder: Decoder, instruction: Instruction) -> Step:
    parameters = place_parameters(decoder) if instruction.space == "param" else (0, 0)
    rule = move_rule(instruction, parameters)
    if rule is None:
        return _move(decoder, instruction)
    to, *sources = map(elements, instruction.operands)
    operands = [operand for source in sources for operand in source]
    is_joined = len(rule.sources) > len(rule.results)
    if is_joined and any(isinstance(operand, Special) for operand in operands):
        raise decoder.refuse("expected a register as long as all parts of the special one")
    return _bind(decoder, rule, to, operands if rule.sources else ())


def _move(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    kind = instruction.type
    if isinstance(source, Special) and source.name in CLOCKS | _TIMERS:
        begin = decoder.launch.begin if source.name in _TIMERS else 0
        return _clock(decoder, to, kind, begin)
    fetch, store = decoder.fetch(source, kind), decoder.store(to, kind)
    if store is discard:
        return skip(decoder, instruction)
    has_levels = decoder.passing.has_levels
    if isinstance(source, Symbol) and has_levels(decoder.function, source.name):
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


def _clock(decoder: Decoder, to: Operand, kind: str, begin: int) -> Step:
    dtype = DTYPES[kind]
    store = decoder.store(to, kind)
    position = scalar(begin + decoder.position, dtype)[0, 0]

    def clock(group: Group) -> None:
        now = group.step.astype(dtype) + dtype.type(group.wave.machine.clock_leap)
        store(group.frame, (now + position)[:, None])

    return clock


STEPS: StepTable = {
    **dict.fromkeys(NO_EFFECT, skip),
    **dict.fromkeys(SHARED_FAMILIES["moves and addresses"], _decode_move),
}
