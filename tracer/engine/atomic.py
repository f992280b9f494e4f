"""Atomic operations and reductions (PTX ISA 9.7.13.5), lane after lane in order.

The atomics of one step take effect in order of block, warp and lane: a compiled loop over the
lanes, one for each operation and type, made when first used.
"""

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..ptx.kernel import Bucket, Instruction
from .access import Access, describe, resolve
from .array import DTYPES, Array, Mask
from .native import address, compile_function, select
from .place import Reach
from .program import Step

if TYPE_CHECKING:
    from .decode import Decoder
    from .group import Group

_PICK = "%c = {compare} {t} %old, %b\n  %new = select i1 %c, {t} %old, {t} %b"
_INTEGER: Mapping[str, str] = {
    "add": "%new = add {t} %old, %b",
    "and": "%new = and {t} %old, %b",
    "or": "%new = or {t} %old, %b",
    "xor": "%new = xor {t} %old, %b",
    "exch": "%new = or {t} %b, 0",
    "cas": "%same = icmp eq {t} %old, %b\n  %new = select i1 %same, {t} %d, {t} %old",
    "inc": "%over = icmp uge {t} %old, %b\n  %up = add {t} %old, 1\n"
    "  %new = select i1 %over, {t} 0, {t} %up",
    "dec": "%zero = icmp eq {t} %old, 0\n  %over = icmp ugt {t} %old, %b\n"
    "  %wrap = or i1 %zero, %over\n  %down = sub {t} %old, 1\n"
    "  %new = select i1 %wrap, {t} %b, {t} %down",
}
_ORDER = {("min", "u"): "icmp ult", ("max", "u"): "icmp ugt"} | {
    ("min", "s"): "icmp slt",
    ("max", "s"): "icmp sgt",
}

_LOOP = """
define void @{name}(i64 %n, ptr %words, ptr %index, ptr %bs, ptr %ds, ptr %olds) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pi = getelementptr i64, ptr %index, i64 %i
  %at = load i64, ptr %pi
  %pw = getelementptr {t}, ptr %words, i64 %at
  %old = load {t}, ptr %pw
  %pb = getelementptr {t}, ptr %bs, i64 %i
  %b = load {t}, ptr %pb
  %pd = getelementptr {t}, ptr %ds, i64 %i
  %d = load {t}, ptr %pd
  {body}
  store {t} %new, ptr %pw
  %po = getelementptr {t}, ptr %olds, i64 %i
  store {t} %old, ptr %po
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@cache
def _updater(operation: str, kind: str) -> Callable[..., None] | None:
    """Compile the loop of an operation on a PTX type; None where PTX has no such thing."""
    bits = kind[1:]
    if kind in ("f32", "f64") and operation == "add":
        element, body = {"f32": "float", "f64": "double"}[kind], "%new = fadd {t} %old, %b"
    elif (operation, kind[0]) in _ORDER:
        element, body = f"i{bits}", _PICK.replace("{compare}", _ORDER[operation, kind[0]])
    elif operation in _INTEGER and kind[0] in "bus":
        element, body = f"i{bits}", _INTEGER[operation]
    else:
        return None
    name = f"atomic_{operation}_{kind}"
    text = _LOOP.format(name=name, t=element, body=body.format(t=element))
    return compile_function(text, name, ctypes.c_int64, *(ctypes.c_void_p,) * 5)


def decode_atomic(decoder: "Decoder", instruction: Instruction) -> Step | None:
    """Return the step of an `atom` or `red`, or None if the instruction is neither."""
    if instruction.opcode not in ("atom", "red") or "async" in instruction.modifiers:
        return None
    operands = list(instruction.operands)
    to = operands.pop(0) if instruction.opcode == "atom" else Bucket()
    kind = instruction.type
    operation = next((m for m in instruction.modifiers if m in _NAMES), "")
    update = _updater(operation, kind)
    if update is None or instruction.vector > 1:
        raise decoder.refuse("cutrace does not know this instruction")
    access = describe(decoder, instruction, operands[0])
    fetches = [decoder.fetch(o, kind) for o in operands[1:3]]
    store = decoder.store(to, kind)

    def atomic(group: "Group") -> None:
        frame = group.frame
        lanes = group.guarded(None if access.guard is None else access.guard(frame))
        values = [fetch(frame) for fetch in fetches]
        old: Array = np.zeros((1, 1), dtype=DTYPES[kind])
        for mask, where in resolve(group, lanes, access, access.address(frame)):
            new = _apply(update, group, access, where, values)
            old = new if mask is None else select(mask, new, old)
        if store is not None:
            store(frame, old)

    return atomic


_NAMES = frozenset({*_INTEGER, "min", "max"})


def _apply(
    update: Callable[..., None], group: "Group", access: Access, where: Reach, values: list[Array]
) -> Array:
    """Update memory lane after lane; return what each active lane found, in the group's shape."""
    shape = (group.rows, group.columns)
    words, index = where.flat()
    chosen: Mask = np.broadcast_to(True if where.lanes is None else where.lanes, shape)
    at = np.ascontiguousarray(np.broadcast_to(index, shape)[chosen], dtype=np.int64)
    given = [
        np.ascontiguousarray(np.broadcast_to(v, shape)[chosen], dtype=access.dtype) for v in values
    ]
    old: Array = np.zeros(shape, dtype=access.dtype)
    found: Array = np.empty(len(at), dtype=access.dtype)
    update(len(at), *map(address, (words, at, given[0], given[-1], found)))
    old[chosen] = found
    return old
