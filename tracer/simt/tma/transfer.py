"""Bulk copies: their operands, the bytes that they move, checks, faults, reductions, completion.

A bulk copy completes when it is issued, which is one of the times that the ISA allows; `complete`
then ends its transactions on the mbarrier (PTX ISA 9.7.13.15.5, complete-tx).
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ....jit.machine_code import address, compile_function
from ....traces.schema import BULK_PIECE, Space
from ...ptx.kernel import Address, Instruction, Operand
from ..access.access import add_offset, as_addresses
from ..access.bounds import name_lane, nearest
from ..access.cluster import GENERIC, locate
from ..decode.address import address_of
from ..decode.decoder import Decoder, Fetch, constant
from ..memory.memory import WINDOWS
from ..ops.lanes import DTYPES, LANES, Array, scalar
from ..ops.update import update
from ..warp.program import Group, Step


@dataclass(frozen=True, slots=True)
class Lane:
    """An active lane of a group: its place in the group's shape, its block in the wave, and the
    values of its operands."""

    group: Group
    place: int
    block: int
    values: tuple[int, ...]


def lanes_of(group: Group, guard: Fetch | None, values: Sequence[Array]) -> Iterator[Lane]:
    """Yield the active lanes in order of block, warp and lane; `values` are integers."""
    shape, active = group.shape, group.guarded_lanes(guard)
    spread = [np.broadcast_to(value, shape).reshape(-1) for value in values]
    for place in np.flatnonzero(active).tolist():
        block = int(group.row_block[place // LANES])
        yield Lane(group, place, block, tuple(int(value[place]) for value in spread))


def copies_of(group: Group, guard: Fetch | None, values: Sequence[Array]) -> Iterator[Lane]:
    """Yield the lanes that copy a box: of a warp's lanes with equal operands the first alone.

    A warp issues the copy of a box once, from uniform registers: if all lanes of a warp store the
    same box, an H100 counts the sectors of one.
    """
    issued: set[tuple[int, ...]] = set()
    for lane in lanes_of(group, guard, values):
        copy = (lane.place // LANES, *lane.values)
        if copy not in issued:
            issued.add(copy)
            yield lane


OWN = WINDOWS[Space.SHARED]
SECTOR = 32
CHUNK = 128 // BULK_PIECE
_FAR = (1 << 31) - 1 - BULK_PIECE
"""Largest offset of a row, which is a signed number of 32 bits."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of one block's shared memory or of an arena, from `start` on; `written` is the same
    place in the map of written bytes, if one is kept."""

    memory: NDArray[np.uint8]
    start: int
    size: int
    written: NDArray[np.uint8] | None = None

    @property
    def view(self) -> NDArray[np.uint8]:
        """The bytes."""
        return self.memory[self.start : self.start + self.size]

    def mark(self) -> None:
        """Mark the bytes as written."""
        if self.written is not None:
            self.written[self.start : self.start + self.size] = 1


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction, for messages: its place, its name, and the alignment of its bytes."""

    pc: int
    what: str
    position: int

    def fault(self, lane: Lane, text: str, reason: str = "outside") -> KernelFault:
        """Return the fault of a lane."""
        program = lane.group.wave.program
        return KernelFault(
            f"{program.source_line(self.pc)}: kernel `{program.name}`: {self.what} "
            f"{text} in {name_lane(lane.group, lane.place)}",
            reason,
        )


def shared_bytes(lane: Lane, site: Site, address: int, size: int, align: int = 16) -> Bytes:
    """Return bytes of shared memory of this block or of another one of its cluster."""
    wave = lane.group.wave
    owner, offset = locate(wave, lane.block, address)
    if offset % align:
        raise site.fault(lane, f"at shared address {offset:#x}, no multiple of {align},",
                         "misaligned")  # fmt: skip
    if owner < 0 or offset < 0 or offset + size > wave.shared.shape[1]:
        raise site.fault(
            lane,
            f"takes {size} bytes at shared address {address:#x}, "
            f"and the block has {wave.shared.shape[1]} bytes,",
        )
    return shared_of(lane, owner, offset, size)


def shared_of(lane: Lane, block: int, offset: int, size: int) -> Bytes:
    """Return bytes of the shared memory of a block of the wave."""
    wave = lane.group.wave
    shadow = None if wave.shadow is None else wave.shadow.of(Space.SHARED)
    return Bytes(wave.shared[block], offset, size, None if shadow is None else shadow[block])


def as_shared(address: int, is_generic: bool) -> int:
    """Return an address, generic or not, as a shared address: of one of 64 bits that an instruction
    says is shared, the lower half."""
    inside = OWN[0] <= address < OWN[1] or GENERIC[0] <= address < GENERIC[1]
    if is_generic:
        return address - OWN[0] if inside else address
    return address & 0xFFFF_FFFF


