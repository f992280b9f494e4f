"""The warp scheduler and the SIMT stacks: which warps run next, and where their lanes go.

A SIMT stack has entries of (next block, reconvergence block, active mask); the top entry runs. A
divergent branch leaves the entry at the reconvergence block, the immediate post-dominator, and
pushes both sides, of PTX the taken one on top, of machine code the smaller one. An entry that
reaches its reconvergence block is popped:

    if (lane < 2) A; else B; C        branch        A done       B done, reconverged
    top     A  join C  mask 0011   |  A  0011   |             |
            B  join C  mask 1100   |  B  1100   |  B  1100    |
    bottom  C  join exit mask 1111 |  C  1111   |  C  1111    |  C  1111

Where some lanes escape the region (tracer/ptx/reconvergence.py), a further entry, at the outer
join, waits for them at a later block. A call pushes an entry that reconverges at the callee's end.
A warp whose stack is empty has exited.

These functions drive every wave, whichever way its blocks run: the code of a block is a pointer to
machine code, or Python runs the block's steps (INTERPRET) and then calls `end_group`. `jit`
compiles them; they take the `Schedule` and return integers.
"""

from ....jit.structure import I32, U32
from ....jit.value import assembly, invoke, least, trailing_zeros
from .schedule import (
    BARRIER,
    BRANCH,
    CALL,
    DEEPEN,
    ENDING,
    EXIT,
    EXIT_SOME,
    EXITED,
    FAIR,
    IDLE,
    INTERPRET,
    JUMP,
    NEVER,
    OTHER,
    READY,
    RETURN_SOME,
    SPIN_BUDGET,
    SPINNING,
    SPINS,
    STALE,
    SWITCH,
    WAITING,
    WARP_SYNC,
    WOKEN,
    WRITE,
    YIELD,
    Schedule,
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


@assembly(_LANES_THAT.format(name="lanes_up_to", relation="sle"))
def lanes_up_to(values: I32, value: int) -> int:
    """Return a 32-bit mask of the first 32 elements that are at most `value`."""
    raise NotImplementedError


# Which warps run next


def parts_of(m: Schedule) -> int:
    """Return the number of groups of 32 warps."""
    return (m.warps + 31) >> 5


def lowest_order(m: Schedule) -> int:
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


def select_warps(m: Schedule) -> int:
    """Select the warps that run next, in ascending order; return 0 if no warp is ready.

    They are those at the ready block of the lowest rank: that gives warps at earlier blocks time to
    catch up, so that more warps run a block together. After FAIR picks of one block in a row the
    block of the warp that has waited longest runs instead, for a loop of low rank would starve the
    warps that it waits for. Warps that spin come last. If only those are ready, the one that has
    waited longest leads for FAIR picks; warps at the leader's block run along. So each warp makes
    progress, however many blocks its loop has.
    """
    m.tick += 1
    lowest = lowest_order(m)
    if lowest == NEVER:
        return 0
    if lowest >= SPINNING:
        lowest = leader_order(m)
    elif lowest == m.picked and m.times >= FAIR:
        lowest = starving_order(m, lowest)
    m.times = m.times + 1 if lowest == m.picked else 1
    m.picked = lowest
    m.count = 0
    for first in range(0, parts_of(m), 32):
        some = lanes_up_to(m.part_order[first:], lowest)
        while some:
            add_warps(m, first + trailing_zeros(some), lowest)
            some = some & (some - 1)
    m.number = m.block[m.chosen[0]]
    return 1


def add_warps(m: Schedule, part: int, order: int) -> None:
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


def starving_order(m: Schedule, lowest: int) -> int:
    """Return the order of the ready warp at another block that has waited longest; `lowest` if
    none."""
    best = longest_waiting(m, lowest)
    if best < 0:
        return lowest
    return int(m.order[best])


def longest_waiting(m: Schedule, but: int) -> int:
    """Return the ready warp, of another order than `but`, that has waited longest; -1 if none."""
    best = -1
    for warp in range(m.warps):
        if m.order[warp] == NEVER or m.order[warp] == but:
            continue
        if best < 0 or m.waited[warp] < m.waited[best]:
            best = warp
    return best


def leader_order(m: Schedule) -> int:
    """Return the order of the leader: the warp to schedule once all warps spin."""
    if m.lead_left == 0 or m.order[m.leader] == NEVER:
        m.leader = longest_waiting(m, NEVER)
        m.lead_left = FAIR
    m.lead_left -= 1
    return int(m.order[m.leader])


def place_warp(m: Schedule, warp: int) -> None:
    """Update the order of a warp; a warp that spins comes after all others."""
    order = NEVER
    if m.state[warp] == READY:
        order = m.ranks[m.block[warp]]
        if m.may_wait and m.spins[warp] > 0 and m.waits[m.block[warp]]:
            order += SPINNING
    m.order[warp] = order
    m.part_order[warp >> 5] = STALE


def place_warps(m: Schedule) -> None:
    """Update the order of all warps, and whether any of them waits at a barrier."""
    m.waiting = 0
    for warp in range(m.warps):
        place_warp(m, warp)
        if m.state[warp] == WAITING:
            m.waiting = 1


# The SIMT stack of a warp


def push(m: Schedule, warp: int, block: int, join: int, lanes: int) -> None:
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


def pop(m: Schedule, warp: int) -> None:
    """Pop the top entry."""
    depth = m.depth[warp] - 1
    below = depth * m.warps + warp
    m.depth[warp] = depth
    m.block[warp] = m.below_block[below]
    m.join[warp] = m.below_join[below]
    m.mask[warp] = m.below_mask[below]
    m.called[warp] = m.below_called[below]


def has_reconverged(m: Schedule, warp: int) -> int:
    """Return whether the top entry has reached its reconvergence block or is empty."""
    return 1 if m.block[warp] == m.join[warp] or m.mask[warp] == 0 else 0


def reconverge(m: Schedule, warp: int) -> None:
    """Pop the entries that have reconverged or are empty, and set the warp's state.

    The warp exits if no entry is left. It is woken if the new top entry waits at a barrier or for
    other lanes of the warp. Lanes at the end of a function are removed from the entries of the call
    that would have waited for them.
    """
    if m.block[warp] >= m.first_end and m.join[warp] != m.block[warp]:
        remove_lanes(m, warp, m.mask[warp], 1)
    popped = 0
    while has_reconverged(m, warp):
        if m.depth[warp] == 0:
            m.state[warp] = EXITED
            m.has_woken = 1
            break
        # A pop makes the entry below run with its own mask. After a branch (lanes 0 and 1):
        #   top    block 2  join 3  mask 0011   reaches 3 and is popped
        #   below  block 1  join 3  mask 1100   runs next
        #   below  block 3  join 9  mask 1111   runs once both sides have reached 3
        pop(m, warp)
        popped = 1
    if popped and m.fewer_first:
        merge_sides(m, warp)
    if popped and m.mask[warp] & (m.parked[warp] | m.meeting[warp]):
        m.has_woken = 1
        m.waiting = 1
    place_warp(m, warp)


def merge_sides(m: Schedule, warp: int) -> None:
    """Run sides that wait at the same block together, as machine code does where none of them
    is the one that waits since the last divergence: that one runs alone."""
    last = m.alternate[warp]
    m.alternate[warp] = -1 if m.depth[warp] <= last else last
    waits = m.parked[warp] | m.meeting[warp]
    while m.depth[warp] > 0 and last < 0:
        below = (m.depth[warp] - 1) * m.warps + warp
        lanes = m.below_mask[below]
        if m.below_block[below] != m.block[warp] or m.below_join[below] != m.join[warp]:
            break
        if m.called[warp] or lanes & m.mask[warp] or (lanes | m.mask[warp]) & waits:
            break
        lanes = lanes | m.mask[warp]
        pop(m, warp)
        m.mask[warp] = lanes


def reconverge_warps(m: Schedule, warps: I32, count: int) -> None:
    """Pop the entries of `count` warps that have reconverged or are empty."""
    for place in range(count):
        reconverge(m, warps[place])


def remove_lanes(m: Schedule, warp: int, lanes: int, returns: int) -> None:
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


def live(m: Schedule, warp: int) -> int:
    """Return the lanes of a warp that have not exited: the union of all its entries."""
    lanes = m.mask[warp]
    for level in range(m.depth[warp]):
        lanes = lanes | m.below_mask[level * m.warps + warp]
    return int(lanes)


def live_lanes(m: Schedule, lanes: U32) -> None:
    """Fill `lanes` with the live lanes of each warp."""
    for warp in range(m.warps):
        lanes[warp] = live(m, warp)


# Where the lanes of a warp go at the end of a basic block


def branch(m: Schedule, warp: int, active: int, taken: int) -> None:
    """Execute a branch: lanes `taken` go to the block's target, the others to the other
    successor."""
    target = m.targets[m.number]
    other = m.others[m.number]
    join = m.joins[m.number]
    if join < 0:
        join = m.join[warp]
    not_taken = active & ~taken
    if not_taken and taken:
        push_outer_joins(m, warp)
    if m.leaving[m.number] == target:
        leave_region(m, warp, taken, other, target)
    elif m.leaving[m.number] == other:
        leave_region(m, warp, not_taken, target, other)
    elif not_taken == 0:
        m.block[warp] = target
    elif taken == 0:
        m.block[warp] = other
    else:
        # The branch diverges: the current entry waits at the reconvergence block, and each side
        # gets an entry, unless it begins there and has nothing to run. If the current entry already
        # reconverges there, a side replaces it, so that a loop that lanes leave one by one does not
        # grow the stack:
        #   before: block B   join J  mask 1111
        #   after:  target    join J  mask 0011   (top, runs first)
        #           other     join J  mask 1100
        replaces = 1 if m.join[warp] == join else 0
        called = m.called[warp] if replaces else 0
        m.block[warp] = join
        first = target
        first_lanes = taken
        second = other
        second_lanes = not_taken
        if m.fewer_first and taken.bit_count() >= not_taken.bit_count():
            first = other
            first_lanes = not_taken
            second = target
            second_lanes = taken
        if second != join:
            if replaces:
                m.block[warp] = second
                m.mask[warp] = second_lanes
                replaces = 0
            else:
                push(m, warp, second, join, second_lanes)
        if first != join:
            if replaces:
                m.block[warp] = first
                m.mask[warp] = first_lanes
            else:
                push(m, warp, first, join, first_lanes)
                m.called[warp] = called
                m.alternate[warp] = m.depth[warp] - 1
    reconverge(m, warp)


def switch(m: Schedule, warp: int, place: int) -> None:
    """Send the lanes of a warp, number `place` of the group, to the targets of a switch.

    A trace has two sides per branch: of several targets, the lanes of the first count as taken.
    """
    first = m.first_side[m.number]
    sides = m.first_side[m.number + 1] - first
    join = m.joins[m.number]
    if join < 0:
        join = m.join[warp]
    several = 0
    for side in range(sides):
        if m.side_exit[first + side] >= 0:  # `join` is for lanes that leave, others stay further in
            join = m.outer_joins[m.first_outer_join[m.number + 1] - 1]
        lanes = m.sides[side * m.warps + place]
        if lanes:
            several += 1
            m.block[warp] = m.side_entry[first + side]
            if several == 1:
                m.taken[place] = lanes
    if several > 1:
        push_outer_joins(m, warp)
        m.block[warp] = join
        replaces = 1 if m.join[warp] == join else 0
        for back in range(sides):
            # Push in reverse order: the first target is the top entry and runs first.
            side = sides - 1 - back
            target = m.side_entry[first + side]
            lanes = m.sides[side * m.warps + place]
            if lanes and target != join and m.side_exit[first + side] < 0:
                if replaces:
                    m.block[warp] = target
                    m.mask[warp] = lanes
                    replaces = 0
                else:
                    push(m, warp, target, join, lanes)
    leave_switch(m, warp, place, several)
    reconverge(m, warp)


def leave_switch(m: Schedule, warp: int, place: int, several: int) -> None:
    """Move lanes that escape the region of a switch to their sides, of which `several` have any."""
    first = m.first_side[m.number]
    sides = m.first_side[m.number + 1] - first
    outer_join = m.joins[m.number]
    gone = 0
    way = -1
    those = 0
    for side in range(sides):
        lanes = m.sides[side * m.warps + place]
        if lanes and m.side_exit[first + side] >= 0:
            gone = gone | lanes
            if way < 0 or way == outer_join:
                way = m.side_entry[first + side]
                those = lanes
    if gone == 0:
        return
    leave_region(m, warp, gone, m.block[warp], way)
    if several > 1 and way != outer_join:
        # The top entry has all of them: each side gets its own.
        m.mask[warp] = those
        for side in range(sides):
            lanes = m.sides[side * m.warps + place]
            target = m.side_entry[first + side]
            if lanes and m.side_exit[first + side] >= 0 and target != way and target != outer_join:
                push(m, warp, target, outer_join, lanes)


def call(m: Schedule, warp: int, place: int) -> None:
    """Push an entry per callee for the lanes of a warp, number `place` of the group."""
    first = m.first_side[m.number]
    m.block[warp] = m.targets[m.number]
    for callee in range(m.first_side[m.number + 1] - first):
        lanes = m.sides[callee * m.warps + place]
        if lanes:
            # The caller's entry waits at the block after the call; the callee's entry reconverges
            # at the end of its function. `called` marks the base of the call for remove_lanes.
            push(m, warp, m.side_entry[first + callee], m.side_exit[first + callee], lanes)
            m.called[warp] = 1
    place_warp(m, warp)


def exit_lanes(m: Schedule, warp: int, lanes: int, returns: int) -> None:
    """Remove lanes that exit from their warp, or with `returns` 1 from the current call."""
    remove_lanes(m, warp, lanes, returns)
    if m.meeting[warp]:
        m.has_woken = 1
        m.waiting = 1
    reconverge(m, warp)


def is_inside(m: Schedule, warp: int, outer_join: int) -> int:
    """Return whether the top entry, or one below it of the same call that waits for its lanes,
    reconverges at `outer_join`."""
    if m.join[warp] == outer_join:
        return 1
    called = m.called[warp]
    level = m.depth[warp] - 1
    while level >= 0 and called == 0:
        below = level * m.warps + warp
        if m.below_mask[below] & m.mask[warp]:
            if m.below_join[below] == outer_join:
                return 1
            called = m.below_called[below]
        level -= 1
    return 0


def push_outer_joins(m: Schedule, warp: int) -> None:
    """Make a warp that is about to diverge wait for the lanes that will leave its regions."""
    for which in range(m.first_outer_join[m.number], m.first_outer_join[m.number + 1]):
        outer_join = m.outer_joins[which]
        # Push the current entry again and leave its old place at `outer_join`: lanes that leave the
        # region reconverge there, and not later.
        if is_inside(m, warp, outer_join) == 0:
            here = m.block[warp]
            m.block[warp] = outer_join
            push(m, warp, here, outer_join, m.mask[warp])


def stays_first(m: Schedule, stay: int, leave: int, rest: int) -> int:
    """Return whether lanes that stay in a region run before those that leave it: in machine code
    the smaller side does, of two equal ones the fall-through."""
    if m.fewer_first == 0 or rest == 0:
        return 0
    more = leave.bit_count() - rest.bit_count()
    return 1 if more > 0 or (more == 0 and stay == m.others[m.number]) else 0


def insert(m: Schedule, warp: int, level: int, block: int, join: int, lanes: int) -> None:
    """Insert an entry at a level of the stack, below those that were there."""
    push(m, warp, m.block[warp], m.join[warp], m.mask[warp])
    m.called[warp] = m.below_called[(m.depth[warp] - 1) * m.warps + warp]
    place = m.depth[warp] - 1
    while place > level:
        to = place * m.warps + warp
        origin = to - m.warps
        m.below_block[to] = m.below_block[origin]
        m.below_join[to] = m.below_join[origin]
        m.below_mask[to] = m.below_mask[origin]
        m.below_called[to] = m.below_called[origin]
        place -= 1
    to = level * m.warps + warp
    m.below_block[to] = block
    m.below_join[to] = join
    m.below_mask[to] = lanes
    m.below_called[to] = 0


def leave_region(m: Schedule, warp: int, lanes: int, stay: int, leaving: int) -> None:
    """Move lanes that escape the region to the successor `leaving`, the others to `stay`.

    The lanes are removed from all entries that wait for them within the region, and run as an entry
    of their own until they reconverge with the others at the outer join.
    """
    outer_join = m.joins[m.number]
    m.block[warp] = leaving if lanes == m.mask[warp] else stay
    if lanes and is_inside(m, warp, outer_join):
        # Down to the entry that reconverges at `outer_join`. Unless the lanes go straight to it,
        # they get an entry that reconverges there.
        m.mask[warp] = m.mask[warp] & ~lanes
        level = m.depth[warp]
        join = m.join[warp]
        while join != outer_join:
            level -= 1
            below = level * m.warps + warp
            if m.below_mask[below] & lanes:
                m.below_mask[below] = m.below_mask[below] & ~lanes
                join = m.below_join[below]
        if leaving != outer_join and stays_first(m, stay, lanes, m.mask[warp]):
            insert(m, warp, level, leaving, outer_join, lanes)
            m.alternate[warp] = level
        elif leaving != outer_join:
            while has_reconverged(m, warp) and m.depth[warp] >= max(level, 1):
                pop(m, warp)
            if m.depth[warp] < level or has_reconverged(m, warp) == 0:
                push(m, warp, leaving, outer_join, lanes)
            else:
                m.block[warp] = leaving
                m.join[warp] = outer_join
                m.mask[warp] = lanes


def move_group(m: Schedule) -> None:
    """Move each warp of the group to its successors."""
    ending = m.endings[m.number]
    target = m.targets[m.number]
    for place in range(m.count):
        warp = m.chosen[place]
        if ending == BRANCH:
            branch(m, warp, m.active[place], m.taken[place])
        elif ending == EXIT:
            exit_lanes(m, warp, m.active[place], 0)
        elif ending == CALL:
            call(m, warp, place)
        elif ending == SWITCH:
            switch(m, warp, place)
        else:
            if ending == JUMP:  # a call: its lanes may diverge up to where the caller's meet
                push_outer_joins(m, warp)
            m.block[warp] = target
            if ending == EXIT_SOME:
                exit_lanes(m, warp, m.taken[place], 0)
            elif ending == RETURN_SOME:
                exit_lanes(m, warp, m.taken[place], 1)
            else:
                reconverge(m, warp)


def all_have_arrived(m: Schedule) -> int:
    """Return whether every warp of the wave is in the group with all its live lanes."""
    if m.count != m.warps:
        return 0
    for warp in range(m.warps):
        if m.mask[warp] != live(m, warp):
            return 0
    return 1


def some_are_elsewhere(m: Schedule) -> int:
    """Return whether a warp of the group has live lanes that are not in the group."""
    for place in range(m.count):
        warp = m.chosen[place]
        if m.active[place] != live(m, warp):
            return 1
    return 0


# A step: the group runs its basic block


def account(m: Schedule) -> None:
    """Account for the block that the group ran: the log of its history, steps and budget."""
    number = m.number
    length = m.lengths[number]
    if length == 0:  # inside of an instruction of the machine
        return
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


def note_spins(m: Schedule) -> int:
    """Count the blocks of spin loops, and reset the count of warps that make progress.

    Return YIELD, SPINS, or -1 if Python is not needed.
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
        place_warp(m, warp)
    if due:
        return YIELD
    if is_spin and only_spins(m):
        return SPINS
    return -1


def only_spins(m: Schedule) -> int:
    """Return whether every ready warp has spun for at least two spin budgets."""
    for warp in range(m.warps):
        if m.state[warp] == READY and m.spins[warp] < 2 * SPIN_BUDGET:
            return 0
    return 1


def run_group(m: Schedule) -> int:
    """Run the group through its basic block; return why Python is needed, or -1."""
    number = m.number
    if m.codes[number] == 0:
        return INTERPRET
    if m.endings[number] == WARP_SYNC and some_are_elsewhere(m):
        return ENDING
    reason = invoke(m.codes[number], m)
    if reason:
        return reason
    return end_group(m)


def end_group(m: Schedule) -> int:
    """Move the group, which has run its basic block, on; return as run_group does."""
    number = m.number
    ending = m.endings[number]
    # Check the room before any stack changes: Python reserves more levels and calls this again.
    if m.most_depth + m.spare > m.levels:
        return DEEPEN
    if ending == OTHER or (ending == BARRIER and not all_have_arrived(m)):
        return ENDING
    if ending == JUMP and m.branches[number]:
        for place in range(m.count):
            m.taken[place] = m.active[place]
    move_group(m)
    account(m)
    if m.has_woken and m.waiting:
        return WOKEN
    return note_spins(m)


def run_warps(m: Schedule) -> int:
    """Run until Python is needed, and return why."""
    while m.rows < m.row_limit and m.logged < m.log_limit and m.budget >= 0:
        m.has_woken = 0
        if not select_warps(m):
            return IDLE
        reason = run_group(m)
        if reason >= 0:
            return reason
    return WRITE
