"""The warp scheduler and the SIMT stacks of compiled code, one warp at a time.

It does what SimtStacks does with arrays, in the same order to the last tick: the rows, the memory
and the histories of both engines must be equal. See tracer/simt/warp/simt_stack.py for the rules.
`jit` compiles the functions of this module; they take the `Machine` and return integers.
"""

from ....jit.structure import I32
from ....jit.value import assembly, invoke, trailing_zeros
from ..warp.simt_stack import OUTER_JOIN, SPIN_BUDGET
from ..warp.stack_entry import EXITED, READY
from .access_check import finish_rows
from .machine import (
    BARRIER,
    CALL,
    DEEPEN,
    DIVIDE,
    ENDED,
    ENDING,
    FAULT,
    FOREIGN,
    IDLE,
    JUMP,
    LEAVE,
    LEAVE_SOME,
    NEVER,
    OTHER,
    RETURN_SOME,
    SPINS,
    STALE,
    SWITCH,
    WARP_SYNC,
    WRITE,
    YIELD,
    Machine,
)

_LANES_THAT = """
define internal i64 @{name}(ptr %p, i64 %value) {{
  %a = load <32 x i32>, ptr %p, align 4
  %v = trunc i64 %value to i32
  %i = insertelement <32 x i32> poison, i32 %v, i64 0
  %s = shufflevector <32 x i32> %i, <32 x i32> poison, <32 x i32> zeroinitializer
  %c = icmp {relation} <32 x i32> %a, %s
  %b = bitcast <32 x i1> %c to i32
  %r = zext i32 %b to i64
  ret i64 %r
}}
"""


@assembly(_LANES_THAT.format(name="equal_lanes", relation="eq"))
def equal_lanes(values: I32, value: int) -> int:
    """Return a 32-bit mask of the first 32 elements that equal `value`."""
    raise NotImplementedError


@assembly("""
declare i32 @llvm.vector.reduce.smin.v32i32(<32 x i32>)
define internal i64 @least(ptr %p) {
  %a = load <32 x i32>, ptr %p, align 4
  %m = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %a)
  %r = sext i32 %m to i64
  ret i64 %r
}
""")
def least(values: I32) -> int:
    """Return the least of the first 32 elements."""
    raise NotImplementedError


@assembly(_LANES_THAT.format(name="lanes_up_to", relation="sle"))
def lanes_up_to(values: I32, value: int) -> int:
    """Return a 32-bit mask of the first 32 elements that are at most `value`."""
    raise NotImplementedError


def parts_of(m: Machine) -> int:
    """Return the number of groups of 32 warps."""
    return (m.warps + 31) >> 5


def lowest_order(m: Machine) -> int:
    """Return the least order of all warps, and recompute the stale entries of `part_order`."""
    # `part_order` caches the least order per 32 warps: a step recomputes it only for the groups
    # with a warp that moved, and compares 32 groups at once.
    lowest = NEVER
    for first in range(0, parts_of(m), 32):
        stale = equal_lanes(m.part_order[first:], STALE)
        while stale:
            part = first + trailing_zeros(stale)
            m.part_order[part] = least(m.order[32 * part :])
            stale = stale & (stale - 1)
        lowest = min(lowest, least(m.part_order[first:]))
    return lowest


def choose(m: Machine) -> int:
    """Select the warps that run next, in ascending order; return 0 if no warp is ready."""
    m.tick += 1
    lowest = lowest_order(m)
    if lowest == NEVER:
        return 0
    # Every ready warp spins (place_order adds OUTER_JOIN to their orders): follow one leader for
    # `fair` ticks.
    if lowest >= OUTER_JOIN:
        lowest = leading(m)
    elif lowest == m.picked and m.times >= m.fair:
        # The lowest block ran `fair` times in a row: schedule the warp that starves.
        lowest = longest_waiting(m, lowest)
    m.times = m.times + 1 if lowest == m.picked else 1
    m.picked = lowest
    m.count = 0
    for first in range(0, parts_of(m), 32):
        some = lanes_up_to(m.part_order[first:], lowest)
        while some:
            take_equal(m, first + trailing_zeros(some), lowest)
            some = some & (some - 1)
    return 1