def global_bytes(lane: Lane, site: Site, address: int, size: int, align: int = 16) -> Bytes:
    """Return bytes of global memory in one allocation."""
    if address % align:
        raise site.fault(lane, f"at global address {address:#x}, no multiple of {align},",
                         "misaligned")  # fmt: skip
    arena = lane.group.wave.program.memory.global_
    allocation = arena.find(address)
    if allocation is None or address + size > allocation.address + allocation.size:
        raise outside_global(lane, site, address, size)
    return Bytes(arena.bytes, address - arena.base, size, arena.written)


def outside_global(lane: Lane, site: Site, address: int, size: int) -> KernelFault:
    """Return the fault of a lane with bytes of global memory in no allocation."""
    where = nearest(lane.group.wave, address, Space.GLOBAL, size)
    return site.fault(lane, f"takes {size} bytes at global address {address:#x}: {where},")


def generic_bytes(lane: Lane, site: Site, address: int, size: int) -> NDArray[Any]:
    """Return readable bytes at a generic address: of a parameter, a constant or an array."""
    start, end = WINDOWS[Space.CONST]
    if start <= address < end:
        arena = lane.group.wave.program.memory.const
        return arena.bytes[address - start : address - start + size]
    shared = as_shared(address, True)
    if shared != address:
        return shared_bytes(lane, site, shared, size).view
    return global_bytes(lane, site, address, size).view


_LOOP = """{definitions}
define void @{name}(i64 %n, ptr %words, ptr %given) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pw = getelementptr {t}, ptr %words, i64 %i
  %old = load {t}, ptr %pw, align 1
  %pb = getelementptr {t}, ptr %given, i64 %i
  %b = load {t}, ptr %pb, align 1
  {body}
  store {t} %new, ptr %pw, align 1
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@cache
def _compiled(operation: str, kind: str, in_global: bool) -> Callable[..., None] | None:
    update_code = update(operation, kind, in_global)
    if update_code is None:
        return None
    element, body, definitions = update_code
    name = f"bulk_{operation}_{kind}{'_global' * in_global}"
    text = _LOOP.format(name=name, t=element, body=body, definitions=definitions)
    return compile_function(text, name, ctypes.c_int64, *(ctypes.c_void_p,) * 2)


def is_reduction(operation: str, kind: str) -> bool:
    """Return whether an operation supports a type: none supports numbers of 8 or 16 bits."""
    return kind not in ("u8", "u16") and _compiled(operation, kind, True) is not None


def reduce_bytes(
    to: NDArray[np.uint8], source: NDArray[np.uint8], operation: str, kind: str, in_global: bool
) -> None:
    """Update the elements of `to`, contiguous bytes, with those of `source`, in order."""
    run = _compiled(operation, kind, in_global)
    assert run is not None
    count = to.size // DTYPES[kind].itemsize
    operand = source.copy()
    run(count, address(to), address(operand))


class BulkRows:
    """Writes the rows of one execution of an instruction: the global memory that its lanes move."""

    def __init__(self, group: Group, site: Site) -> None:
        self._rows, self._group, self._site = group.wave.rows.accesses, group, site
        self._parts: Counter[int] = Counter()

    def add(self, lane: Lane, pieces: NDArray[np.int64], in_chunks: bool = False) -> None:
        """Add rows for a lane's `pieces` (n,), the addresses of BULK_PIECE bytes in order."""
        if not pieces.size:
            return
        base, active, offsets = rows_of(pieces - WINDOWS[Space.GLOBAL][0], in_chunks)
        warp = lane.place // LANES
        step = int(self._group.step[warp]) + self._site.position
        place, first = int(self._group.place[warp]), self._parts[warp]
        self._rows.add_pieces(place, step, self._site.pc, first, base, active, offsets)
        self._parts[warp] += len(base)


