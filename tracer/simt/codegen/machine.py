"""What compiled code knows of a wave: its warps, their splits, the group that runs, its rows."""

from ....jit.structure import I32, I64, U8, U32, Struct
from ..rows.pattern import Questions, Table

NEVER = (1 << 31) - 1
"""The order of a warp that cannot run."""

STALE = -1
"""The least order of warps that have moved since it was looked for."""

JUMP, DIVIDE, LEAVE, LEAVE_SOME, BARRIER, OTHER, CALL, RETURN_SOME, SWITCH, WARP_SYNC = range(10)
"""How a basic block ends: all go on, a branch, all exit, some exit, a barrier for the whole thread
block, in a way that the array engine knows, a call, a return of some lanes, a switch, or an
instruction at which lanes of a warp meet."""

IDLE, WRITE, FOREIGN, ENDING, FAULT, ENDED, DEEPEN, YIELD, SPINS = range(9)
"""Why compiled code stops: no warp is ready; rows have to be written; nothing leaves the loop of
the block; its end is not compiled, or lanes may have to wait for others; a lane reached memory that
it must not; a warp ended while others wait, or splits did while one of their warp waits; splits
need more room; warps have lost their patience; all that can run only wait."""


class Machine(Struct):
    """A wave of `warps` warps, `blocks` thread blocks of `a_block` warps each.

    A warp's registers lie in `frames`, `frame_bytes` each, a register's 32 lanes side by side;
    special registers in tables of the launch, of the wave's blocks and of a block's warps.
    Arrays over warps are those of SplitStacks; `order` is the rank of the warp's basic block, NEVER
    unless it is ready, and `part_order` the least of 32 warps each. Arrays over basic blocks:
    `codes` is where the compiled block lies (0: nowhere). From number `first_end` on they are the
    ends of functions, and hold nothing. Rows of the basic block in hand begin at `rows`: those of
    its first access by all warps of the group, then those of its second.
    The functions that a call enters, and the targets of a switch, are `first_side` and those after
    it, up to the next block's; `sides` has which lanes of each warp of the group go to the first,
    then the second, and so on.
    `leaving` is the successor of a branch that leaves a loop (-1: neither), which others stay in;
    the blocks where lanes wait for those that leave are `behind`, from `first_behind` on.
    Splits are `most_depth` deep, and `spare` more may come with one block. What a recursion puts
    aside lies in `aside`, a level of all warps after the other, with room for `aside_levels`.
    Basic blocks of loops that wait have `waits`, if `may_wait`; `spins` and `patience` are those of
    SplitStacks, `parked` that of Barriers, `meeting` that of Meetings. `leader` leads those that
    have all waited, `lead_left` more times. `site_pattern` has the last pattern of each access and
    warp, -1 for none. `escape` is what an escape calls, with its pc and the number of accesses
    before it; rows of the first `finished` accesses of the basic block are taken, and `upto` says
    how many are to be.

    Arrays over accesses: `site_as` is the access that its rows are of: itself, but for one with
    generic addresses that of its state space, from `site_in` on in order of regions. Of such an
    access in hand the lanes' addresses lie from `low` to `high`; `region`, `shift` (what is taken
    off addresses), `window` and `arena` are those of its space. `outside_lanes` counts lanes
    outside of allocations in one of the `mapped` ranges of memory (0 of them: that is a fault), of
    which the others have the first lane of the first warp.
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
