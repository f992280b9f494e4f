"""Decoding of warp-wide instructions at which diverged lanes wait for one another."""

import numpy as np

from ...ptx.kernel import Instruction, Register
from ...ptx.reconvergence import mask_of, sync_key
from ..ops.lanes import LANES, Array, Bits
from ..warp.decoder import Decoder
from ..warp.program import Group, Terminator
from ..warp.shuffle_vote import STEPS, by_warp, decode_collective
from ..warp.warp_sync import Arrival

_LANE = np.arange(LANES, dtype=np.uint32)


def decode_warp_sync(decoder: "Decoder", instruction: Instruction, after: int) -> Terminator:
    """Return the terminator of a block that is one warp-wide instruction; `after` is the next
    block.
    """
    key, fetch_masks = sync_key(instruction), decoder.fetch(mask_of(instruction), "b32")
    collective = decode_collective(decoder, instruction)
    outputs = collective.outputs if collective is not None else ()
    fetches = collective.sources if collective is not None else ()
    compute = collective.compute if collective is not None else None
    slots = tuple(
        decoder.slots.write(decoder.slots.of(decoder.function, to), maybe=True)
        if isinstance(to, Register)
        else None
        for to, _ in outputs
    )
    at_once = STEPS[instruction.opcode](decoder, instruction)
    assert key is not None
    assert at_once is not None

    def meet(group: "Group") -> None:
        stacks = group.wave.stacks
        masks, *columns = (_rows(group, fetch(group.frame)) for fetch in (fetch_masks, *fetches))
        if _has_waiting_lanes(group, masks):
            for row, warp in enumerate(group.warps.tolist()):
                values = tuple(column[row].copy() for column in columns)
                lanes = int(group.active[row])
                arrival = Arrival(key, lanes, masks[row].copy(), values, slots, compute)
                stacks.meetings.arrive(warp, arrival)
        else:
            at_once(group)
        stacks.jump(group.warps, after)

    return meet


def _rows(group: "Group", value: Array) -> Array:
    """Return a value as (warps of the group, 32)."""
    rows = by_warp(group, value)
    return rows if group.compacted else rows[group.warps]


def _has_waiting_lanes(group: "Group", masks: Bits) -> bool:
    """Return whether any mask has lanes outside of the group, or other lanes wait for the
    group's.
    """
    stacks = group.wave.stacks
    if stacks.meetings.parked[group.warps].any():
        return True
    active = (group.active[:, None] >> _LANE & np.uint32(1)).astype(np.bool_)
    partners = np.bitwise_or.reduce(np.where(active, masks, np.uint32(0)), axis=1)
    return bool((partners & stacks.live()[group.warps] & ~group.active).any())
