"""The state of a wave that compiled code and Python share.

`Machine` is a structure of 64-bit words: the warps, their SIMT stacks, the group of warps that runs
now, their register frames, the memories and the access rows that wait to be written. The constants
name how a basic block ends and why compiled code returns to Python.
"""

from ....jit.structure import I32, I64, U8, U32, Struct
from ..rows.pattern import Questions, Table

NEVER = (1 << 31) - 1
"""The order of a warp that cannot run."""

STALE = -1
"""Marks a group of 32 warps in which a warp has moved, so that its least order must be
recomputed."""

JUMP, DIVIDE, LEAVE, LEAVE_SOME, BARRIER, OTHER, CALL, RETURN_SOME, SWITCH, WARP_SYNC = range(10)
"""How a basic block ends: all lanes jump (JUMP), a conditional branch (DIVIDE), all lanes exit
(LEAVE), some exit (LEAVE_SOME), a barrier of the whole thread block (BARRIER), an end that only
the array engine runs (OTHER), a call, a return of some lanes, a switch, or an instruction that
synchronizes lanes of a warp (WARP_SYNC)."""

IDLE, WRITE, FOREIGN, ENDING, FAULT, ENDED, DEEPEN, YIELD, SPINS = range(9)
"""Why compiled code returns to Python.

IDLE: no warp is ready. WRITE: rows or the log are full, or the budget is spent. FOREIGN: the block
belongs to a loop without an exit, which is not compiled. ENDING: the end of the block is not
compiled, or lanes may have to wait for others. FAULT: a lane accessed memory that it must not
access. ENDED: a warp exited while others wait, or a stack entry did while another of its warp
waits. DEEPEN: the stacks need more levels. YIELD: warps have spun longer than their patience.
SPINS: every warp that can run only spins.
"""


class Machine(Struct):
    """A wave of `warps` warps: `blocks` thread blocks of `a_block` warps each.

    Registers: the frame of a warp takes `frame_bytes` bytes of `frames`; the 32 lanes of a register
    are contiguous in it. Special registers are in three tables: of the launch, of each thread block
    of the wave, and of each warp of a block.

    Warps: these arrays belong to SimtStacks. `order` is the rank of the warp's basic block, NEVER
    unless the warp is ready; `part_order` is the least order per 32 warps. The stacks have at most
    `most_depth` entries below the top, and one block pushes at most `spare` more.

    Basic blocks: `codes` is the address of the compiled block (0: none). Blocks from number
    `first_end` on are the ends of functions and hold no instructions. The callees of a call and the
    targets of a switch start at `first_side` and end before the next block's; `sides` is the mask
    of the lanes that take each of them: those of all warps of the group for the first, then for the
    second. `leaving` is the successor through which lanes leave a loop that others stay in (-1:
    neither); the blocks where lanes wait for those that leave are in `behind`, from `first_behind`
    on. `waits` marks the blocks of spin loops, if `may_wait`.

    Spinning: `spins` and `patience` are those of SimtStacks, `parked` is that of Barriers,
    `meeting` that of Meetings. Once all warps spin, `leader` is scheduled for `lead_left` more
    ticks.

    Calls: recursion spills registers to `aside`, all warps of a level before the next level, with
    room for `aside_levels` levels.

    Rows: those of the current basic block begin at `rows`: the rows of its first access for all
    warps of the group, then those of its second. `site_pattern` is the last pattern per access and
    warp, -1 for none. The rows of the first `finished` accesses of the block are taken; `upto` is
    how many are to be taken.

    Escapes: `escape` is the callback of an escape; it takes the pc and the number of accesses
    before it.

    Accesses: `site_as` maps an access to the one that its rows belong to: itself, or for generic
    addresses the access of the state space found, from `site_in` on in the order of the regions.
    For such an access, `low` and `high` bound the lanes' addresses; `region`, `shift` (subtracted
    from the addresses), `window` and `arena` describe its space. `outside_lanes` counts the lanes
    outside of all allocations but inside one of the `mapped` ranges of memory (0 ranges: such a
    lane faults). The other `outside` arrays are the first such lane of the first such warp.
    """

    warps: int
    a_block: int
    blocks: int
    levels: int
    most_depth: int
    spare: int
    block: I32
    join: I32
    mask: U32
    state: U8
    depth: I32
    called: U8
    parked: U32
    meeting: U32
    below_block: I32
    below_join: I32
    below_mask: U32
    below_called: U8
    order: I32
    part_order: I32
    waited: I64
    spins: I32
    patience: I32
    step: U32

    ranks: I32
    codes: I64
    first_end: int
    lengths: I32
    endings: I32
    targets: I32
    others: I32
    joins: I32
    leaving: I32
    first_behind: I32
    behind: I32
    branches: I32
    waits: U8
    first_side: I32
    side_entry: I32
    side_exit: I32
    first_site: I32
    site_count: I32

    tick: int
    picked: int
    times: int
    fair: int
    leader: int
    lead_left: int
    number: int
    count: int
    chosen: I32
    active: U32
    taken: U32
    sides: U32

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
    rows: int
    row_limit: int
    dropped: int
    finished: int
    upto: int
    escape: int
    row_warp: I32
    row_step: U32
    row_base: I64
    row_pattern: I32
    runs: int
    run_site: I32
    site_as: I32
    site_in: I32
    low: int
    high: int
    region: int
    shift: int
    window: int
    arena: int
    run_count: I32
    lanes_on: I64

    entries: int
    logged: int
    log_limit: int
    last_entry: I32
    log_warp: I32
    log_block: I32
    log_masks: I64
    log_repeat: I32

    may_wait: int
    progress: int
    budget: int
    waiting: int
    has_ended: int
    fault_site: int
    fault_warp: int
    fault_mask: int
    fault_addresses: I64
