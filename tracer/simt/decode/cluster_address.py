"""`mapa` and `getctarank`: addresses of the shared memory of other blocks of a cluster.

`mapa.leader d, a, mask` is the linker's, for `and` (tracer/ptx/link.py, name_leaders).
"""

from collections.abc import Callable

import numpy as np

from ....traces.schema import Space
from ...ptx.kernel import Instruction
from ..access.cluster import MOST_BLOCKS, SPAN, START
from ..memory.memory import WINDOWS
from ..ops.lanes import Array
from ..warp.program import Group, Step
from .decoder import Decoder, StepTable


def _split(
    decoder: Decoder, instruction: Instruction
) -> tuple[int, Callable[[Group], tuple[Array, Array]]]:
    """Return the base of the instruction's state space, and a function from its source, an address,
    to the owner's rank and the offset there.
    """
    shift = 0 if instruction.space else WINDOWS[Space.SHARED][0]
    fetch = decoder.fetch(instruction.operands[1], instruction.type)

    def split(group: Group) -> tuple[Array, Array]:
        value = np.broadcast_to(fetch(group.frame), group.shape)
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
    if "leader" in instruction.modifiers:
        return _leader(decoder, instruction)
    kind = instruction.type
    shift, split = _split(decoder, instruction)
    rank, store = (
        decoder.fetch(instruction.operands[2], "u32"),
        decoder.store(instruction.operands[0], kind),
    )

    def map_address(group: Group) -> None:
        _, offset = split(group)
        target_rank = np.broadcast_to(rank(group.frame), offset.shape).astype(np.int64)
        # A rank that no block has is a fault where the address is used.
        target_rank = np.minimum(target_rank, MOST_BLOCKS)
        there = np.where(target_rank == _own_rank(group), 0, START + target_rank * SPAN)
        store(group.frame, (there + offset + shift).astype(f"u{_bytes(kind)}"))

    return map_address


def _leader(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `mapa.leader d, a, mask`: the address in the first block of the pair."""
    to, source, mask = instruction.operands
    fetches = [decoder.fetch(operand, "u32") for operand in (source, mask)]
    store = decoder.store(to, "u32")

    def find_leader(group: Group) -> None:
        address, bits = (np.broadcast_to(fetch(group.frame), group.shape) for fetch in fetches)
        inner, rank = address & bits, _own_rank(group).astype(np.uint32)
        is_of_second = (inner < START) & (rank % 2 == 1)
        leader = inner + START + (rank & ~np.uint32(1)) * np.uint32(SPAN)
        store(group.frame, np.where(is_of_second, leader, inner).astype(np.uint32))

    return find_leader


def _bytes(kind: str) -> int:
    return int(kind[1:]) // 8


def _rank(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `getctarank d, a`: the rank of the block that owns an address."""
    _, split = _split(decoder, instruction)
    store = decoder.store(instruction.operands[0], "u32")

    def find_rank(group: Group) -> None:
        store(group.frame, split(group)[0].astype(np.uint32))

    return find_rank


STEPS: StepTable = {"mapa": _map, "getctarank": _rank}
