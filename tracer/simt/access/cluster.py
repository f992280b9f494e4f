"""Distributed shared memory: accesses to other blocks of a cluster (PTX ISA 5.1.7.2).

A block has its own shared memory at offsets from 0 on. Behind it follow windows of 16 MB for the
blocks of the cluster, in order of rank: `mapa` returns addresses there, which any shared or generic
access takes. The ISA leaves the numbers open.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import KernelFault
from ....traces.schema import Space
from ...ptx.kernel import Instruction
from ...ptx.lines import source_line
from ..memory.memory import WINDOWS
from ..ops.lanes import Array
from ..warp.decoder import Decoder, StepTable
from ..warp.program import Group, Step, Wave

START, SPAN = 0x0F00_0000, 1 << 24
"""Shared address of the window of rank 0, and the size of a window."""

MOST_BLOCKS = 16
"""Maximum blocks per cluster: more than 8 are not portable (CUDA C++ Programming Guide, Thread
Block Clusters).
"""

_FIRST = WINDOWS[Space.SHARED][0] + START
GENERIC = (_FIRST, _FIRST + MOST_BLOCKS * SPAN)
"""Range of these windows in generic addresses: first address, end."""


def owner_and_offset(group: Group, addresses: Array) -> tuple[Array, Array]:
    """Return for shared addresses (rows, columns) the owning blocks of the wave, -1 if the cluster
    has no such block, and the offsets in these blocks' memory.
    """
    size = group.wave.program.launch.blocks_a_cluster
    own = group.row_block[:, None]
    elsewhere = addresses >= START
    rank = (addresses - START) // SPAN
    owner = np.where(elsewhere, own // size * size + rank, own)
    owner = np.where(elsewhere & (rank >= size), -1, owner)
    return owner, np.where(elsewhere, (addresses - START) % SPAN, addresses)


def locate(wave: Wave, warp: int, address: int) -> tuple[int, int]:
    """Return the block of the wave that owns a shared address of a warp, and the offset there."""
    size, own = wave.program.launch.blocks_a_cluster, int(wave.block_of_warp[warp])
    rank, offset = divmod(address - START, SPAN)
    return own // size * size + rank, offset


def _split(
    decoder: Decoder, instruction: Instruction
) -> tuple[int, Callable[[Group], tuple[Array, Array]]]:
    """Return the base of the instruction's state space, and a function from its source, an address,
    to the owner's rank and the offset there.
    """
    shift = 0 if instruction.space else WINDOWS[Space.SHARED][0]
    fetch = decoder.fetch(instruction.operands[1], instruction.type)

    def split(group: Group) -> tuple[Array, Array]:
        value = np.broadcast_to(fetch(group.frame), (group.rows, group.columns))
        address = value.astype(np.int64) - shift
        rank = np.where(address >= START, (address - START) // SPAN, _own_rank(group))
        return rank, np.where(address >= START, (address - START) % SPAN, address)

    return shift, split


def _own_rank(group: Group) -> Array:
    """Return the rank of each row's block in its cluster, (rows, 1)."""
    rank: Array = group.row_block[:, None] % group.wave.program.launch.blocks_a_cluster
    return rank


def _map(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `mapa d, a, b`: the address in the block of rank b that corresponds to a in its
    own.
    """
    kind = instruction.type
    shift, split = _split(decoder, instruction)
    rank, store = (
        decoder.fetch(instruction.operands[2], "u32"),
        decoder.store(instruction.operands[0], kind),
    )
    guard, pc = decoder.guard(), decoder.pc

    def map_address(group: Group) -> None:
        _, offset = split(group)
        target_rank = np.broadcast_to(rank(group.frame), offset.shape).astype(np.int64)
        active = group.guarded(None if guard is None else guard(group.frame))
        _require_rank(
            decoder, group, pc, target_rank if active is None else np.where(active, target_rank, 0)
        )
        there = np.where(target_rank == _own_rank(group), 0, START + target_rank * SPAN)
        if store is not None:
            store(group.frame, (there + offset + shift).astype(f"u{_bytes(kind)}"))

    return map_address


def _bytes(kind: str) -> int:
    return int(kind[1:]) // 8


def _require_rank(decoder: Decoder, group: Group, pc: int, ranks: NDArray[Any]) -> None:
    size = group.wave.program.launch.blocks_a_cluster
    if int(ranks.max()) >= size:
        raise KernelFault(
            f"{source_line(decoder.kernel, pc)}: kernel `{group.wave.program.name}` asks for "
            f"memory of block {int(ranks.max())} of a cluster of {size}"
        )


def _rank(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `getctarank d, a`: the rank of the block that owns an address."""
    _, split = _split(decoder, instruction)
    store = decoder.store(instruction.operands[0], "u32")

    def find_rank(group: Group) -> None:
        if store is not None:
            store(group.frame, split(group)[0].astype(np.uint32))

    return find_rank


STEPS: StepTable = {"mapa": _map, "getctarank": _rank}
