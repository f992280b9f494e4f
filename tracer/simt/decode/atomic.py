"""Atomic operations and reductions (PTX ISA 9.7.13.5), lane by lane in order.

The atomics of one step take effect in order of block, warp and lane.

`multimem` has addresses that stand for the memory of several devices (9.7.9.14). cutrace runs one
device: a reduction of what all of them have is what that one has, and a store to all of them a
store.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....jit.ufunc import select
from ...ptx.kernel import Bucket, Instruction
from ..access.access import Access, resolve
from ..access.lane_move import Update, updater
from ..ops.lanes import DTYPES, Array, Mask, pack
from ..ops.update import OPERATIONS, fetch_operation, update
from ..warp.program import Group, Step
from . import load_store
from .address import describe, elements
from .decoder import Decoder, StepTable


def _updater(operation: str, kind: str, in_global: bool) -> Update | None:
    """Return the update of an operation on a PTX type; None if PTX has no such combination."""
    code, name = update(operation, kind, in_global), f"atomic_{operation}_{kind}"
    fetch = fetch_operation(operation, kind) if in_global else ""
    return None if code is None else updater(name, DTYPES[kind], code, fetch)


def update_lanes(name: str, code: tuple[str, str, str]) -> Callable[..., Array]:
    """Return a function that updates a word for each lane in order, and returns the old values.

    It takes a group, lanes, an access of one element and two operands; `code` is as of `op.update`.
    """

    def apply(group: Group, lanes: Mask | None, access: Access, values: list[Array]) -> Array:
        addresses = access.addresses(group, access.address(group.frame))
        reached = resolve(group, lanes, access, addresses)
        return updater(name, access.dtype, code)(reached.pointers, reached.lanes, 0, values)

    return apply


def decode_atomic(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of an `atom` or `red`, or None for `red.async` of shared memory."""
    if "async" in instruction.modifiers and instruction.space != "global":
        return None
    operands = list(instruction.operands)
    to = operands.pop(0) if instruction.opcode == "atom" else Bucket()
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        operands.pop()
    kind = instruction.type
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    if _updater(operation, kind, False) is None:
        raise decoder.refuse("cutrace does not know this instruction")
    access = describe(decoder, instruction, operands[0])
    count = access.count
    source_count = 2 if operation == "cas" else 1
    if any(len(elements(o)) != count for o in operands[1:]) or len(operands) < source_count + 1:
        raise decoder.refuse(f"expected {source_count} sources of {count} elements")
    fetches = [[decoder.fetch(e, kind) for e in elements(o)] for o in operands[1:3]]
    stores = [decoder.store(e, kind) for e in elements(to)] * (1 if to != Bucket() else count)
    dtype = DTYPES[kind]

    def atomic(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        values = [[fetch(frame) for fetch in part] for part in fetches]
        addresses = access.addresses(group, access.address(frame))
        reached = resolve(group, lanes, access, addresses)
        if operation != "exch":
            reached.require_written(group, access, addresses)
        reached.mark_written(access)
        is_global = np.broadcast_to(access.is_global(addresses), addresses.shape)
        for k, store in enumerate(stores):
            old: Array = np.zeros((1, 1), dtype=dtype)
            for in_global, lanes_there in ((True, is_global), (False, ~is_global)):
                some, run = reached.lanes & pack(lanes_there), _updater(operation, kind, in_global)
                if some.any() and run is not None:
                    new = run(reached.pointers, some, k, [part[k] for part in values])
                    old = select(lanes_there, new, old)
            store(frame, old)

    return atomic


_WORDS = dict.fromkeys(("e4m3x4", "e5m2x4", "f16x2", "bf16x2"), "b32")
"""Types of loads and stores of `multimem` that have no other register than 32 bits."""


def _of_one_device(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of the load, the store or the reduction of one device."""
    kind, *modifiers = instruction.modifiers
    if kind == "red":
        return decode_atomic(
            decoder, replace(instruction, opcode="red", modifiers=tuple(modifiers))
        )
    opcode = "ld" if kind == "ld_reduce" else "st"
    words = tuple(_WORDS.get(m, m) for m in modifiers if not m.startswith("acc"))
    plain = replace(instruction, opcode=opcode, modifiers=words)
    return load_store.STEPS[opcode](decoder, plain)


STEPS: StepTable = {"atom": decode_atomic, "red": decode_atomic, "multimem": _of_one_device}
