"""Operands of bulk copies, and the completion of an mbarrier's transactions (PTX ISA 9.7.13.15.5,
complete-tx).

A bulk copy completes when it is issued, which is one of the times that the ISA allows.
"""

import numpy as np

from ...ptx.kernel import Address, Instruction, Operand
from ..access.address import address_of
from ..memory.address_facts import add_offset, as_addresses
from ..ops.lanes import DTYPES, scalar
from ..warp.decoder import Decoder, constant
from ..warp.slot import Fetch
from .transfer import Bytes, Lane, Site, block_of, offset_of, shared_bytes, shared_of

COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1


def complete(barrier: Bytes, size: int) -> None:
    """Subtract `size` bytes from the pending count of a barrier's phase; the word is as in
    access/async_copy.py."""
    word = int(barrier.view.view(np.uint64)[0])
    pending, expected, phase = word & COUNT, word >> 20 & COUNT, word >> 61
    coming = (word >> 40 & _BYTES) - size & _BYTES
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
    return Site(decoder.pc, f"`{instruction.mnemonic}`")


def mask_of(decoder: Decoder, instruction: Instruction, operands: list[Operand]) -> Fetch:
    """Remove the cache hint and the mask of blocks from the operands; return the mask, 0 without
    one."""
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        operands.pop()
    if any(m.startswith("multicast") for m in instruction.modifiers):
        return decoder.fetch(operands.pop(), "u16")
    return constant(scalar(0, DTYPES["u16"]))


def targets(
    lane: Lane, site: Site, to: int, barrier: int, mask: int, size: int, align: int = 16
) -> list[tuple[Bytes, Bytes]]:
    """Return the destination in shared memory and its barrier for each block of a mask, or for the
    block of the addresses if the mask is 0."""
    byte_ranges = [
        (shared_bytes(lane, site, to, size, align), shared_bytes(lane, site, barrier, 8, 8))
    ]
    if not mask:
        return byte_ranges
    blocks = lane.group.wave.program.launch.blocks_a_cluster
    if mask >> blocks:
        raise site.fault(lane, f"names blocks {mask:#x} of a cluster of {blocks}")
    return [
        (
            shared_of(lane, block_of(lane, rank), offset_of(to), size),
            shared_of(lane, block_of(lane, rank), offset_of(barrier), 8),
        )
        for rank in range(blocks)
        if mask >> rank & 1
    ]
