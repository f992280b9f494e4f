"""The state of a wave that compiled code works on: the schedule of its warps, their register
frames, the memories, and the access rows that wait to be written.
"""

from ....jit.structure import I32, I64, U8, U32
from .schedule import Schedule


class Machine(Schedule):
    """A wave, for its accesses and for machine code.

    Registers: the frame of a warp takes `frame_bytes` bytes of `frames`; the 32 lanes of a register
    are contiguous in it. Special registers are in three tables: of the launch, of each thread block
    of the wave, and of each warp of a block.

    Calls: recursion spills registers to `aside`, all warps of a level before the next level, with
    room for `aside_levels` levels.

    Rows: those of the current basic block begin at `rows`: the rows of its first access for all
    warps of the group, then those of its second. The rows of the first `finished` accesses of the
    block are taken; `upto` is how many are to be taken. The accesses of a block begin at
    `first_site` and are `site_count`. A site has the pc, state space and part of its rows, and the
    bounds of its last allocation: `site_low`, and the last valid offset from there, `site_limit`.
    The interpreter uses one further site, number `sites`.

    Memory, by state space: the address of its first byte and of its map of written bytes,
    `space_bytes` and `space_written`; its allocations in `starts` and `ends` from
    `first_allocation` on. In the `mapped` ranges of global memory a lane outside of all allocations
    is counted; without any it faults. `shared_size` and `local_size` are the bytes of a thread
    block and of a thread.

    An access of the whole group (access/reach.py): `reach_lanes` are the lanes that it has yet to
    reach, `part_lanes` and `part_space` those of the present `part`, a mask per warp; `pointers`
    gets the address of each lane's bytes, `written_at` of their map if one `is_watched`.

    Stores to global memory, under a `guard` (reach.py): `moves` has the bytes per lane that each
    instruction moves, negative for a store; `stored` the allocations with a store.

    Escapes: `escape` is the callback of an escape; it takes the pc and the number of accesses
    before it.

    Clocks: cycles that have passed besides the instructions, `clock_leap`.

    Faults: access `fault_site` of the block, -1 if there is no fault.
    """

    first_site: I32
    site_count: I32
    sites: int
    site_pc: I32
    site_space: I32
    site_part: I32
    site_low: I64
    site_limit: I64

    space_bytes: I64
    space_written: I64
    first_allocation: I32
    starts: I64
    ends: I64
    mapped_starts: I64
    mapped_ends: I64
    mapped: int
    shared_size: int
    local_size: int
    cluster_blocks: int

    reach_lanes: U32
    part_lanes: U32
    part_space: I32
    part: int
    pointers: I64
    written_at: I64
    is_watched: int

    frames: U8
    frame_words: I64
    frame_bytes: int
    parameters: U8
    launch_table: U8
    block_table: U8
    warp_table: U8
    global_bytes: int
    const_bytes: int
    shared_bytes: int
    local_bytes: int
    aside: U8
    aside_levels: int
    scratch: I64

    guard: int
    moves: I32
    stored: I32

    dropped: int
    finished: int
    upto: int
    escape: int
    lanes_on: I64
    clock_leap: int

    fault_site: int
    fault_pc: int
    fault_space: int
    fault_width: int
    fault_problem: int
    fault_warp: int
    fault_lane: int
    fault_address: int
