"""The state that the warp scheduler works on, which Python and compiled code share.

`Schedule` is a structure of 64-bit words: the warps of a wave, their SIMT stacks, the control flow
of the kernel, the group of warps that runs now, and the log of what ran. The constants name how a
basic block ends, and why the scheduler returns to Python.
"""

from ....jit.structure import I32, I64, U8, U32
from ..rows.access_rows import RowBuffer

READY, WAITING, EXITED = 0, 1, 2
"""States of a warp: ready, waiting at a barrier, exited."""

NEVER = (1 << 31) - 1
"""The order of a warp that cannot run."""

SPINNING = 1 << 30
"""Added to the order of a warp that spins: above every rank of a basic block, below NEVER."""

STALE = -1
"""Marks a group of 32 warps in which a warp has moved, so that its least order must be
recomputed."""

SPIN_BUDGET = 64
"""Blocks of a spin loop that an entry runs before its warp yields to another entry. The budget is
halved after each yield, down to LEAST_SPIN_BUDGET. It counts blocks, whatever the loop's length.
"""
LEAST_SPIN_BUDGET = 16

FAIR = 64
"""After this many picks of one block in a row the longest waiting warps run first."""

JUMP, BRANCH, EXIT, EXIT_SOME, RETURN_SOME, CALL, SWITCH, WARP_SYNC, BARRIER, OTHER = range(10)
"""How a basic block ends. JUMP: all lanes go to one block, also by falling through or by a return.
BRANCH: a conditional branch. EXIT, EXIT_SOME: all lanes exit, or those with a true guard.
RETURN_SOME: a guarded return. CALL: of functions with a body. SWITCH: `brx`. WARP_SYNC: an
instruction that synchronizes lanes of a warp. BARRIER: of the whole thread block. OTHER: an end
that Python executes (a trap, a barrier of some threads, a barrier of a cluster).
"""

IDLE, WRITE, INTERPRET, ENDING, FAULT, WOKEN, DEEPEN, YIELD, SPINS = range(9)
"""Why the scheduler returns to Python.

IDLE: no warp is ready. WRITE: rows or the log are full, or the budget is spent. INTERPRET: the
block of the group has no machine code. ENDING: Python has to end the block: lanes may have to wait
for others there. FAULT: machine code met a fault. WOKEN: a warp exited while others wait, or an
entry reconverged while another of its warp waits. DEEPEN: the stacks need more levels. YIELD: warps
have spun longer than their patience. SPINS: every warp that can run only spins.
"""


class Schedule(RowBuffer):
    """A wave of `warps` warps: `blocks` thread blocks of `a_block` warps each.

    SIMT stacks: `block`, `join`, `mask` and `called` are the top entries; those of level k below
    the top are in `below_block` and the others, at k * warps + warp, for `levels` levels. The
    stacks have at most `most_depth` entries below the top, and one block pushes at most `spare`
    more. `alternate` is the level of the side that waits since the last divergence (-1: it ran).
    `parked` are lanes that wait at a barrier, `meeting` those that wait for others of their
    warp. `order` is the rank of the warp's basic block, NEVER unless the warp is ready;
    `part_order` is the least order per 32 warps.

    Control flow, for each basic block: `codes` is the address of its machine code (0: none),
    `lengths` its instructions, `endings` how it ends, `targets` and `others` the successors of the
    lanes that take its branch and of the others, `joins` its reconvergence block. `leaving` is the
    successor through which lanes leave a region that others stay in (-1: neither), and
    `outer_joins` are the blocks where these wait for one another, from `first_outer_join` on.
    With `fewer_first` the smaller side of a branch runs first, the fall-through of two equal ones.
    `sides` of a call are its callees, of a switch its targets, from `first_side` on: `side_entry`,
    and for callees `side_exit`. `waits` marks the blocks of spin loops, if `may_wait`. Blocks from
    number `first_end` on are the ends of functions and hold no instructions.

    The group: the `count` warps `chosen` run block `number` with the lanes `active`; of these,
    `taken` take its branch. `sides` has the lanes that take each side: those of all warps of the
    group for the first side, then for the second.

    Spinning: `spins` counts the blocks of spin loops that a warp ran in a row, `patience` is its
    present budget of them. Once all warps spin, `leader` is scheduled for `lead_left` more ticks.

    The log has an entry per warp and block, with the repeats of the same block with the same lanes;
    `last_entry` is each warp's last one. `logged` counts the blocks. `rows` access rows wait to be
    written. The scheduler returns at `log_limit` and at `row_limit`, and once the `budget` of
    instructions is spent.
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
    alternate: I32
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
    fewer_first: int
    first_outer_join: I32
    outer_joins: I32
    branches: I32
    waits: U8
    first_side: I32
    side_entry: I32
    side_exit: I32

    tick: int
    picked: int
    times: int
    leader: int
    lead_left: int
    number: int
    count: int
    chosen: I32
    active: U32
    taken: U32
    sides: U32

    entries: int
    logged: int
    log_limit: int
    last_entry: I32
    log_warp: I32
    log_block: I32
    log_masks: I64
    log_repeat: I32
    row_limit: int

    may_wait: int
    progress: int
    budget: int
    waiting: int
    has_woken: int