def take_equal(m: Machine, part: int, order: int) -> None:
    """Add the warps of a group of 32 that have this order to the running group."""
    count = m.count
    bits = equal_lanes(m.order[32 * part :], order)
    while bits:
        warp = 32 * part + trailing_zeros(bits)
        m.chosen[count] = warp
        m.active[count] = m.mask[warp]
        m.taken[count] = 0
        m.waited[warp] = m.tick
        count += 1
        bits = bits & (bits - 1)
    m.count = count


def longest_waiting(m: Machine, lowest: int) -> int:
    """Return the order of the ready warp at another block that has waited longest; `lowest` if
    none."""
    best = patient(m, lowest)
    if best < 0:
        return lowest
    return int(m.order[best])


def patient(m: Machine, but: int) -> int:
    """Return the ready warp, of another order than `but`, that has waited longest; -1 if none."""
    best = -1
    for warp in range(m.warps):
        if m.order[warp] == NEVER or m.order[warp] == but:
            continue
        if best < 0 or m.waited[warp] < m.waited[best]:
            best = warp
    return best


def leading(m: Machine) -> int:
    """Return the order of the leader: the warp to schedule once all warps spin."""
    if m.lead_left == 0 or m.order[m.leader] == NEVER:
        m.leader = patient(m, NEVER)
        m.lead_left = m.fair
    m.lead_left -= 1
    return int(m.order[m.leader])


def place_order(m: Machine, warp: int) -> None:
    """Update the order of a warp; a warp that spins comes after all others."""
    order = NEVER
    if m.state[warp] == READY:
        order = m.ranks[m.block[warp]]
        if m.may_wait and m.spins[warp] > 0 and m.waits[m.block[warp]]:
            order += OUTER_JOIN
    m.order[warp] = order
    m.part_order[warp >> 5] = STALE


def take_out(m: Machine, warp: int, lanes: int, returns: int) -> None:
    """Remove lanes from every stack entry of their warp; with `returns` 1 only from the entries of
    the current call."""
    here = m.mask[warp]
    m.mask[warp] = here & ~lanes
    # A lane that returns leaves the entries down to the one that the call pushed (`called`). The
    # caller's entries below keep it, and it continues there.
    remainder = lanes
    if returns and m.called[warp]:
        remainder = remainder & ~here
    level = m.depth[warp] - 1
    while level >= 0:
        below = level * m.warps + warp
        here = m.below_mask[below]
        m.below_mask[below] = here & ~remainder
        if returns and m.below_called[below]:
            remainder = remainder & ~here
        level -= 1


def is_over(m: Machine, warp: int) -> int:
    """Return whether the top entry has reached its reconvergence point or is empty."""
    return 1 if m.block[warp] == m.join[warp] or m.mask[warp] == 0 else 0


def settle(m: Machine, warp: int) -> None:
    """Pop the entries that have reconverged or are empty, and set the warp's state.

    The warp exits if no entry is left. It waits if the new top entry waits at a barrier or for
    other lanes of the warp. Lanes at the end of a function are removed from the entries of the call
    that would have waited for them.
    """
    if m.block[warp] >= m.first_end and m.join[warp] != m.block[warp]:
        take_out(m, warp, m.mask[warp], 1)
    popped = 0
    while is_over(m, warp):
        if m.depth[warp] == 0:
            m.state[warp] = EXITED
            m.has_ended = 1
            break
        # A pop makes the entry below run with its own mask. After a branch (lanes 0 to 3):
        #   top    block 2  join 3  mask 0011   reaches 3 and is popped
        #   below  block 1  join 3  mask 1100   runs next
        #   below  block 3  join 9  mask 1111   runs once both sides have reached 3
        drop(m, warp)
        popped = 1
    if popped and m.mask[warp] & (m.parked[warp] | m.meeting[warp]):
        m.has_ended = 1
        m.waiting = 1
    place_order(m, warp)


