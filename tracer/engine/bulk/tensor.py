"""`cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor` (PTX ISA 9.7.9.27): boxes of arrays.

A box is copied when the instruction is issued. Elements out of the array's bounds are filled with
zeros or NaNs, and not stored; the mbarrier is told of all bytes of the box.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ...ptx.kernel import Address, Instruction, Operand, Register, TextureAddress
from ..array.decoder import Decoder
from ..array.program import Group, Step
from ..array.slot import Fetch
from ..memory.address import elements
from ..memory.address_facts import as_addresses
from ..op.update import OPERATIONS
from .box import box_bytes, box_span, elements_of, loaded, shared_places
from .bytes_of import Bytes, Site, generic_bytes, outside_global, shared_bytes
from .completion import complete
from .im2col import pixels_of
from .lane import Lane, lanes_of
from .operand import fetch_address, mask_of, site_of, targets
from .reduction import is_reduction, reduce_bytes
from .tensor_map import BYTES, IM2COL, TensorMap, decode

ALIGN = 128
"""Bytes to which a box in shared memory must align."""

ALIGN_INSIDE = 16
"""Bytes of which a box's place in the innermost dimension is a multiple: an H200 stops with an
illegal instruction otherwise, as where a box is stored that begins before the tensor does."""


@dataclass(frozen=True, slots=True)
class Box:
    """The operands of a box: its map and coordinates, and offsets of an im2col box."""

    tensor: Fetch
    corner: tuple[Fetch, ...]
    offsets: tuple[Fetch, ...]
    rank: int
    is_im2col: bool


def decode_tensor_copy(decoder: Decoder, instruction: Instruction) -> Step:
    """Return the step of a copy of a box, to shared memory or from it."""
    modifiers = instruction.modifiers
    operands = list(instruction.operands)
    site = site_of(decoder, instruction)
    if "prefetch" in modifiers:
        return lambda group: None
    if any(m.startswith("tile::") for m in modifiers) or "im2col::w" in " ".join(modifiers):
        raise decoder.refuse("cutrace leaves out this way of loading (compute capability 10.0)")
    mask = mask_of(decoder, instruction, operands)
    names = [m.partition("::")[0] for m in modifiers]
    if names.index("global") < names.index("shared"):
        return _store(decoder, instruction, operands, site)
    box = _box(decoder, instruction, operands[1], operands[3:])
    to, barrier = fetch_address(decoder, operands[0]), fetch_address(decoder, operands[2])
    guard = decoder.guard()

    def load(group: Group) -> None:
        frame = group.frame
        values = [to(frame), barrier(frame), mask(frame), *_values(box, frame)]
        for lane in lanes_of(group, guard, values):
            there, told, blocks, *rest = lane.values
            tensor, places, inside = _find(lane, site, box, rest)
            found = _read(lane, site, tensor, places, inside)
            size = box_span(tensor)
            for target, word in targets(lane, site, there, told, blocks, size, ALIGN):
                _spread(tensor, target, found)
                target.mark()
                complete(word, box_bytes(tensor))

    return load


def _box(
    decoder: Decoder, instruction: Instruction, operand: Operand, others: list[Operand]
) -> Box:
    """Read `[map, {c0, c1}]` and `{offsets}`."""
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
    if len(corner) != rank:
        raise decoder.refuse(f"expected {rank} coordinates")
    is_im2col = "im2col" in instruction.modifiers
    offsets: tuple[Fetch, ...] = ()
    if is_im2col and others:
        offsets = tuple(decoder.fetch(e, "u16") for e in elements(others[0]))
    return Box(where, corner, offsets, rank, is_im2col)


def _values(box: Box, frame: list[Any]) -> list[Any]:
    return [fetch(frame) for fetch in (box.tensor, *box.corner, *box.offsets)]


def _find(
    lane: Lane, site: Site, box: Box, values: list[int]
) -> tuple[TensorMap, NDArray[np.int64], NDArray[np.bool_]]:
    """Read the map, and find the box's elements."""
    address, *rest = values
    if address % 64:
        raise site.fault(lane, f"takes a map at {address:#x}, no multiple of 64,", "misaligned")
    tensor = decode(generic_bytes(lane, site, address, BYTES).tobytes())
    if tensor is None:
        raise site.fault(
            lane, f"takes a map at {address:#x} that cuTensorMapEncode has not made", "map"
        )
    if tensor.rank != box.rank or (tensor.kind == IM2COL) != box.is_im2col:
        kind = "im2col" if tensor.kind == IM2COL else "tiled"
        raise site.fault(lane, f"takes a map of a {kind} tensor of {tensor.rank} dimensions", "map")
    corner = tuple(rest[: box.rank])
    if corner[0] * tensor.size % ALIGN_INSIDE:
        raise site.fault(
            lane,
            f"begins at element {corner[0]} of the innermost dimension, {corner[0] * tensor.size} "
            f"bytes and no multiple of {ALIGN_INSIDE},",
            "misaligned",
        )
    if box.is_im2col:
        return tensor, *pixels_of(tensor, corner, tuple(rest[box.rank :]))
    return tensor, *elements_of(tensor, corner)


