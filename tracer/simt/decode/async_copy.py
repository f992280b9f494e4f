"""Asynchronous copies from global to shared memory, `cp.async`, and `mbarrier` (PTX ISA 9.7.9.25).

A copy completes when it is issued, one of the times that the ISA allows, so waits have no effect.
It makes two accesses: part 0 reads, part 1 writes. Bytes beyond the source size are zero-filled;
lanes that read only some of their bytes, or none, have no row for the read. An mbarrier is a 64-bit
word in shared memory with the phase's pending arrivals and bytes.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....jit.ufunc import select
from ....traces.schema import Space
from ....traces.unique import sorted_unique
from ...ptx.kernel import Bucket, Immediate, Instruction, Operand, Register
from ..access.access import Access, as_addresses, read, write
from ..access.bounds import name_lane
from ..ops.lanes import Array, Mask, scalar
from ..warp.program import Group, Step
from .address import describe
from .atomic import update_lanes
from .decoder import Decoder, Fetch, StepTable, skip


def _decode_copy(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a `cp.async`, or None for another copy."""
    modifiers = set(instruction.modifiers)
    if "async" not in modifiers:
        return None
    if modifiers & {"commit_group", "wait_group", "wait_all"}:
        return skip(decoder, instruction)
    if "mbarrier" in modifiers:
        return _copies_arrive(decoder, instruction)
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
    size_fetch = _source_size(decoder, operands[3], size) if len(operands) > 3 else None

    def copy(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(to.guard)
        where, value = to.address(frame), source.address(frame)
        if size_fetch is None:
            write(group, lanes, replace(to, part=1), where, read(group, lanes, source, value))
            return
        _copy_some(group, lanes, (to, source), (where, value), size_fetch(frame))

    return copy


def _source_size(decoder: Decoder, operand: Operand, size: int) -> Fetch:
    """Return a fetch of the bytes that each lane reads; a predicate operand means to read none."""
    if isinstance(operand, Register) and operand.type == "pred":
        ignored = decoder.fetch(operand, "pred")
        return lambda frame: np.where(ignored(frame), 0, size)
    size_fetch = decoder.fetch(operand, "u32")
    return lambda frame: np.minimum(size_fetch(frame), size).astype(np.int64)


def _copy_some(
    group: Group, lanes: Mask | None, accesses: tuple[Access, Access],
    places: tuple[Array, Array], sizes: Array,
) -> None:  # fmt: skip
    """Copy where lanes read different numbers of bytes; a warp's parts stay consecutive."""
    to, source = accesses
    shape = group.shape
    active: Mask = np.broadcast_to(True if lanes is None else lanes, shape)
    sizes = np.broadcast_to(sizes, shape)
    full = active & (sizes == source.width)
    values = read(group, full, source, places[1])
    for bytes_read in sorted_unique(sizes[active & ~full]):
        some = active & (sizes == bytes_read)
        partial = _read_bytes(group, some, source, places[1], int(bytes_read))
        values = [select(some, new, old) for new, old in zip(partial, values, strict=True)]
    reads: Mask = full.any(axis=1, keepdims=True)
    for part, warps in ((1, reads), (0, ~reads)):
        write(group, active & warps, replace(to, part=part), places[0], values)


def _read_bytes(
    group: Group, lanes: Mask, source: Access, value: Array, bytes_read: int
) -> list[Array]:
    """Return elements with only their first bytes read, the others 0; record no row."""
    octet = np.dtype(np.uint8)
    values: list[Array] = [np.zeros((1, 1), dtype=source.dtype) for _ in range(source.count)]
    for place in range(bytes_read):
        access = replace(source, dtype=octet, count=1, offset=source.offset + place, hidden=True)
        (octets,) = read(group, lanes, access, value)
        element, shift = divmod(place, source.dtype.itemsize)
        wide = octets.astype(source.dtype) << source.dtype.type(8 * shift)
        values[element] = values[element] | wide
    return values


_COUNT = np.uint64((1 << 20) - 1)
_PHASE = np.uint64(61)
_B64 = np.dtype(np.uint64)

_ARRIVE = """%count = and i64 %b, 1048575
  %pending = and i64 %old, 1048575
  %left = sub i64 %pending, %count
  %ex = lshr i64 %old, 20
  %drop = lshr i64 %b, 32
  %expected0 = sub i64 %ex, %drop
  %expected = and i64 %expected0, 1048575
  %high = shl i64 %old, 3
  %bytes = ashr i64 %high, 43
  %tx = add i64 %bytes, %d
  %phase = lshr i64 %old, 61
  %none = icmp eq i64 %left, 0
  %dry = icmp eq i64 %tx, 0
  %whole = and i1 %none, %dry
  %later = add i64 %phase, 1
  %ph = select i1 %whole, i64 %later, i64 %phase
  %coming = select i1 %whole, i64 %expected, i64 %left
  %n1 = and i64 %coming, 1048575
  %e1 = shl i64 %expected, 20
  %tx1 = and i64 %tx, 2097151
  %t1 = shl i64 %tx1, 40
  %p1 = shl i64 %ph, 61
  %w1 = or i64 %n1, %e1
  %w2 = or i64 %t1, %p1
  %new = or i64 %w1, %w2"""
"""%b arrivals, whose upper half is not expected in later phases; %d bytes to come."""


def _decode_mbarrier(decoder: Decoder, instruction: Instruction) -> Step:
    modifiers = set(instruction.modifiers)
    if "init" in modifiers:
        return _init(decoder, instruction)
    if modifiers & {"test_wait", "try_wait"}:
        return _decode_wait(decoder, instruction)
    if "pending_count" in modifiers:
        return _pending(decoder, instruction)
    if "inval" in modifiers:
        return skip(decoder, instruction)
    return _arrive(decoder, instruction)


def _word(decoder: Decoder, instruction: Instruction, operand: Operand) -> Access:
    return replace(describe(decoder, instruction, operand), dtype=_B64, count=1, hidden=True)


def _init(decoder: Decoder, instruction: Instruction) -> Step:
    place, count = instruction.operands
    access, fetch = _word(decoder, instruction, place), decoder.fetch(count, "u32")

    def init(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        number = fetch(frame).astype(np.uint64) & _COUNT
        write(group, lanes, access, access.address(frame), [number | number << np.uint64(20)])

    return init


def _arrive(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode arrive, expect-tx and complete-tx: the update of the three counts."""
    modifiers, operands = set(instruction.modifiers), list(instruction.operands)
    arrives = bool(modifiers & {"arrive", "arrive_drop"})
    to = operands.pop(0) if arrives else Bucket()
    amount = decoder.fetch(operands[1], "u32") if len(operands) > 1 else None
    in_bytes = bool(modifiers & {"expect_tx", "complete_tx"})
    sign = -1 if "complete_tx" in modifiers else 1
    drops = "arrive_drop" in modifiers

    def changes(frame: list[Array]) -> tuple[Array, Array]:
        increment = scalar(1, _B64) if amount is None else amount(frame).astype(np.uint64)
        bytes_to_come = (increment.astype(np.int64) * sign).view(np.uint64)
        count = scalar(int(arrives), _B64) if in_bytes else increment
        count = count | (count << np.uint64(32) if drops else scalar(0, _B64))
        return count, bytes_to_come if in_bytes else scalar(0, _B64)

    return _update(decoder, instruction, operands[0], to, changes)


def _copies_arrive(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `cp.async.mbarrier.arrive`: copies are complete; without `.noinc` the net count
    is 0.
    """
    counted = scalar(int("noinc" in instruction.modifiers), _B64)
    nothing = scalar(0, _B64)
    return _update(
        decoder, instruction, instruction.operands[0], Bucket(), lambda frame: (counted, nothing)
    )


def _update(
    decoder: Decoder, instruction: Instruction, place: Operand, to: Operand,
    changes: Callable[[list[Array]], tuple[Array, Array]],
) -> Step:  # fmt: skip
    access, store = _word(decoder, instruction, place), decoder.store(to, "b64")
    pc = decoder.pc
    run = update_lanes("mbarrier_arrive", ("i64", _ARRIVE, ""))

    def update(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        count, bytes_to_come = changes(frame)
        old_words = run(group, lanes, access, [count, bytes_to_come])
        _require_expected(group, lanes, (pc, access), old_words, count)
        store(frame, old_words)

    return update


def _require_expected(
    group: Group, lanes: Mask | None, where: tuple[int, Access],
    old_words: Array, count: Array,
) -> None:  # fmt: skip
    """Raise KernelFault if more lanes arrive than the phase still expects."""
    shape = group.shape
    more = np.broadcast_to((old_words & _COUNT) < (count & _COUNT), shape)
    if lanes is not None:
        more = more & lanes
    if more.any():
        lane = int(np.flatnonzero(more)[0])
        pc, access = where
        address = np.broadcast_to(as_addresses(access.address(group.frame)), shape)
        at = int(address.reshape(-1)[lane]) + access.offset
        raise group.wave.program.fault(
            pc,
            f"arrives at the mbarrier at {at:#x}, whose phase expects no more arrivals (or which "
            f"was never initialized), in {name_lane(group, lane)}",
        )


def _decode_wait(decoder: Decoder, instruction: Instruction) -> Step:
    to, place, state = instruction.operands[:3]
    parity = "parity" in instruction.modifiers
    access = _word(decoder, instruction, place)
    phase: Fetch = decoder.fetch(state, "u32" if parity else "b64")
    store = decoder.store(to, "pred")

    def wait_step(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(access.guard)
        (word,) = read(group, lanes, access, access.address(frame))
        now, target_phase = word >> _PHASE, phase(frame).astype(np.uint64)
        over = (now & np.uint64(1)) != target_phase if parity else now != target_phase >> _PHASE
        store(frame, over)

    return wait_step


def _pending(decoder: Decoder, instruction: Instruction) -> Step:
    to, state = instruction.operands
    fetch, store = decoder.fetch(state, "b64"), decoder.store(to, "b32")

    def pending(group: Group) -> None:
        store(group.frame, (fetch(group.frame) & _COUNT).astype(np.uint32))

    return pending


STEPS: StepTable = {"cp": _decode_copy, "mbarrier": _decode_mbarrier}
