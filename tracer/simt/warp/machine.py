"""The state of a wave that machine code works on: the schedule of its warps, their register frames,
the memories, and the access rows that wait to be written.
"""

from ....jit.structure import I32, I64, U8
from ..rows.pattern import Questions, Table
from .schedule import Schedule


class Machine(Schedule):
    """A wave that runs machine code.

    Registers: the frame of a warp takes `frame_bytes` bytes of `frames`; the 32 lanes of a register
    are contiguous in it. Special registers are in three tables: of the launch, of each thread block
    of the wave, and of each warp of a block.

    Calls: recursion spills registers to `aside`, all warps of a level before the next level, with
    room for `aside_levels` levels.

    Rows: those of the current basic block begin at `rows`: the rows of its first access for all
    warps of the group, then those of its second. `site_pattern` is the last pattern per access and
    warp, -1 for none. The rows of the first `finished` accesses of the block are taken; `upto` is
    how many are to be taken. The accesses of a block begin at `first_site` and are `site_count`.

    Escapes: `escape` is the callback of an escape; it takes the pc and the number of accesses
    before it.

    Accesses: `site_as` maps an access to the one that its rows belong to: itself, or for generic
    addresses the access of the state space found, from `site_in` on in the order of the regions.
    For such an access, `low` and `high` bound the lanes' addresses; `region`, `shift` (subtracted
    from the addresses), `window` and `arena` describe its space. `outside_lanes` counts the lanes
    outside of all allocations but inside one of the `mapped` ranges of memory (0 ranges: such a
    lane faults). The other `outside` arrays are the first such lane of the first such warp.
    """

    first_site: I32
    site_count: I32

    frames: U8
    frame_bytes: int
    parameters: U8
    launch_table: U8
    block_table: U8
    warp_table: U8
    global_bytes: int
    const_bytes: int
    shared_bytes: int
    shared_size: int
    local_bytes: int
    local_size: int
    aside: U8
    aside_levels: int
    scratch: I64
    starts: I64
    ends: I64
    allocations: int
    const_starts: I64
    const_ends: I64
    const_allocations: int
    mapped_starts: I64
    mapped_ends: I64
    mapped: int
    outside_lanes: I64
    outside_warp: I64
    outside_lane: I64
    outside_address: I64

    table: Table
    site_low: I64
    site_limit: I64
    site_pattern: I32
    questions: Questions
    dropped: int
    finished: int
    upto: int
    escape: int
    site_as: I32
    site_in: I32
    low: int
    high: int
    region: int
    shift: int
    window: int
    arena: int
    lanes_on: I64

    fault_site: int
    fault_warp: int
    fault_mask: int
    fault_addresses: I64