def push(m: Machine, warp: int, block: int, join: int, lanes: int) -> None:
    """Push an entry; the current top entry moves to the `below` arrays."""
    below = m.depth[warp] * m.warps + warp
    m.below_block[below] = m.block[warp]
    m.below_join[below] = m.join[warp]
    m.below_mask[below] = m.mask[warp]
    m.below_called[below] = m.called[warp]
    m.depth[warp] += 1
    m.block[warp] = block
    m.join[warp] = join
    m.mask[warp] = lanes
    m.called[warp] = 0
    m.most_depth = max(m.most_depth, m.depth[warp])


def drop(m: Machine, warp: int) -> None:
    """Pop the top entry."""
    depth = m.depth[warp] - 1
    below = depth * m.warps + warp
    m.depth[warp] = depth
    m.block[warp] = m.below_block[below]
    m.join[warp] = m.below_join[below]
    m.mask[warp] = m.below_mask[below]
    m.called[warp] = m.below_called[below]


def is_inside(m: Machine, warp: int, join_block: int) -> int:
    """Return whether the top entry, or one below it of the same call that waits for its lanes,
    reconverges at `join_block`."""
    if m.join[warp] == join_block:
        return 1
    called = m.called[warp]
    level = m.depth[warp] - 1
    while level >= 0 and called == 0:
        below = level * m.warps + warp
        if m.below_mask[below] & m.mask[warp]:
            if m.below_join[below] == join_block:
                return 1
            called = m.below_called[below]
        level -= 1
    return 0


def wait_behind(m: Machine, warp: int) -> None:
    """Make a warp that is about to diverge wait for the lanes that will leave its loops."""
    for which in range(m.first_behind[m.number], m.first_behind[m.number + 1]):
        outer_join = m.behind[which]
        # Push the current entry again and leave its old place at `outer_join`: lanes that leave the
        # loop reconverge there, and not later.
        if is_inside(m, warp, outer_join) == 0:
            here = m.block[warp]
            m.block[warp] = outer_join
            push(m, warp, here, outer_join, m.mask[warp])


def go_another_way(m: Machine, warp: int, lanes: int, stay: int) -> None:
    """Send lanes out of a loop, and the others on to `stay`, as SimtStacks does."""
    leaving = m.leaving[m.number]
    join_block = m.joins[m.number]
    m.block[warp] = leaving if lanes == m.mask[warp] else stay
    if lanes and is_inside(m, warp, join_block):
        # Remove the lanes from all entries of the loop, down to the one that reconverges at
        # `join_block`. Unless they go straight to it, they get an entry that reconverges there.
        m.mask[warp] = m.mask[warp] & ~lanes
        level = m.depth[warp]
        join = m.join[warp]
        while join != join_block:
            level -= 1
            below = level * m.warps + warp
            if m.below_mask[below] & lanes:
                m.below_mask[below] = m.below_mask[below] & ~lanes
                join = m.below_join[below]
        if leaving != join_block:
            while is_over(m, warp) and m.depth[warp] >= max(level, 1):
                drop(m, warp)
            if m.depth[warp] < level or is_over(m, warp) == 0:
                push(m, warp, leaving, join_block, lanes)
            else:
                m.block[warp] = leaving
                m.join[warp] = join_block
                m.mask[warp] = lanes


