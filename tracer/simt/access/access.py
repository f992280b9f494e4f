"""Loads and stores: address facts to bounds checks, gathers, scatters and trace rows."""

from collections.abc import Iterator

import numpy as np

from ....jit.ufunc import select
from ....traces.schema import Space
from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    Bucket,
    Instruction,
    Register,
)
from ..memory.address_facts import AddressRange
from ..memory.memory import WINDOWS
from ..ops.lanes import LANES, Array, Mask
from ..warp.decoder import Decoder, StepTable
from ..warp.invariant import require_facts
from ..warp.program import Group, Step
from . import cluster
from .address import Access, describe, elements
from .bounds import Window, check_lanes, find_window, mark_written, require_written, wrapped

_GENERIC = (*WINDOWS.items(), (Space.SHARED, cluster.GENERIC))
"""State spaces and their windows of generic addresses, the distributed shared memory of clusters
last. An address in none of them is global.
"""

_NEAR = (1 << 30) - 16
"""Lanes at most this far from one of them share a row, whose offsets are signed 32-bit."""


def _names_parameter(instruction: Instruction) -> bool:
    """Return whether the access is one of a parameter by name, which makes no row."""
    return instruction.space == "param" and not any(
        isinstance(operand, Address) and isinstance(operand.base, Register)
        for operand in instruction.operands
    )


