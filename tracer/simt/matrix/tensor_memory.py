"""Tensor memory of compute capability 10.0 (PTX ISA 9.7.16): 128 lanes by 512 columns of 32 bits a
block, which a kernel allocates by columns.

An address has the lane in its upper half and the column in its lower. All instructions complete
when they are issued, one of the times that the ISA allows, so that fences and waits do nothing and
a commit arrives at once. Blocks do not compete for columns: each has 512 of its own.

Warp w of a warpgroup reaches lanes 32 (w % 4) to the next 31, and an address's lane counts from
there: programs give all four warps lane 0, or each its own. Loads and stores move, for the
registers of a lane l (CUTLASS's SM100_TMEM_LOAD layouts, for a 32-bit column each):

| shape | row, from the address's lane on | column of register r |
|---|---|---|
| 32x32b | l | r |
| 16x64b | l / 4 + 8 (l % 2) | 2 r + (l / 2) % 2 |
| 16x128b | l / 4 + 8 (r % 2) | 4 (r / 2) + l % 4 |
| 16x256b | l / 4 + 8 (r / 2 % 2) | 8 (r / 4) + 2 (l % 4) + r % 2 |
| 16x32bx2 | l % 16 | r, of lanes 16 to 31 from the offset on |
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...ptx.kernel import Address, Immediate, Instruction, Operand
from ..decode.address import elements
from ..decode.decoder import Decoder, Fetch, skip
from ..decode.shuffle_vote import by_warp
from ..ops.lanes import LANES, Array
from ..tma.transfer import (
    Lane,
    Site,
    as_shared,
    complete,
    fetch_address,
    lanes_of,
    shared_bytes,
    shared_of,
    site_of,
    step_of_lanes,
)
from ..warp.program import Group, Step, Wave
from .ldmatrix import unpack_bytes
from .shared_factor import factor_rows

ROWS, COLUMNS = 128, 512
LEAST_COLUMNS = 32
"""The fewest columns that can be allocated."""

Cells = NDArray[np.uint32]


class TensorMemory:
    """The cells of a block, (128, 512), which columns are allocated, and which have been."""

    def __init__(self) -> None:
        self.cells: Cells = np.zeros((ROWS, COLUMNS), np.uint32)
        self.allocations: dict[int, int] = {}
        self.usable = np.zeros(COLUMNS, np.bool_)
        self.may_allocate = True

    def allocate(self, columns: int) -> int | None:
        """Return the first of `columns` free columns, now allocated; None if there are too few."""
        for first in range(0, COLUMNS - columns + 1, LEAST_COLUMNS):
            if not self.owned[first : first + columns].any():
                self.allocations[first] = columns
                self.usable[first : first + columns] = True
                return first
        return None

    @property
    def owned(self) -> NDArray[np.bool_]:
        """Which columns are allocated, (512,)."""
        owned = np.zeros(COLUMNS, np.bool_)
        for first, columns in self.allocations.items():
            owned[first : first + columns] = True
        return owned

    @property
    def text(self) -> str:
        """What is allocated, for messages."""
        spans = [f"{first} to {first + n - 1}" for first, n in sorted(self.allocations.items())]
        return f"columns {', '.join(spans)} are allocated" if spans else "no column is allocated"


def memory_of(wave: Wave, block: int) -> TensorMemory:
    """Return the tensor memory of a block of the wave."""
    memory: TensorMemory = wave.tensors.setdefault(block, TensorMemory())
    return memory


def require_columns(
    lane: Lane, site: Site, memory: TensorMemory, address: int, columns: tuple[int, int]
) -> None:
    """Raise KernelFault unless the columns, first and end, have been allocated.

    They may be deallocated by now: other warps may be through with a block's memory before the
    last one has read it, as in CUTLASS's backward attention.
    """
    first, end = columns
    if end <= COLUMNS and memory.usable[first:end].all():
        return
    raise site.fault(
        lane,
        f"reaches columns {first} to {end - 1} of tensor memory at address {address:#010x}, and "
        f"{memory.text} of {COLUMNS},",
    )


def first_lanes(group: Group, guard: Fetch | None, values: Sequence[Array]) -> Iterator[Lane]:
    """Yield the first active lane of each warp."""
    seen: set[int] = set()
    for lane in lanes_of(group, guard, values):
        if lane.place // LANES not in seen:
            seen.add(lane.place // LANES)
            yield lane


def allocate(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.alloc [dst], columns`: write the address of allocated columns to shared memory.

    Machine code has it in a register of all lanes: `tcgen05.alloc dst, columns`.
    """
    to, count = instruction.operands[0], decoder.fetch(instruction.operands[1], "u32")
    if not isinstance(to, Address):
        return _allocate_to_register(decoder, instruction)
    is_generic = not instruction.space

    def allocate(lane: Lane, site: Site, there: int, columns: int) -> None:
        first = _allocated(lane, site, lane.block, columns)
        target = shared_bytes(lane, site, as_shared(there, is_generic), 4, 4)
        target.view.view(np.uint32)[0] = first
        target.mark()

    place = fetch_address(decoder, to)
    return step_of_lanes(decoder, instruction, (place, count), allocate, first_lanes)