def divide(m: Machine, warp: int, active: int, branch_mask: int) -> None:
    """Execute a branch: lanes `branch_mask` go to the block's target, the others to the other
    successor."""
    target = m.targets[m.number]
    other = m.others[m.number]
    join = m.joins[m.number]
    fall_through = active & ~branch_mask
    if fall_through and branch_mask:
        wait_behind(m, warp)
    if m.leaving[m.number] == target:
        go_another_way(m, warp, branch_mask, other)
    elif m.leaving[m.number] == other:
        go_another_way(m, warp, fall_through, target)
    elif fall_through == 0:
        m.block[warp] = target
    elif branch_mask == 0:
        m.block[warp] = other
    else:
        # The branch diverges: the current entry waits at the reconvergence point, and each side
        # gets an entry. If the current entry already reconverges there, a side replaces it, so that
        # a loop does not grow the stack at each iteration:
        #   before: block B   join J  mask 1111
        #   after:  target    join J  mask 0011   (top, runs first)
        #           other     join J  mask 1100
        replaces = 1 if m.join[warp] == join else 0
        called = m.called[warp] if replaces else 0
        m.block[warp] = join
        if other != join:
            if replaces:
                m.block[warp] = other
                m.mask[warp] = fall_through
                replaces = 0
            else:
                push(m, warp, other, join, fall_through)
        if target != join:
            if replaces:
                m.block[warp] = target
                m.mask[warp] = branch_mask
            else:
                push(m, warp, target, join, branch_mask)
                m.called[warp] = called
    settle(m, warp)


def leave(m: Machine, warp: int, lanes: int, returns: int) -> None:
    """Remove lanes that exit from their warp, or with `returns` 1 from the current call."""
    take_out(m, warp, lanes, returns)
    if m.meeting[warp]:
        m.has_ended = 1
        m.waiting = 1
    settle(m, warp)


def enter_functions(m: Machine, warp: int, place: int) -> None:
    """Push an entry per callee for the lanes of the warp that is number `place` of the group."""
    first = m.first_side[m.number]
    m.block[warp] = m.targets[m.number]
    for callee in range(m.first_side[m.number + 1] - first):
        lanes = m.sides[callee * m.warps + place]
        if lanes:
            # The caller's entry waits at the block after the call; the callee's entry reconverges
            # at the end of its function. `called` marks the base of the call for take_out.
            push(m, warp, m.side_entry[first + callee], m.side_exit[first + callee], lanes)
            m.called[warp] = 1
    place_order(m, warp)


def live(m: Machine, warp: int) -> int:
    """Return the lanes of a warp that have not exited: the union of all its entries."""
    lanes = m.mask[warp]
    for level in range(m.depth[warp]):
        lanes = lanes | m.below_mask[level * m.warps + warp]
    return int(lanes)


def all_have_come(m: Machine) -> int:
    """Return whether every warp of the wave is in the group with all its live lanes."""
    if m.count != m.warps:
        return 0
    for warp in range(m.warps):
        if m.mask[warp] != live(m, warp):
            return 0
    return 1


def some_are_elsewhere(m: Machine) -> int:
    """Return whether a warp of the group has live lanes that are not in the group."""
    for place in range(m.count):
        warp = m.chosen[place]
        if m.active[place] != live(m, warp):
            return 1
    return 0


def spread(m: Machine, warp: int, place: int) -> None:
    """Send the lanes of a warp of the group to the targets of a switch; see SimtStacks."""
    first = m.first_side[m.number]
    sides = m.first_side[m.number + 1] - first
    join = m.joins[m.number]
    several = 0
    for side in range(sides):
        lanes = m.sides[side * m.warps + place]
        if lanes:
            several += 1
            m.block[warp] = m.side_entry[first + side]
            if several == 1:
                m.taken[place] = lanes
    if several > 1:
        wait_behind(m, warp)
        m.block[warp] = join
        replaces = 1 if m.join[warp] == join else 0
        for back in range(sides):
            # Push in reverse order: the first target is the top entry and runs first.
            side = sides - 1 - back
            target = m.side_entry[first + side]
            lanes = m.sides[side * m.warps + place]
            if lanes and target != join:
                if replaces:
                    m.block[warp] = target
                    m.mask[warp] = lanes
                    replaces = 0
                else:
                    push(m, warp, target, join, lanes)
    settle(m, warp)