def _load(decoder: Decoder, instruction: Instruction) -> Step | None:
    if _names_parameter(instruction):
        return None
    to, source = instruction.operands[:2]
    access = describe(decoder, instruction, source)
    kind = instruction.type
    stores = [None if isinstance(e, Bucket) else decoder.store(e, kind) for e in elements(to)]
    if TYPE_BYTES[kind] * instruction.vector != access.width or len(stores) != access.count:
        raise decoder.refuse(f"expected {access.count} registers")

    def load(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(None if access.guard is None else access.guard(frame))
        values = read(group, lanes, access, access.address(frame))
        for store, value in zip(stores, values, strict=True):
            if store is not None:
                store(frame, value)

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step | None:
    if _names_parameter(instruction):
        return None
    to, source = instruction.operands[:2]
    access = describe(decoder, instruction, to)
    kind = instruction.type
    fetches = [decoder.fetch(e, kind) for e in elements(source)]
    if len(fetches) != access.count:
        raise decoder.refuse(f"expected {access.count} registers")

    def store(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(None if access.guard is None else access.guard(frame))
        write(group, lanes, access, access.address(frame), [f(frame) for f in fetches])

    return store


STEPS: StepTable = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
}


def read(group: Group, lanes: Mask | None, access: Access, value: Array) -> list[Array]:
    """Load under `lanes`, record the rows, and return `count` arrays of elements."""
    results = [np.zeros((1, 1), dtype=access.dtype) for _ in range(access.count)]
    for mask, where in resolve(group, lanes, access, value):
        require_written(group, access, value, where)
        loaded = [where.load(element) for element in range(access.count)]
        results = (
            loaded
            if mask is None
            else [select(mask, new, old) for new, old in zip(loaded, results, strict=True)]
        )
    return results


def write(
    group: Group, lanes: Mask | None, access: Access, value: Array, values: list[Array]
) -> None:
    """Store `count` arrays of elements under `lanes`, and record the rows."""
    for _, where in resolve(group, lanes, access, value):
        for element, stored in enumerate(values):
            where.store(element, stored)
        mark_written(where, access.count)


def resolve(
    group: Group, lanes: Mask | None, access: Access, value: Array
) -> list[tuple[Mask | None, Window]]:
    """Return the checked memory that the lanes access, and record a row per warp for each part.

    The usual case, lanes in one space within 2 GiB, is one part (mask None). Other cases have
    several parts, each with the mask of its lanes.
    """
    facts, delta = entry = group.wave.facts.of(value, lanes, group.columns, access.offset)
    if group.wave.asserts:
        require_facts(value, access.offset, lanes, entry)
    if facts is None:
        return []
    space = access.space or _window(facts.low + delta, facts.high + delta)
    # Offsets in a row are signed 32-bit, so one row cannot span more.
    if space is None or facts.high - facts.low >= 1 << 31:
        return _resolve_parts(group, access, facts, delta)
    delta -= access.shift(space)
    where = _checked(group, access, facts, delta, space)
    _record(group, access, facts, delta, space, access.part)
    return [(None, where)]


def _checked(group: Group, access: Access, facts: AddressRange, delta: int, space: Space) -> Window:
    where = find_window(group, facts, delta, space, access.dtype, access.count)
    # `odd_bits` is the union over the lanes: a clear bit proves that every lane is aligned.
    if (facts.odd_bits | delta) & (access.width - 1) or not where.inside:
        check_lanes(group, facts, delta, space, access.width, access.pc)
    return where


def _record(
    group: Group, access: Access, facts: AddressRange, delta: int, space: Space, part: int
) -> None:
    trace_delta = delta - (WINDOWS[space][0] if space == Space.GLOBAL else 0)
    base = facts.base + trace_delta if trace_delta else facts.base
    if not access.hidden:
        keep = facts.keep
        if space == Space.SHARED and cluster.is_elsewhere(facts, delta):
            # The trace has no rows for warps that reach another block's shared memory.
            keep = cluster.lanes_at_home(group, facts, delta)
        group.wave.rows.accesses.add(
            group, access.position, access.pc, space, part, base, facts.pattern, keep
        )


def _window(low: int, high: int) -> Space | None:
    """Return the space with both addresses in its generic window (GLOBAL if none has)."""
    spaces = {_space_of(low), _space_of(high)}
    return spaces.pop() if len(spaces) == 1 else None


def _space_of(address: int) -> Space:
    for space, (start, end) in _GENERIC:
        if start <= address < end:
            return space
    return Space.GLOBAL


def _spaces_of(addresses: Array) -> Array:
    """Return for each generic address the index of its space, by windows."""
    spaces = np.full(addresses.shape, Space.GLOBAL, dtype=np.uint8)
    for space, (start, end) in _GENERIC:
        spaces[(addresses >= start) & (addresses < end)] = space
    return spaces


def _resolve_parts(
    group: Group, access: Access, facts: AddressRange, delta: int
) -> list[tuple[Mask | None, Window]]:
    """Split each warp's lanes by space, and within a space where they are 2 GiB apart.

    A warp's rows depend on that warp only: parts are numbered from 0 in each warp.
    """
    shape = (group.rows, group.columns)
    addresses = np.broadcast_to(facts.addresses, shape) + wrapped(delta)
    spaces = np.full(shape, access.space) if access.space else _spaces_of(addresses)
    lanes = np.broadcast_to(True if facts.lanes is None else facts.lanes, shape)
    where, which, warp_lanes = (each.reshape(-1, LANES) for each in (addresses, spaces, lanes))
    parts: dict[int, tuple[AddressRange, Mask, Window]] = {}
    # Parts are numbered per warp, but checked and accessed as segments: sets of warps with the same
    # part number, space and range, so that one window serves each segment.
    cuts = [
        (number, segment)
        for number, mask in enumerate(_parts_of_warps(where, which, warp_lanes))
        for segment in _warps_alike(where, which, mask)
    ]
    for place in sorted(range(len(cuts)), key=lambda n: int(cuts[n][1].any(axis=1).argmax())):
        _, segment = cuts[place]  # in order of warp, so that the first faulting lane is reported
        space = Space(int(which[segment][0]))
        own, part_lanes = addresses - access.shift(space), segment.reshape(shape)
        part_facts, _ = group.wave.facts.of(own, part_lanes, group.columns)
        if part_facts is not None:
            parts[place] = part_facts, part_lanes, _checked(group, access, part_facts, 0, space)
    for place, (part_facts, _, _) in sorted(parts.items()):  # in order of part within a warp
        number, segment = cuts[place]
        _record(group, access, part_facts, 0, Space(int(which[segment][0])), number)
    return [parts[place][1:] for place in sorted(parts)]


def _parts_of_warps(addresses: Array, spaces: Array, lanes: Array) -> Iterator[Array]:
    """Yield masks (warps, 32): the first part of every warp, then the second of those that
    have one.
    """
    remainder = lanes.copy()
    while remainder.any():
        first = np.arange(len(remainder)), remainder.argmax(axis=1)
        mask = remainder & _near(addresses, spaces, addresses[first], spaces[first])
        yield mask
        remainder &= ~mask


def _warps_alike(addresses: Array, spaces: Array, mask: Array) -> Iterator[Array]:
    """Split a mask (warps, 32) where warps access several spaces, or addresses 2 GiB apart."""
    remainder = mask.copy()
    while remainder.any():
        near = _near(addresses, spaces, addresses[remainder][:1], spaces[remainder][:1])
        same = np.asarray((near | ~remainder).all(axis=1))
        yield remainder & same[:, None]
        remainder &= ~same[:, None]


def _near(addresses: Array, spaces: Array, to: Array, space: Array) -> Array:
    """Return which lanes (warps, 32) are in the `space` of each warp, within 1 GiB of its
    address `to`.
    """
    low = np.maximum(to, _NEAR - (1 << 63)) - _NEAR
    high = np.minimum(to, (1 << 63) - 1 - _NEAR) + _NEAR
    near = (addresses >= low[:, None]) & (addresses <= high[:, None])
    return np.asarray(near & (spaces == space[:, None]))
