"""`cp.async`: copies from global to shared memory (PTX ISA 9.7.9.25).

A copy is done when it is issued, which is one of the times that the ISA allows, so that there is
nothing to wait for. It makes two accesses: part 0 reads, part 1 writes. Bytes beyond the source
size are zeros; lanes that read only some of their bytes, or none, have no row of reading.
"""

from dataclasses import replace

import numpy as np

from ....native.ufunc import select
from ....traces.schema import Space
from ....traces.table.unique import sorted_unique
from ...ptx.kernel import Immediate, Instruction, Operand, Register
from ..array.decoder import Decoder
from ..array.program import Group, Step
from ..array.shuffle_vote import by_lane, by_warp
from ..array.slot import Fetch
from ..lanes import Array, Mask
from .access import read, write
from .address import Access, describe


def decode_async_copy(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a `cp.async`, or None if the instruction is none."""
    if instruction.opcode != "cp" or "async" not in instruction.modifiers:
        return None
    if {"commit_group", "wait_group", "wait_all"} & set(instruction.modifiers):
        return lambda group: None
    if "bulk" in instruction.modifiers or "mbarrier" in instruction.modifiers:
        return None
    return _copy(decoder, instruction)


def _copy(decoder: Decoder, instruction: Instruction) -> Step:
    operands = list(instruction.operands)
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        operands.pop()
    size = operands[2].bits if len(operands) > 2 and isinstance(operands[2], Immediate) else 0
    if size not in (4, 8, 16):
        raise decoder.refuse("expected two addresses and a number of bytes: 4, 8 or 16")
    dtype = np.dtype(np.uint32 if size == 4 else np.uint64)
    count = size // dtype.itemsize
    to, source = (
        replace(describe(decoder, instruction, o), space=space, dtype=dtype, count=count)
        for o, space in zip(operands[:2], (Space.SHARED, Space.GLOBAL), strict=True)
    )
    given = _source_size(decoder, operands[3], size) if len(operands) > 3 else None

    def copy(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(None if to.guard is None else to.guard(frame))
        where, value = to.address(frame), source.address(frame)
        if given is None:
            write(group, lanes, replace(to, part=1), where, read(group, lanes, source, value))
            return
        _copy_some(group, lanes, (to, source), (where, value), given(frame))

    return copy


def _source_size(decoder: Decoder, operand: Operand, size: int) -> Fetch:
    """Return a function to how many bytes each lane reads; a predicate says to read none."""
    if isinstance(operand, Register) and operand.type == "pred":
        ignored = decoder.fetch(operand, "pred")
        return lambda frame: np.where(ignored(frame), 0, size)
    given = decoder.fetch(operand, "u32")
    return lambda frame: np.minimum(given(frame), size).astype(np.int64)


def _copy_some(
    group: Group, lanes: Mask | None, accesses: tuple[Access, Access],
    places: tuple[Array, Array], sizes: Array,
) -> None:  # fmt: skip
    """Copy where lanes read different numbers of bytes; a warp's parts follow each other."""
    to, source = accesses
    shape = (group.rows, group.columns)
    active: Mask = np.broadcast_to(True if lanes is None else lanes, shape)
    sizes = np.broadcast_to(sizes, shape)
    full = active & (sizes == source.width)
    values = read(group, full, source, places[1])
    for bytes_read in sorted_unique(sizes[active & ~full]):
        some = active & (sizes == bytes_read)
        partial = _read_bytes(group, some, source, places[1], int(bytes_read))
        values = [select(some, new, old) for new, old in zip(partial, values, strict=True)]
    some_lane: Mask = np.any(by_warp(group, full), axis=1, keepdims=True)
    reads = by_lane(group, some_lane)
    for part, warps in ((1, reads), (0, ~reads)):
        write(group, active & warps, replace(to, part=part), places[0], values)


def _read_bytes(
    group: Group, lanes: Mask, source: Access, value: Array, bytes_read: int
) -> list[Array]:
    """Return the elements of which only the first bytes are read, without a row."""
    octet = np.dtype(np.uint8)
    values: list[Array] = [np.zeros((1, 1), dtype=source.dtype) for _ in range(source.count)]
    for place in range(bytes_read):
        access = replace(source, dtype=octet, count=1, offset=source.offset + place, hidden=True)
        (found,) = read(group, lanes, access, value)
        element, shift = divmod(place, source.dtype.itemsize)
        wide = found.astype(source.dtype) << source.dtype.type(8 * shift)
        values[element] = values[element] | wide
    return values
