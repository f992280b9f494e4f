"""Instructions that compute: operands to a row of the operation tables to registers."""

from typing import cast

import numpy as np

from ...ptx.kernel import TYPE_BYTES, Instruction, Not, Operand, Pair, Part, Register
from ..lanes import DTYPES, Array
from ..op.rule import Rule
from .decoder import Decoder
from .program import Group, Step
from .slot import Fetch, Store

_STEPPED = frozenset({"add.s64", "add.u64", "add.s32", "add.u32"})
"""Sums: if one operand is uniform, the result keeps the facts of the other as addresses."""


def decode_alu(decoder: Decoder, instruction: Instruction, rule: Rule) -> Step:
    """Bind a row to its operands."""
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
    if instruction.mnemonic in _STEPPED and guard is None:
        return _sum(decoder, operands, fetches, stores[0])
    step = _bind(rule, fetches, stores)
    return step if guard is None else _counted(step, guard, decoder.pc)


def _require_sizes(decoder: Decoder, operands: list[Operand], kinds: list[str]) -> None:
    """Refuse registers that are not as wide as the instruction takes them (cvt takes any)."""
    for operand, kind in zip(operands, kinds, strict=False):
        register = operand.register if isinstance(operand, (Part, Not)) else operand
        if isinstance(register, Register):
            found, expected = TYPE_BYTES[register.type], DTYPES[kind].itemsize
            if found != expected or (register.type == "pred") != (kind == "pred"):
                wanted = "a predicate" if kind == "pred" else f"{8 * expected} bits"
                raise decoder.refuse(f"`{register.name}` is .{register.type}, expected {wanted}")


def _split(instruction: Instruction) -> tuple[list[Operand], list[Operand]]:
    first, *rest = instruction.operands
    if isinstance(first, Pair):
        return [first.first, first.second], rest
    return [first], rest


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
    """Compute what nobody reads."""


def _sum(
    decoder: Decoder, operands: list[Operand], fetches: list[Fetch], store: Store | None
) -> Step:
    """Add, and tell the facts when a uniform number steps a value."""
    if store is None:
        return _nothing
    slots = [
        decoder.slots.of(decoder.function, o) if isinstance(o, Register) else -1 for o in operands
    ]
    pairs = ((slots[0], fetches[1]), (slots[1], fetches[0]))

    def step(group: Group) -> None:
        frame = group.frame
        result = np.add(fetches[0](frame), fetches[1](frame))
        for slot, other in pairs:
            if slot >= 0 and frame[slot].size > 1 and (addend := other(frame)).size == 1:
                group.wave.facts.note_sum(result, frame[slot], addend)
        store(frame, result)

    return step


def _counted(step: Step, guard: Fetch, pc: int) -> Step:
    """Record also for how many lanes the guard held."""

    def counted(group: Group) -> None:
        on = guard(group.frame)
        lanes = group.lanes
        group.wave.rows.add_lanes_on(pc, group, on if lanes is None else on & lanes)
        step(group)

    return counted