def rows_of(
    pieces: NDArray[np.int64], in_chunks: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int32]]:
    """Return rows of up to 32 pieces: their lowest addresses (n,), masks (n,), offsets (n, 32).

    Contiguous bytes move in chunks of 128. A sector that two chunks share counts twice, as an H100
    counts it: 5 sectors per chunk that begins within one. Then a row is one chunk. No row of a
    prefetch or of a box ends within a sector.
    """
    sector, starts = pieces // SECTOR, [0]
    if in_chunks and (sector[CHUNK::CHUNK] == sector[CHUNK - 1 : -1 : CHUNK]).any():
        starts = list(range(0, pieces.size, CHUNK))
    while (end := starts[-1] + LANES) < pieces.size:
        starts.append(end - int(sector[end] == sector[end - 1]))
    first = np.array(starts)
    count = np.diff(first, append=pieces.size)
    lane = np.arange(LANES)
    on = lane < count[:, None]
    addresses = pieces[np.minimum(first[:, None] + lane, pieces.size - 1)]
    base = np.where(on, addresses, addresses[:, :1]).min(axis=1)
    offsets = np.where(on, addresses - base[:, None], 0)
    if offsets.max() > _FAR:  # rows of a tensor that are far apart: one to a row
        return pieces, np.ones(pieces.size, np.uint32), np.zeros((pieces.size, LANES), np.int32)
    masks = (np.uint64(1) << count.astype(np.uint64)) - np.uint64(1)
    return base, masks.astype(np.uint32), offsets.astype(np.int32)


def pieces_of(address: int, size: int) -> NDArray[np.int64]:
    """Return the addresses of the pieces of contiguous bytes."""
    return np.arange(address, address + size, BULK_PIECE)


COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1


def complete(barrier: Bytes, size: int, arrivals: int = 0) -> None:
    """Subtract `size` bytes and arrivals from the pending counts of a barrier's phase; the word is
    as in decode/async_copy.py."""
    word = int(barrier.view.view(np.uint64)[0])
    pending, expected, phase = word & COUNT, word >> 20 & COUNT, word >> 61
    coming = (word >> 40 & _BYTES) - size & _BYTES
    pending = pending - arrivals & COUNT
    if not pending and not coming:
        pending, phase = expected, phase + 1 & 7
    word = pending | expected << 20 | coming << 40 | phase << 61
    barrier.view.view(np.uint64)[0] = word


def fetch_address(decoder: Decoder, operand: Operand) -> Fetch:
    """Return a fetch of the addresses of an operand in brackets, as int64."""
    if not isinstance(operand, Address):
        raise decoder.refuse("expected an address in brackets")
    fetch, offset = address_of(decoder, operand)
    return lambda frame: as_addresses(add_offset(fetch(frame), offset) if offset else fetch(frame))


def site_of(decoder: Decoder, instruction: Instruction) -> Site:
    """Return the site of the current instruction, for messages."""
    return Site(decoder.pc, f"`{instruction.mnemonic}`", decoder.position)


def step_of_lanes(
    decoder: Decoder, instruction: Instruction, fetches: Sequence[Fetch],
    run: Callable[..., None], lanes: Callable[..., Iterator[Lane]] = lanes_of,
) -> Step:  # fmt: skip
    """Return the step that calls `run` for each active lane, with the site of the instruction and
    the values of the operands."""
    site, guard = site_of(decoder, instruction), decoder.guard()

    def step(group: Group) -> None:
        for lane in lanes(group, guard, [fetch(group.frame) for fetch in fetches]):
            run(lane, site, *lane.values)

    return step


def mask_of(decoder: Decoder, instruction: Instruction, operands: list[Operand]) -> Fetch:
    """Remove the cache hint and the mask of blocks from the operands; return the mask, 0 without
    one."""
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        operands.pop()
    if any(m.startswith("multicast") for m in instruction.modifiers):
        return decoder.fetch(operands.pop(), "u16")
    return constant(scalar(0, DTYPES["u16"]))


def targets(
    lane: Lane, site: Site, to: int, barrier: int, mask: int, size: int, align: int = 16,
    of_pair: bool = False,
) -> list[tuple[Bytes, Bytes]]:  # fmt: skip
    """Return the destination in shared memory and its barrier for each block of a mask, or for the
    block of the addresses if the mask is 0. With `of_pair` the barrier of each destination is in
    the block of its pair that has the place of the barrier's block in its own pair."""
    byte_ranges = [
        (shared_bytes(lane, site, to, size, align), shared_bytes(lane, site, barrier, 8, 8))
    ]
    if not mask:
        return byte_ranges
    blocks = lane.group.wave.program.launch.blocks_a_cluster
    if mask >> blocks:
        raise site.fault(lane, f"names blocks {mask:#x} of a cluster of {blocks}")
    first = lane.block // blocks * blocks
    wave, ranks = lane.group.wave, [rank for rank in range(blocks) if mask >> rank & 1]
    (_, start), (owner, word) = (locate(wave, lane.block, place) for place in (to, barrier))
    owners = [rank - rank % 2 + owner % 2 if of_pair else rank for rank in ranks]
    return [
        (shared_of(lane, first + rank, start, size), shared_of(lane, first + other, word, 8))
        for rank, other in zip(ranks, owners, strict=True)
    ]
