"""Atomic operations and reductions (PTX ISA 9.7.13.5), lane by lane in order.

The atomics of one step take effect in order of block, warp and lane: a compiled loop over the
lanes, one per operation and type, made on first use.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from ....jit.machine_code import address, compile_function
from ....jit.ufunc import select
from ....traces.schema import Space
from ...ptx.kernel import Bucket, Instruction
from ..ops.lanes import DTYPES, Array, Mask
from ..ops.update import OPERATIONS, update
from ..warp.decoder import Decoder, StepTable
from ..warp.program import Group, Step
from .access import resolve
from .address import Access, describe, elements
from .bounds import Window, mark_written, require_written

_LOOP = """{definitions}
define void @{name}(i64 %n, ptr %words, ptr %index, ptr %bs, ptr %ds, ptr %olds) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pi = getelementptr i64, ptr %index, i64 %i
  %at = load i64, ptr %pi
  %pw = getelementptr {t}, ptr %words, i64 %at
  %old = load {t}, ptr %pw, align 1
  %pb = getelementptr {t}, ptr %bs, i64 %i
  %b = load {t}, ptr %pb, align 1
  %pd = getelementptr {t}, ptr %ds, i64 %i
  %d = load {t}, ptr %pd, align 1
  {body}
  store {t} %new, ptr %pw, align 1
  %po = getelementptr {t}, ptr %olds, i64 %i
  store {t} %old, ptr %po, align 1
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


Update = Callable[..., None]


@cache
def _compiled(name: str, element: str, body: str, definitions: str = "") -> Update:
    text = _LOOP.format(name=name, t=element, body=body, definitions=definitions)
    return compile_function(text, name, ctypes.c_int64, *(ctypes.c_void_p,) * 5)


def _updater(operation: str, kind: str, in_global: bool) -> Update | None:
    """Return the loop of an operation on a PTX type; None if PTX has no such combination."""
    recipe = update(operation, kind, in_global)
    name = f"atomic_{operation}_{kind}{'_global' * in_global}"
    return None if recipe is None else _compiled(name, *recipe)


def update_lanes(name: str, element: str, body: str) -> Callable[..., Array]:
    """Return a function that updates a word for each lane in order, and returns the old values.

    It takes a group, lanes, an access of one element and two operands; `body` is as in `op.update`.
    """
    run = _compiled(name, element, body)

    def apply(group: Group, lanes: Mask | None, access: Access, values: list[Array]) -> Array:
        old: Array = np.zeros((1, 1), dtype=access.dtype)
        for mask, where in resolve(group, lanes, access, access.address(group.frame)):
            new = _apply(run, group, access, where, 0, values)
            old = new if mask is None else select(mask, new, old)
        return old

    return apply


def decode_atomic(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of an `atom` or `red`, or None for `red.async`."""
    if "async" in instruction.modifiers:
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
        lanes = group.guarded(None if access.guard is None else access.guard(frame))
        values = [[fetch(frame) for fetch in part] for part in fetches]
        old: list[Array] = [np.zeros((1, 1), dtype=dtype) for _ in range(count)]
        for mask, where in resolve(group, lanes, access, access.address(frame)):
            if operation != "exch":
                require_written(group, access, access.address(frame), where)
            mark_written(where, count)
            run = _updater(operation, kind, where.space == Space.GLOBAL)
            for k in range(count):
                new = _apply(run, group, access, where, k, [part[k] for part in values])
                old[k] = new if mask is None else select(mask, new, old[k])
        for store, value in zip(stores, old, strict=True):
            if store is not None:
                store(frame, value)

    return atomic


STEPS: StepTable = {"atom": decode_atomic, "red": decode_atomic}


def _apply(
    run: Callable[..., None] | None, group: Group, access: Access, where: Window, element: int,
    values: list[Array],
) -> Array:  # fmt: skip
    """Update memory lane by lane; return the old value of each active lane, in the group's
    shape.
    """
    assert run is not None
    shape = (group.rows, group.columns)
    words, index = where.flat()
    lane_mask: Mask = np.broadcast_to(True if where.lanes is None else where.lanes, shape)
    at = np.ascontiguousarray(np.broadcast_to(index, shape)[lane_mask] + element, dtype=np.int64)
    operands = [
        np.ascontiguousarray(np.broadcast_to(v, shape)[lane_mask], dtype=access.dtype)
        for v in values
    ]
    old: Array = np.zeros(shape, dtype=access.dtype)
    old_words: Array = np.empty(len(at), dtype=access.dtype)
    run(len(at), *map(address, (words, at, operands[0], operands[-1], old_words)))
    old[lane_mask] = old_words
    return old
