"""`cp.async.bulk`, `cp.reduce.async.bulk`, `st.async` and `red.async` (PTX ISA 9.7.9.25).

Each completes when it is issued, and then signals its mbarrier; waiting for a group of bulk copies
does nothing. Copies write rows of the global memory that they move.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....traces.schema import BULK_PIECE
from ...ptx.kernel import TYPE_BYTES, Address, Instruction, Operand, Register, TextureAddress
from ..access.access import as_addresses
from ..decode.address import elements
from ..decode.decoder import Decoder, Fetch, StepTable, constant, skip
from ..ops.lanes import DTYPES, scalar
from ..ops.update import OPERATIONS
from ..warp.program import Group, Step
from .tensor_map import (
    BYTES,
    IM2COL,
    TensorMap,
    box_bytes,
    box_span,
    decode,
    elements_of,
    loaded,
    shared_places,
)
from .transfer import (
    BulkRows,
    Bytes,
    Lane,
    Site,
    as_shared,
    complete,
    copies_of,
    fetch_address,
    generic_bytes,
    global_bytes,
    is_reduction,
    lanes_of,
    mask_of,
    outside_global,
    pieces_of,
    reduce_bytes,
    shared_bytes,
    site_of,
    step_of_lanes,
    targets,
)

_NOTHING = frozenset({"commit_group", "wait_group"})


def _decode_copy(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a bulk copy, or None for another copy."""
    modifiers = {m.partition("::")[0] for m in instruction.modifiers}
    if "bulk" not in modifiers:
        return None
    if "tensor" in modifiers:
        return _decode_tensor_copy(decoder, instruction)
    if modifiers & _NOTHING:
        return skip(decoder, instruction)
    return (_prefetch if "prefetch" in modifiers else _copy)(decoder, instruction)


def _prefetch(decoder: Decoder, instruction: Instruction) -> Step:
    """`cp.async.bulk.prefetch.L2.global [a], size`: only its rows are written."""
    site, guard = site_of(decoder, instruction), decoder.guard()
    source = fetch_address(decoder, instruction.operands[0])
    size = decoder.fetch(instruction.operands[1], "u32")

    def prefetch(group: Group) -> None:
        rows = BulkRows(group, site)
        for lane in lanes_of(group, guard, [source(group.frame), size(group.frame)]):
            here, count = lane.values
            global_bytes(lane, site, here, count)
            rows.add(lane, pieces_of(here, count))

    return prefetch


def _copy(decoder: Decoder, instruction: Instruction) -> Step:
    operands = list(instruction.operands)
    spaces = [m.partition("::")[0] for m in instruction.modifiers]
    spaces = [m for m in spaces if m in ("shared", "global")]
    if len(spaces) != 2:
        raise decoder.refuse("expected two state spaces, those of destination and source")
    chosen = decoder.fetch(operands.pop(), "u16") if "cp_mask" in instruction.modifiers else None
    mask, site = mask_of(decoder, instruction, operands), site_of(decoder, instruction)
    to, source = (fetch_address(decoder, operand) for operand in operands[:2])
    size = decoder.fetch(operands[2], "u32")
    has_barrier = len(operands) > 3
    barrier = (
        fetch_address(decoder, operands[3]) if has_barrier else constant(scalar(0, DTYPES["s64"]))
    )
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    guard, kind = decoder.guard(), instruction.type
    narrow = [isinstance(o, Address) and _is_narrow(o) for o in (*operands[:2], operands[-1])]

    def copy(group: Group) -> None:
        frame, rows = group.frame, BulkRows(group, site)
        values = [fetch(frame) for fetch in (to, source, size, barrier, mask, chosen or mask)]
        for lane in lanes_of(group, guard, values):
            there, here, count, barrier_address, blocks, octets = lane.values
            if count % 16:
                raise site.fault(lane, f"of {count} bytes, no multiple of 16,", "misaligned")
            bytes_ = _find(lane, site, spaces[1], here, count, not narrow[1])
            if chosen is not None:
                _move_some(global_bytes(lane, site, there, count), bytes_, octets)
                rows.add(lane, pieces_of(there, count), in_chunks=True)
                continue
            if spaces[0] == "global":
                _move(global_bytes(lane, site, there, count), bytes_, operation, kind, True)
                rows.add(lane, pieces_of(there, count), in_chunks=True)
                continue
            if spaces[1] == "global":
                rows.add(lane, pieces_of(here, count), in_chunks=True)
            there, barrier_address = (
                as_shared(there, not narrow[0]),
                as_shared(barrier_address, not narrow[2]),
            )
            for target, word in targets(lane, site, there, barrier_address, blocks, count):
                _move(target, bytes_, operation, kind, False)
                complete(word, count)

    return copy


