"""Operands of bulk copies: addresses, masks of blocks, and where bytes go for these."""

from ...ptx.kernel import Address, Instruction, Operand
from ..array.decoder import Decoder, constant
from ..array.slot import Fetch
from ..lanes import DTYPES, scalar
from ..memory.address import address_of
from ..memory.address_facts import as_addresses, moved
from .bytes_of import Bytes, Site, block_of, offset_of, shared_bytes, shared_of
from .lane import Lane


def fetch_address(decoder: Decoder, operand: Operand) -> Fetch:
    """Return a function to the addresses of an operand in brackets, as int64."""
    if not isinstance(operand, Address):
        raise decoder.refuse("expected an address in brackets")
    fetch, offset = address_of(decoder, operand)
    return lambda frame: as_addresses(moved(fetch(frame), offset) if offset else fetch(frame))


def site_of(decoder: Decoder, instruction: Instruction) -> Site:
    """Return the place of the instruction in hand, for messages."""
    return Site(decoder.pc, f"`{instruction.mnemonic}`")


def mask_of(decoder: Decoder, instruction: Instruction, operands: list[Operand]) -> Fetch:
    """Take the hint to caches and the mask of blocks off the operands; return the mask, 0 where
    there is none."""
    if any(m.endswith("cache_hint") for m in instruction.modifiers):
        operands.pop()
    if any(m.startswith("multicast") for m in instruction.modifiers):
        return decoder.fetch(operands.pop(), "u16")
    return constant(scalar(0, DTYPES["u16"]))


def targets(
    lane: Lane, site: Site, to: int, barrier: int, mask: int, size: int, align: int = 16
) -> list[tuple[Bytes, Bytes]]:
    """Return where bytes go in shared memory, and the barrier that is told so: for each block of
    a mask, or the one that the addresses name if that is 0."""
    found = [(shared_bytes(lane, site, to, size, align), shared_bytes(lane, site, barrier, 8, 8))]
    if not mask:
        return found
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
