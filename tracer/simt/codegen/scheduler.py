"""Which warps run next, and where they go: what SplitStacks does with arrays, warp by warp.

The order is the same to the last tick, so that everything that follows from it is: rows, memory,
histories. See tracer/simt/warp/simt_stack.py for the rules.
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
    """Return 32 bits: which of the first 32 elements are `value`."""
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
    """Return 32 bits: which of the first 32 elements are `value` at most."""
    raise NotImplementedError


def parts_of(m: Machine) -> int:
    """Return how many times 32 warps there are."""
    return (m.warps + 31) >> 5


def lowest_order(m: Machine) -> int:
    """Return the least order of all warps, and renew that of those parts that have changed."""
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
    """Pick the warps that run next, ascending; 0 if no warp is ready."""
    m.tick += 1
    lowest = lowest_order(m)
    if lowest == NEVER:
        return 0
    if lowest >= OUTER_JOIN:
        lowest = leading(m)
    elif lowest == m.picked and m.times >= m.fair:
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
    """Put the warps of a part that have this order into the group."""
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
    """Return the order of the ready warp elsewhere that has waited longest; `lowest` if none."""
    best = patient(m, lowest)
    if best < 0:
        return lowest
    return int(m.order[best])


def patient(m: Machine, but: int) -> int:
    """Return the ready warp that has waited longest, of an order that is not `but`; -1 if none."""
    best = -1
    for warp in range(m.warps):
        if m.order[warp] == NEVER or m.order[warp] == but:
            continue
        if best < 0 or m.waited[warp] < m.waited[best]:
            best = warp
    return best


def leading(m: Machine) -> int:
    """Return the order of the warp that leads those that have all been through their loops."""
    if m.lead_left == 0 or m.order[m.leader] == NEVER:
        m.leader = patient(m, NEVER)
        m.lead_left = m.fair
    m.lead_left -= 1
    return int(m.order[m.leader])


def place_order(m: Machine, warp: int) -> None:
    """Note where a warp stands; in a loop in which it has waited, behind all others."""
    order = NEVER
    if m.state[warp] == READY:
        order = m.ranks[m.block[warp]]
        if m.may_wait and m.spins[warp] > 0 and m.waits[m.block[warp]]:
            order += OUTER_JOIN
    m.order[warp] = order
    m.part_order[warp >> 5] = STALE


def take_out(m: Machine, warp: int, lanes: int, returns: int) -> None:
    """Take lanes out of every split of their warp; those that only return (1) from a function, out
    of the splits from its call upwards."""
    here = m.mask[warp]
    m.mask[warp] = here & ~lanes
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
    """Whether the top split has joined or is empty."""
    return 1 if m.block[warp] == m.join[warp] or m.mask[warp] == 0 else 0


def settle(m: Machine, warp: int) -> None:
    """Pop the top splits that have joined or are empty; end the warp if it has none left, let it
    wait on if the top one waits at a barrier, or for other lanes of its warp. Lanes at the end of a
    function leave those that would have waited for them inside."""
    if m.block[warp] >= m.first_end and m.join[warp] != m.block[warp]:
        take_out(m, warp, m.mask[warp], 1)
    popped = 0
    while is_over(m, warp):
        if m.depth[warp] == 0:
            m.state[warp] = EXITED
            m.has_ended = 1
            break
        drop(m, warp)
        popped = 1
    if popped and m.mask[warp] & (m.parked[warp] | m.meeting[warp]):
        m.has_ended = 1
        m.waiting = 1
    place_order(m, warp)


def push(m: Machine, warp: int, block: int, join: int, lanes: int) -> None:
    """Put a split on top."""
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
    """Take the top split off."""
    depth = m.depth[warp] - 1
    below = depth * m.warps + warp
    m.depth[warp] = depth
    m.block[warp] = m.below_block[below]
    m.join[warp] = m.below_join[below]
    m.mask[warp] = m.below_mask[below]
    m.called[warp] = m.below_called[below]


def is_inside(m: Machine, warp: int, join_block: int) -> int:
    """Whether the top split, or one below of the same call that waits for it, joins where others
    wait for it."""
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
    """Let a warp that is about to divide wait for lanes that go another way."""
    for which in range(m.first_behind[m.number], m.first_behind[m.number + 1]):
        outer_join = m.behind[which]
        if is_inside(m, warp, outer_join) == 0:
            here = m.block[warp]
            m.block[warp] = outer_join
            push(m, warp, here, outer_join, m.mask[warp])


def go_another_way(m: Machine, warp: int, lanes: int, stay: int) -> None:
    """Send lanes another way, and the others on to `stay`; see go_alone of array/turn.py."""
    leaving = m.leaving[m.number]
    join_block = m.joins[m.number]
    m.block[warp] = leaving if lanes == m.mask[warp] else stay
    if lanes and is_inside(m, warp, join_block):
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
    """Send lanes `branch_mask` to the block's target, the rest to the other one."""
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
    """Take lanes that exit out of their warp; those that only return (1) from a function, out of
    its call."""
    take_out(m, warp, lanes, returns)
    if m.meeting[warp]:
        m.has_ended = 1
        m.waiting = 1
    settle(m, warp)


def enter_functions(m: Machine, warp: int, place: int) -> None:
    """Let the lanes of the group's warp `place` enter the functions that its block calls."""
    first = m.first_side[m.number]
    m.block[warp] = m.targets[m.number]
    for callee in range(m.first_side[m.number + 1] - first):
        lanes = m.sides[callee * m.warps + place]
        if lanes:
            push(m, warp, m.side_entry[first + callee], m.side_exit[first + callee], lanes)
            m.called[warp] = 1
    place_order(m, warp)


def live(m: Machine, warp: int) -> int:
    """Return the lanes of a warp that have not exited: those of all its splits."""
    lanes = m.mask[warp]
    for level in range(m.depth[warp]):
        lanes = lanes | m.below_mask[level * m.warps + warp]
    return int(lanes)


def all_have_come(m: Machine) -> int:
    """Whether every warp of the wave is in the group, with all its lanes."""
    if m.count != m.warps:
        return 0
    for warp in range(m.warps):
        if m.mask[warp] != live(m, warp):
            return 0
    return 1


def some_are_elsewhere(m: Machine) -> int:
    """Whether lanes of a warp of the group live that are not in it."""
    for place in range(m.count):
        warp = m.chosen[place]
        if m.active[place] != live(m, warp):
            return 1
    return 0


def spread(m: Machine, warp: int, place: int) -> None:
    """Send the lanes of the group's warp `place` to the targets of a switch; see SplitStacks."""
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
    """Send the group on its way."""
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
    """Count the block that the group has run: its history, its steps, its budget."""
    number = m.number
    length = m.lengths[number]
    for place in range(m.count):
        warp = m.chosen[place]
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
    """Count the block of a waiting loop that the group has run; any other one is progress, and
    starts the count anew. Return what Python has to do, or -1; see SplitStacks for the rules."""
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
    """Whether every ready warp has done nothing but wait for a while."""
    for warp in range(m.warps):
        if m.state[warp] == READY and m.spins[warp] < 2 * SPIN_BUDGET:
            return 0
    return 1


def run_group(m: Machine) -> int:
    """Run the chosen warps through their basic block; return why Python has to go on, or -1."""
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
    """Send the group, which has run its basic block, on its way; return as run_group does."""
    number = m.number
    ending = m.endings[number]
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