def _is_narrow(operand: Address) -> bool:
    return not isinstance(operand.base, Register) or TYPE_BYTES[operand.base.type] == 4


def _find(lane: Lane, site: Site, space: str, address: int, size: int, generic: bool) -> Bytes:
    if space == "global":
        return global_bytes(lane, site, address, size)
    return shared_bytes(lane, site, as_shared(address, generic), size)


def _move(to: Bytes, source: Bytes, operation: str, kind: str, in_global: bool) -> None:
    if operation:
        reduce_bytes(to.view, source.view, operation, kind, in_global)
    else:
        to.view[:] = source.view.copy()
    to.mark()


def _move_some(to: Bytes, source: Bytes, octets: int) -> None:
    """Copy the bytes of each 16 whose bit is set in `octets` (`.cp_mask`)."""
    places = np.flatnonzero(np.tile(octets >> np.arange(16) & 1, to.size // 16))
    to.view[places] = source.view[places]
    if to.written is not None:
        to.written[to.start + places] = 1


def _send(decoder: Decoder, instruction: Instruction) -> Step | None:
    """`st.async [a], b, [mbar]` and `red.async`: each lane stores, and signals the barrier. Those
    to global memory have no barrier, and are stores and reductions like others."""
    if "bulk" in instruction.modifiers:
        return _fill(decoder, instruction)
    if "async" not in instruction.modifiers or instruction.space == "global":
        return None
    kind, is_generic = instruction.type, not instruction.space
    to, barrier = (fetch_address(decoder, instruction.operands[k]) for k in (0, 2))
    fetches = [decoder.fetch(e, kind) for e in elements(instruction.operands[1])]
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}")
    size = dtype.itemsize * len(fetches)

    def send(lane: Lane, site: Site, there: int, barrier_address: int, *words: int) -> None:
        target = shared_bytes(lane, site, as_shared(there, is_generic), size, size)
        source = Bytes(np.array(words, dtype=dtype).view(np.uint8), 0, size)
        _move(target, source, operation, kind, False)
        complete(shared_bytes(lane, site, as_shared(barrier_address, is_generic), 8, 8), size)

    plain = [lambda frame, fetch=fetch: fetch(frame).view(dtype) for fetch in fetches]
    return step_of_lanes(decoder, instruction, (to, barrier, *plain), send)


def _fill(decoder: Decoder, instruction: Instruction) -> Step:
    """`st.bulk [a], size, 0`: fill shared memory with zeros."""
    to = fetch_address(decoder, instruction.operands[0])
    size, is_generic = decoder.fetch(instruction.operands[1], "u64"), not instruction.space

    def fill(lane: Lane, site: Site, there: int, count: int) -> None:
        if count % 8:
            raise site.fault(lane, f"of {count} bytes, no multiple of 8,", "misaligned")
        target = shared_bytes(lane, site, as_shared(there, is_generic), count, 8)
        target.view[:] = 0
        target.mark()

    return step_of_lanes(decoder, instruction, (to, size), fill)


ALIGN = 128
"""Alignment in bytes of a box in shared memory."""

ALIGN_INSIDE = 16
"""Alignment in bytes of a box's coordinate in the innermost dimension. Otherwise an H200 stops with
an illegal instruction, as it does for a store of a box that begins before the tensor."""


ROWS = 4
"""Rows that a copy with `.tile::gather4` or `.tile::scatter4` takes (PTX ISA 5.5.6)."""

_ROW_MODES = frozenset({"tile::gather4", "tile::scatter4"})

_IM2COL_MODES = frozenset({"im2col", "im2col_no_offs"})

STEPS: StepTable = {"cp": _decode_copy, "st": _send, "red": _send}


@dataclass(frozen=True, slots=True)
class Box:
    """The operands of a box: its map and coordinates, and the offsets of an im2col box. One that
    `has_rows` gathers or scatters four rows: a column and their numbers."""

    tensor: Fetch
    corner: tuple[Fetch, ...]
    offsets: tuple[Fetch, ...]
    rank: int
    is_im2col: bool
    has_rows: bool = False


def _decode_tensor_copy(decoder: Decoder, instruction: Instruction) -> Step:
    """Return the step of a copy of a box to or from shared memory."""
    modifiers = instruction.modifiers
    operands = list(instruction.operands)
    site = site_of(decoder, instruction)
    mask = mask_of(decoder, instruction, operands)
    if "prefetch" in modifiers:
        return _prefetch_box(decoder, _box(decoder, instruction, operands[0], operands[1:]), site)
    names = [m.partition("::")[0] for m in modifiers]
    if names.index("global") < names.index("shared"):
        return _store(decoder, instruction, operands, site)
    box = _box(decoder, instruction, operands[1], operands[3:])
    to, barrier = fetch_address(decoder, operands[0]), fetch_address(decoder, operands[2])
    guard, of_pair = decoder.guard(), "cta_group::2" in modifiers

    def load(group: Group) -> None:
        frame, rows = group.frame, BulkRows(group, site)
        values = [to(frame), barrier(frame), mask(frame), *_values(box, frame)]
        for lane in copies_of(group, guard, values):
            there, barrier_address, blocks, *coordinates = lane.values
            tensor, places, inside = _find_tensor_map(lane, site, box, coordinates)
            box_values = _read(lane, site, tensor, places, inside)
            rows.add(lane, _pieces(places[inside]))
            times = ROWS if box.has_rows else 1
            size = box_span(tensor) * times
            where = there, barrier_address, blocks, size, ALIGN, of_pair
            for target, word in targets(lane, site, *where):
                _spread(tensor, target, box_values)
                target.mark()
                complete(word, box_bytes(tensor) * times)

    return load


def _prefetch_box(decoder: Decoder, box: "Box", site: Site) -> Step:
    """Return the step of a prefetch of a box, of which only the rows are written."""
    guard = decoder.guard()

    def prefetch(group: Group) -> None:
        rows = BulkRows(group, site)
        for lane in copies_of(group, guard, _values(box, group.frame)):
            tensor, places, inside = _find_tensor_map(lane, site, box, list(lane.values))
            _check(lane, site, tensor, places[inside])
            rows.add(lane, _pieces(places[inside]))

    return prefetch


def _pieces(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pieces of elements' addresses (n,), each once where it follows itself."""
    pieces = places // BULK_PIECE * BULK_PIECE
    distinct: NDArray[np.int64] = pieces[np.diff(pieces, prepend=-1) != 0]
    return distinct


def _box(
    decoder: Decoder, instruction: Instruction, operand: Operand, others: list[Operand]
) -> Box:
    """Decode `[map, {c0, c1}]` and `{offsets}`."""
    if not isinstance(operand, TextureAddress):
        raise decoder.refuse("expected a map of a tensor and coordinates in brackets")
    tensor = operand.texture
    if isinstance(tensor, Register):
        address = decoder.fetch(tensor, "u64" if tensor.type[1:] == "64" else "u32")
        where: Fetch = lambda frame: as_addresses(address(frame))  # noqa: E731
    else:
        where = fetch_address(decoder, Address(tensor))
    corner = tuple(decoder.fetch(c, "s32") for c in operand.coordinates)
    rank = next(int(m[0]) for m in instruction.modifiers if m in ("1d", "2d", "3d", "4d", "5d"))
    has_rows = not _ROW_MODES.isdisjoint(instruction.modifiers)
    if len(corner) != (1 + ROWS if has_rows else rank):
        raise decoder.refuse(f"expected {1 + ROWS if has_rows else rank} coordinates")
    is_im2col = not _IM2COL_MODES.isdisjoint(instruction.modifiers)
    offsets: tuple[Fetch, ...] = ()
    if is_im2col and others:
        offsets = tuple(decoder.fetch(e, "u16") for e in elements(others[0]))
    return Box(where, corner, offsets, rank, is_im2col, has_rows)


def _values(box: Box, frame: list[Any]) -> list[Any]:
    return [fetch(frame) for fetch in (box.tensor, *box.corner, *box.offsets)]


def _find_tensor_map(
    lane: Lane, site: Site, box: Box, values: list[int]
) -> tuple[TensorMap, NDArray[np.int64], NDArray[np.bool_]]:
    """Read the map, and compute the addresses of the box's elements."""
    address, *coordinates = values
    if address % 64:
        raise site.fault(lane, f"takes a map at {address:#x}, no multiple of 64,", "misaligned")
    tensor = decode(generic_bytes(lane, site, address, BYTES).tobytes())
    if tensor is None or not tensor.address:
        raise site.fault(
            lane, f"takes a map at {address:#x} that cuTensorMapEncode has not made", "map"
        )
    if tensor.rank != box.rank or (tensor.kind == IM2COL) != box.is_im2col:
        kind = "im2col" if tensor.kind == IM2COL else "tiled"
        raise site.fault(lane, f"takes a map of a {kind} tensor of {tensor.rank} dimensions", "map")
    corner = tuple(coordinates[: len(box.corner)])
    start = tensor.words(corner[0]) * tensor.size
    if start % ALIGN_INSIDE:
        raise site.fault(
            lane,
            f"begins at element {corner[0]} of the innermost dimension, {start} "
            f"bytes and no multiple of {ALIGN_INSIDE},",
            "misaligned",
        )
    if box.is_im2col:
        return tensor, *pixels_of(tensor, corner, tuple(coordinates[box.rank :]))
    if box.has_rows:
        if tensor.shape[1] != 1:
            raise site.fault(lane, f"takes a map of boxes of {tensor.shape[1]} rows, not 1,", "map")
        parts = [elements_of(tensor, (corner[0], row)) for row in corner[1:]]
        places, inside = (np.concatenate(part) for part in zip(*parts, strict=True))
        return tensor, places, inside
    return tensor, *elements_of(tensor, corner)


def _words(lane: Lane, tensor: TensorMap, inside: NDArray[np.bool_], places: Any) -> Any:
    """Return global memory as elements, and the indices of the elements in bounds."""
    arena = lane.group.wave.program.memory.global_
    usable = arena.bytes.size // tensor.size * tensor.size
    words = arena.bytes[:usable].view(f"u{tensor.size}")
    return words, (places[inside] - arena.base) // tensor.size


def _check(lane: Lane, site: Site, tensor: TensorMap, places: NDArray[np.int64]) -> None:
    """Raise KernelFault unless these elements are in allocations."""
    if not places.size:
        return
    arena = lane.group.wave.program.memory.global_
    low, high = int(places.min()), int(places.max()) + tensor.size
    allocation = arena.find(low)
    if allocation is not None and high <= allocation.address + allocation.size:
        return
    starts, ends = arena.bounds()
    owner = np.searchsorted(starts[:-1], places, side="right") - 1
    bad = (owner < 0) | (places + tensor.size > ends[np.maximum(owner, 0)])
    if bad.any():
        raise outside_global(lane, site, int(places[bad][0]), tensor.size)


def _read(
    lane: Lane, site: Site, tensor: TensorMap, places: NDArray[np.int64],
    inside: NDArray[np.bool_],
) -> NDArray[Any]:  # fmt: skip
    _check(lane, site, tensor, places[inside])
    words, index = _words(lane, tensor, inside, places)
    box_values = np.full(places.size, tensor.fill, dtype=words.dtype)
    box_values[inside] = loaded(tensor, words[index])
    return box_values


def _spread(tensor: TensorMap, target: Bytes, box_values: NDArray[Any]) -> None:
    """Write a box's elements to their places in shared memory."""
    places = shared_places(tensor, target.start, box_values.size)
    memory = target.memory[: target.memory.size // tensor.size * tensor.size]
    memory.view(box_values.dtype)[places // tensor.size] = box_values


def _store(decoder: Decoder, instruction: Instruction, operands: list[Operand], site: Site) -> Step:
    """Copy a box to global memory, or reduce it into global memory."""
    box = _box(decoder, instruction, operands[0], [])
    source = fetch_address(decoder, operands[1])
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    guard = decoder.guard()

    def store(group: Group) -> None:
        frame, rows = group.frame, BulkRows(group, site)
        for lane in copies_of(group, guard, [source(frame), *_values(box, frame)]):
            here, *coordinates = lane.values
            _require_forward(lane, site, coordinates[1:])
            tensor, places, inside = _find_tensor_map(lane, site, box, coordinates)
            if operation and not is_reduction(operation, tensor.type):
                raise site.fault(lane, f"cannot reduce elements of {tensor.type}", "operation")
            times = ROWS if box.has_rows else 1
            bytes_ = shared_bytes(lane, site, here, box_span(tensor) * times, ALIGN)
            memory = bytes_.memory[: bytes_.memory.size // tensor.size * tensor.size]
            words, index = _words(lane, tensor, inside, places)
            _check(lane, site, tensor, places[inside])
            shared_index = shared_places(tensor, bytes_.start, places.size)[inside] // tensor.size
            box_values = memory.view(words.dtype)[shared_index]
            if operation:
                box_values = _reduced(words[index], box_values, operation, tensor.type)
            words[index] = box_values
            _mark(lane, tensor, index)
            rows.add(lane, _pieces(places[inside]))

    return store


def _require_forward(lane: Lane, site: Site, corner: list[int]) -> None:
    """Raise KernelFault if a stored box begins before the tensor."""
    if min(corner) < 0:
        raise site.fault(lane, f"stores a box that begins at {tuple(corner)}, below zero,")


def _reduced(old: Any, operand: Any, operation: str, kind: str) -> Any:
    result = np.ascontiguousarray(old)
    reduce_bytes(result.view(np.uint8), operand.view(np.uint8), operation, kind, True)
    return result


def _mark(lane: Lane, tensor: TensorMap, index: NDArray[np.int64]) -> None:
    written = lane.group.wave.program.memory.global_.written
    if written is not None:
        for byte in range(tensor.size):
            written[index * tensor.size + byte] = 1


def pixels_of(
    tensor: TensorMap, corner: tuple[int, ...], offsets: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the global addresses of a box's elements, and which of them are in bounds.

    `corner` is (channel, w, h, d, image), with as many of w, h and d as there are; `offsets` are
    the offsets of these.
    """
    middle = tensor.rank - 2
    channel = tensor.words(corner[0]) + np.arange(tensor.shape[0], dtype=np.int64)
    place, image = list(corner[1 : 1 + middle]), corner[-1]
    first = list(tensor.lower)
    last = [tensor.extents[1 + k] + tensor.upper[k] for k in range(middle)]
    addresses, inside = [], []
    for _ in range(tensor.pixels):
        at = [(offsets[k] if offsets else 0) + place[k] for k in range(middle)]
        within = all(0 <= at[k] < tensor.extents[1 + k] for k in range(middle))
        within = within and 0 <= image < tensor.extents[-1]
        start = tensor.address + image * tensor.strides[-1]
        start += sum(at[k] * tensor.strides[k] for k in range(middle))
        addresses.append(start + channel * tensor.size)
        inside.append(within & (channel >= 0) & (channel < tensor.words(tensor.extents[0])))
        image = _step(place, first, last, tensor.steps[1 : 1 + middle], image)
    return np.concatenate(addresses), np.concatenate(inside)


def _step(
    place: list[int], first: list[int], last: list[int], steps: tuple[int, ...], image: int
) -> int:
    """Advance `place` to the next pixel; return its image."""
    for axis, step in enumerate(steps):
        place[axis] += step
        if place[axis] < last[axis]:
            return image
        place[axis] = first[axis]
    return image + 1