def _words(lane: Lane, tensor: TensorMap, inside: NDArray[np.bool_], places: Any) -> Any:
    """Return global memory as elements, and the indices of those inside."""
    arena = lane.group.wave.program.memory.global_
    usable = arena.bytes.size // tensor.size * tensor.size
    words = arena.bytes[:usable].view(f"u{tensor.size}")
    return words, (places[inside] - arena.base) // tensor.size


def _check(lane: Lane, site: Site, tensor: TensorMap, places: NDArray[np.int64]) -> None:
    """Raise KernelFault unless these elements lie in allocations."""
    if not places.size:
        return
    arena = lane.group.wave.program.memory.global_
    low, high = int(places.min()), int(places.max()) + tensor.size
    found = arena.find(low)
    if found is not None and high <= found.address + found.size:
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
    found = np.full(places.size, tensor.fill, dtype=words.dtype)
    found[inside] = loaded(tensor, words[index])
    return found


def _spread(tensor: TensorMap, target: Bytes, found: NDArray[Any]) -> None:
    """Put a box's elements where they belong in shared memory."""
    places = shared_places(tensor, target.start, found.size)
    memory = target.memory[: target.memory.size // tensor.size * tensor.size]
    memory.view(found.dtype)[places // tensor.size] = found


def _store(decoder: Decoder, instruction: Instruction, operands: list[Operand], site: Site) -> Step:
    """Copy a box to global memory, or reduce it into that."""
    box = _box(decoder, instruction, operands[0], [])
    source = fetch_address(decoder, operands[1])
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    guard = decoder.guard()

    def store(group: Group) -> None:
        frame = group.frame
        for lane in lanes_of(group, guard, [source(frame), *_values(box, frame)]):
            here, *rest = lane.values
            _require_forward(lane, site, rest[1:])
            tensor, places, inside = _find(lane, site, box, rest)
            if operation and not is_reduction(operation, tensor.type):
                raise site.fault(lane, f"cannot reduce elements of {tensor.type}", "operation")
            bytes_ = shared_bytes(lane, site, here, box_span(tensor), ALIGN)
            memory = bytes_.memory[: bytes_.memory.size // tensor.size * tensor.size]
            words, index = _words(lane, tensor, inside, places)
            _check(lane, site, tensor, places[inside])
            held = shared_places(tensor, bytes_.start, places.size)[inside] // tensor.size
            given = memory.view(words.dtype)[held]
            if operation:
                given = _reduced(words[index], given, operation, tensor.type)
            words[index] = given
            _mark(lane, tensor, index)

    return store


def _require_forward(lane: Lane, site: Site, corner: list[int]) -> None:
    """Raise KernelFault if a box that is stored begins before the tensor does."""
    if min(corner) < 0:
        raise site.fault(lane, f"stores a box that begins at {tuple(corner)}, below zero,")


def _reduced(old: Any, given: Any, operation: str, kind: str) -> Any:
    result = np.ascontiguousarray(old)
    reduce_bytes(result.view(np.uint8), given.view(np.uint8), operation, kind, True)
    return result


def _mark(lane: Lane, tensor: TensorMap, index: NDArray[np.int64]) -> None:
    written = lane.group.wave.program.memory.global_.written
    if written is not None:
        for byte in range(tensor.size):
            written[index * tensor.size + byte] = 1