def _allocate_to_register(decoder: Decoder, instruction: Instruction) -> Step:
    store = decoder.store(instruction.operands[0], "b32")
    count = decoder.fetch(instruction.operands[1], "u32")
    site, guard = site_of(decoder, instruction), decoder.guard()
    of_pair = "cta_group::2" in instruction.modifiers

    def allocate(group: Group) -> None:
        addresses = np.zeros((group.rows, LANES), np.uint32)
        for lane in first_lanes(group, guard, [count(group.frame)]):
            for block in blocks_of(lane, site, of_pair):
                first = _allocated(lane, site, block, lane.values[0])
            addresses[lane.place // LANES] = first
        store(group.frame, addresses)

    return allocate


def _allocated(lane: Lane, site: Site, block: int, columns: int) -> int:
    """Return the first column of an allocation in a block's memory; KernelFault for one that the
    ISA does not allow."""
    memory = memory_of(lane.group.wave, block)
    if columns not in (32, 64, 128, 256, 512):
        text = f"of {columns} columns, no power of two from 32 to 512,"
        raise site.fault(lane, text, "columns")
    if not memory.may_allocate:
        raise site.fault(lane, "after tcgen05.relinquish_alloc_permit", "columns")
    first = memory.allocate(columns)
    if first is None:
        text = f"of {columns} columns never ends: {memory.text} of {COLUMNS},"
        raise site.fault(lane, text, "columns")
    return first


def deallocate(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.dealloc address, columns`."""
    fetches = [decoder.fetch(operand, "u32") for operand in instruction.operands]

    def deallocate(lane: Lane, site: Site, address: int, columns: int) -> None:
        memory = memory_of(lane.group.wave, lane.block)
        if memory.allocations.get(address) != columns:
            text = f"of {columns} columns at address {address:#010x}, and {memory.text},"
            raise site.fault(lane, text, "columns")
        del memory.allocations[address]

    return step_of_lanes(decoder, instruction, fetches, deallocate, first_lanes)


def relinquish(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.relinquish_alloc_permit`: the block allocates no more."""

    def relinquish(lane: Lane, site: Site) -> None:
        memory_of(lane.group.wave, lane.block).may_allocate = False

    return step_of_lanes(decoder, instruction, (), relinquish, first_lanes)


WORDS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of `.x1` by shape."""


@cache
def places(shape: str, registers: int, offset: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row and the 32-bit column of each register of each lane, (registers, 32)."""
    r, lane = np.arange(registers)[:, None], np.arange(LANES)[None]
    row, column = {
        "32x32b": (lane, r),
        "16x64b": (lane // 4 + 8 * (lane % 2), 2 * r + lane // 2 % 2),
        "16x128b": (lane // 4 + 8 * (r % 2), 4 * (r // 2) + lane % 4),
        "16x256b": (lane // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (lane % 4) + r % 2),
        "16x32bx2": (lane % 16, r + lane // 16 * offset),
    }[shape]
    whole = (registers, LANES)
    return np.broadcast_to(row, whole), np.broadcast_to(column, whole)


def move(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.ld` and `tcgen05.st`: registers of a warp from and to its lanes."""
    modifiers, operands = instruction.modifiers, list(instruction.operands)
    is_load = modifiers[0] == "ld"
    shape = next(m for m in modifiers if m in WORDS)
    count = WORDS[shape] * next(int(m[1:]) for m in modifiers if m[0] == "x" and m[1:].isdigit())
    vector, where = (operands[0], operands[1]) if is_load else (operands[-1], operands[0])
    registers = elements(vector)
    if len(registers) != count:
        raise decoder.refuse(f"expected {count} registers")
    offset = 0
    if shape == "16x32bx2":
        offset = _immediate(decoder, operands[2] if is_load else operands[1])
    is_packed = any(m.endswith("pack::16b") for m in modifiers)
    row, column = places(shape, count, 0 if is_packed else offset)
    if is_packed:  # a register has the lower halves of two columns
        column = 2 * column + (np.arange(LANES) // 16 * offset if offset else 0)
    site, guard, address = (
        site_of(decoder, instruction),
        decoder.guard(),
        fetch_address(decoder, where),
    )
    span = int(column.max()) + 1 + is_packed
    least, lanes_used = int(column.min()), 32 if shape == "32x32b" else 16

    def cells(lane: Lane, warp: int) -> tuple[Cells, int, int]:
        at = lane.values[0]
        first_row, first = at >> 16 & 31, at & 0xFFFF
        if first_row + lanes_used > 32 or first_row % 16:
            raise site.fault(
                lane,
                f"takes {lanes_used} lanes from {first_row} on at address {at:#010x}, and the warp "
                "reaches 32 lanes from a multiple of 16 on,",
                "lanes",
            )
        first_row += 32 * (warp % lane.group.wave.warps_a_block % 4)
        memory = memory_of(lane.group.wave, lane.block)
        require_columns(lane, site, memory, at, (first + least, first + span))
        return memory.cells, first_row, first

    if is_load:
        stores = [decoder.store(e, "b32") for e in registers]

        def load(group: Group) -> None:
            found = np.zeros((count, group.rows, LANES), np.uint32)
            for lane in first_lanes(group, guard, [address(group.frame)]):
                number = lane.place // LANES
                data, top, left = cells(lane, int(group.warps[number]))
                words = data[top + row, left + column]
                if is_packed:
                    upper = data[top + row, left + column + 1]
                    words = words & np.uint32(0xFFFF) | upper << np.uint32(16)
                found[:, number] = words
            for store, values in zip(stores, found, strict=True):
                store(group.frame, values)

        return load
    fetches = [decoder.fetch(e, "b32") for e in registers]

    def store(group: Group) -> None:
        values = np.stack([by_warp(group, fetch(group.frame)) for fetch in fetches])
        for lane in first_lanes(group, guard, [address(group.frame)]):
            number = lane.place // LANES
            data, top, left = cells(lane, int(group.warps[number]))
            words = values[:, number]
            if is_packed:
                data[top + row, left + column + 1] = words >> np.uint32(16)
                words = words & np.uint32(0xFFFF)
            data[top + row, left + column] = words

    return store


def _immediate(decoder: Decoder, operand: Operand) -> int:
    if not isinstance(operand, Immediate):
        raise decoder.refuse("expected the offset of the second half")
    return operand.bits


_COPIES = {
    "128x256b": (128, 32, (0,)),
    "128x128b": (128, 16, (0,)),
    "4x256b": (4, 32, (0,)),
    "64x128b": (64, 16, (0, 64)),
    "32x128b": (32, 16, (0, 32, 64, 96)),
}
"""Rows, bytes of a row, and the lanes that the copies of the rows begin at, by shape."""

_PACKED = {"b8x16.b4x16_p64": 4, "b8x16.b6x16_p32": 6}


def copy(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.cp [address], descriptor`: rows of 16-byte chunks of shared memory to lanes.

    With `.b4x16_p64` and `.b6x16_p32` a chunk has 16 packed numbers, which become bytes as products
    read them: those of 4 bits from bit 2 on.
    """
    modifiers = instruction.modifiers
    shape = next(m for m in modifiers if m in _COPIES)
    rows, size, starts = _COPIES[shape]
    bits = next((b for name, b in _PACKED.items() if name.partition(".")[2] in modifiers), 8)
    swaps = "warpx2::01_23" in modifiers
    of_pair = "cta_group::2" in modifiers
    to = fetch_address(decoder, instruction.operands[0])
    source = decoder.fetch(instruction.operands[1], "b64")

    def copy(lane: Lane, site: Site, at: int, descriptor: int) -> None:
        for block in blocks_of(lane, site, of_pair):
            octets = factor_rows(lane, site, block, descriptor, rows, size)
            if bits < 8:
                octets = unpack_bytes(octets.reshape(rows, -1, 16), bits).reshape(rows, size)
                octets = octets << np.uint8(2 if bits == 4 else 0)
            words = np.ascontiguousarray(octets).view(np.uint32)
            memory, first = memory_of(lane.group.wave, block), at & 0xFFFF
            end = first + words.shape[1]
            require_columns(lane, site, memory, at, (first, end))
            for start, part in _targets(at >> 16, rows, starts, swaps):
                memory.cells[start : start + len(words[part]), first:end] = words[part]

    return step_of_lanes(decoder, instruction, (to, source), copy)


def _targets(
    lane: int, rows: int, starts: tuple[int, ...], swaps: bool
) -> Iterator[tuple[int, slice]]:
    """Yield the first lane of each copy of rows, and the rows."""
    if rows == 4:  # the last four lanes of each warp's
        yield from ((32 * warp + 28 + lane % 32, slice(0, 4)) for warp in range(4))
    elif swaps:  # rows 0 to 31 for warps 0 and 1, the others for warps 2 and 3
        yield from (
            (32 * warp, slice(32 * (warp // 2), 32 * (warp // 2) + 32)) for warp in range(4)
        )
    else:
        yield from ((start + lane, slice(0, rows)) for start in starts)


def blocks_of(lane: Lane, site: Site, of_pair: bool) -> tuple[int, ...]:
    """Return a lane's block, or the blocks of its pair."""
    if not of_pair:
        return (lane.block,)
    size = lane.group.wave.program.launch.blocks_a_cluster
    if size % 2:
        raise site.fault(lane, f"needs pairs of blocks, and clusters have {size},", "cluster")
    first = lane.block - lane.block % 2
    return first, first + 1


SHIFTED = 8
"""Columns, 32 bytes, that `tcgen05.shift` moves."""


def shift(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.shift.down [address]`: each of a warp's lanes but the last takes over the 32 bytes
    of the next one."""
    of_pair = "cta_group::2" in instruction.modifiers

    def shift(lane: Lane, site: Site, at: int) -> None:
        top, first = at >> 16, at & 0xFFFF
        if top % 32 or top >= ROWS:
            raise site.fault(lane, f"of lane {top}, no multiple of 32 below 128,", "lanes")
        for block in blocks_of(lane, site, of_pair):
            memory = memory_of(lane.group.wave, block)
            require_columns(lane, site, memory, at, (first, first + SHIFTED))
            own = memory.cells[top : top + 32, first : first + SHIFTED]
            own[:-1] = own[1:].copy()

    address = fetch_address(decoder, instruction.operands[0])
    return step_of_lanes(decoder, instruction, (address,), shift)


def commit(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.commit [barrier]`: all is complete, so that one arrival is signalled."""
    where, *masks = instruction.operands
    is_generic = not instruction.space

    def commit(lane: Lane, site: Site, barrier: int, mask: int | None = None) -> None:
        size = lane.group.wave.program.launch.blocks_a_cluster
        word = shared_bytes(lane, site, as_shared(barrier, is_generic), 8, 8)
        if mask is None:
            complete(word, 0, 1)
            return
        if mask >> size:
            raise site.fault(lane, f"names blocks {mask:#x} of a cluster of {size}")
        for rank in range(size):
            if mask >> rank & 1:
                block = lane.block // size * size + rank
                complete(shared_of(lane, block, word.start, 8), 0, 1)

    fetches = [fetch_address(decoder, where), *(decoder.fetch(mask, "u16") for mask in masks[:1])]
    return step_of_lanes(decoder, instruction, fetches, commit)


def wait(decoder: Decoder, instruction: Instruction) -> Step:
    """`tcgen05.wait` and `tcgen05.fence`: nothing is left to wait for."""
    return skip(decoder, instruction)