def end_block(m: Machine) -> None:
    """Move each warp of the group to its successor."""
    ending = m.endings[m.number]
    target = m.targets[m.number]
    for place in range(m.count):
        warp = m.chosen[place]
        if ending == DIVIDE:
            divide(m, warp, m.active[place], m.taken[place])
        elif ending == LEAVE:
            leave(m, warp, m.active[place], 0)
        elif ending == CALL:
            enter_functions(m, warp, place)
        elif ending == SWITCH:
            spread(m, warp, place)
        else:
            m.block[warp] = target
            if ending == LEAVE_SOME:
                leave(m, warp, m.taken[place], 0)
            elif ending == RETURN_SOME:
                leave(m, warp, m.taken[place], 1)
            else:
                settle(m, warp)


def account(m: Machine) -> None:
    """Account for the block that the group ran: the log of its history, steps and budget."""
    number = m.number
    length = m.lengths[number]
    for place in range(m.count):
        warp = m.chosen[place]
        # A block that repeats with the same masks only counts up its last entry: loops take one
        # entry.
        masks = (m.active[place] << 32) | m.taken[place]
        entry = m.last_entry[warp]
        if entry >= 0 and m.log_block[entry] == number and m.log_masks[entry] == masks:
            m.log_repeat[entry] += 1
        else:
            entry = m.entries
            m.log_warp[entry] = warp
            m.log_block[entry] = number
            m.log_masks[entry] = masks
            m.log_repeat[entry] = 1
            m.last_entry[warp] = entry
            m.entries = entry + 1
        m.step[warp] += length
    m.logged += m.count
    m.budget -= length


def note_spins(m: Machine) -> int:
    """Count the iterations of spin loops, and reset the count of warps that make progress.

    Return YIELD, SPINS, or -1 if Python is not needed; see SimtStacks for the rules.
    """
    if m.may_wait == 0:
        return -1
    is_spin = m.waits[m.number]
    if is_spin == 0:
        m.progress += 1
    due = 0
    for place in range(m.count):
        warp = m.chosen[place]
        m.spins[warp] = m.spins[warp] + 1 if is_spin else 0
        if is_spin and m.depth[warp] > 0 and m.spins[warp] % m.patience[warp] == 0:
            due = 1
        place_order(m, warp)
    if due:
        return YIELD
    if is_spin and only_spins(m):
        return SPINS
    return -1


def only_spins(m: Machine) -> int:
    """Return whether every ready warp has spun for at least two spin budgets."""
    for warp in range(m.warps):
        if m.state[warp] == READY and m.spins[warp] < 2 * SPIN_BUDGET:
            return 0
    return 1


def run_group(m: Machine) -> int:
    """Run the group through its basic block; return why Python is needed, or -1."""
    number = m.number
    if m.codes[number] == 0:
        return FOREIGN
    if m.endings[number] == WARP_SYNC and some_are_elsewhere(m):
        return ENDING
    invoke(m.codes[number], m)
    if m.fault_site >= 0:
        return FAULT
    finish_rows(m)
    return end_group(m)


def end_group(m: Machine) -> int:
    """Move the group, which has run its basic block, on; return as run_group does."""
    number = m.number
    ending = m.endings[number]
    # Check the room before any stack changes: Python reserves more levels and calls this again.
    if m.most_depth + m.spare > m.levels:
        return DEEPEN
    if ending == OTHER or (ending == BARRIER and not all_have_come(m)):
        return ENDING
    if ending == JUMP and m.branches[number]:
        for place in range(m.count):
            m.taken[place] = m.active[place]
    end_block(m)
    account(m)
    if m.has_ended and m.waiting:
        return ENDED
    return note_spins(m)


def run_warps(m: Machine) -> int:
    """Run until Python is needed, and return why."""
    for warp in range(m.warps):
        place_order(m, warp)
    while m.rows < m.row_limit and m.logged < m.log_limit and m.budget >= 0:
        m.has_ended = 0
        if not choose(m):
            return IDLE
        m.number = m.block[m.chosen[0]]
        reason = run_group(m)
        if reason >= 0:
            return reason
    return WRITE
