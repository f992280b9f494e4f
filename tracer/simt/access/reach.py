"""Bounds checks and trace rows of memory accesses, for the interpreter and for machine code.

`touch` takes one warp through an access in a known state space: machine code calls it for each warp
of a basic block, and then takes the rows by `finish_some`. `reach` takes all warps of the group
through an access, finds the state space of generic addresses, and leaves a pointer for each lane.
`jit` compiles these functions.
"""

from ....jit.structure import I32, I64
from ....jit.value import assembly, trailing_zeros
from ....traces.schema import Space
from ..memory.memory import GLOBAL_BASE, WINDOWS
from ..rows.pattern import AT_ONCE, answer, enqueue
from ..warp.machine import Machine
from ..warp.schedule import EXITED
from .cluster import GENERIC, MOST_BLOCKS, SPAN, START
from .lane_move import POINTERS

GLOBAL, SHARED, LOCAL, CONST = map(int, (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST))
OUTSIDE, MISALIGNED, ENDED = range(3)
"""What is wrong with an access: it is outside of all allocations, its address is no multiple of its
width, or it is of the shared memory of a block that has ended."""

NOTE, REFUSE = 1, 2
"""Guards of global memory: note which allocations have a store; refuse stores to the others."""


@assembly("""
define internal i64 @spread(
  ptr %addresses, i64 %offset, i64 %start, i64 %limit, i64 %odd, i64 %mask,
  ptr %known, ptr %to
) {
  %a = load <32 x i64>, ptr %addresses, align 8
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %f = call i32 @llvm.cttz.i32(i32 %m32, i1 true)
  %fp = getelementptr i64, ptr %addresses, i32 %f
  %base = load i64, ptr %fp, align 8
  %b0 = insertelement <32 x i64> poison, i64 %base, i64 0
  %b = shufflevector <32 x i64> %b0, <32 x i64> poison, <32 x i32> zeroinitializer
  %d = sub <32 x i64> %a, %b
  %o = trunc <32 x i64> %d to <32 x i32>
  %s = select <32 x i1> %m, <32 x i32> %o, <32 x i32> zeroinitializer
  store <32 x i32> %s, ptr %to, align 4
  %h0 = insertelement <32 x i64> poison, i64 %offset, i64 0
  %h = shufflevector <32 x i64> %h0, <32 x i64> poison, <32 x i32> zeroinitializer
  %r = add <32 x i64> %a, %h
  %z0 = insertelement <32 x i64> poison, i64 %start, i64 0
  %z = shufflevector <32 x i64> %z0, <32 x i64> poison, <32 x i32> zeroinitializer
  %inside = sub <32 x i64> %r, %z
  %l0 = insertelement <32 x i64> poison, i64 %limit, i64 0
  %l = shufflevector <32 x i64> %l0, <32 x i64> poison, <32 x i32> zeroinitializer
  %outside = icmp ugt <32 x i64> %inside, %l
  %w0 = insertelement <32 x i64> poison, i64 %odd, i64 0
  %w = shufflevector <32 x i64> %w0, <32 x i64> poison, <32 x i32> zeroinitializer
  %low = and <32 x i64> %r, %w
  %unaligned = icmp ne <32 x i64> %low, zeroinitializer
  %wrong = or <32 x i1> %outside, %unaligned
  %bad = and <32 x i1> %wrong, %m
  %bits = bitcast <32 x i1> %bad to i32
  %wide = zext i32 %bits to i64
  %k = load <32 x i32>, ptr %known, align 4
  %n = icmp ne <32 x i32> %s, %k
  %new = bitcast <32 x i1> %n to i32
  %is_new = icmp ne i32 %new, 0
  %flag = select i1 %is_new, i64 4294967296, i64 0
  %y = or i64 %wide, %flag
  ret i64 %y
}
declare i32 @llvm.cttz.i32(i32, i1)
""")
def spread(
    addresses: I64,
    offset: int,
    start: int,
    limit: int,
    odd: int,
    mask: int,
    old_offsets: I32,
    to: I32,
) -> int:
    """Write the offsets of lanes `mask` from their lowest lane to `to`, 0 for the other lanes.

    Return the mask of the lanes with an address plus `offset` outside of `start` to `start +
    limit`, or with a bit of `odd` set; NEW is set if the offsets differ from `old_offsets`.
    """
    raise NotImplementedError


NEW = 1 << 32

FEW = 8
"""Up to this many lanes are checked one by one: a vector takes as long for one lane as for 32."""


def spread_few(
    addresses: I64, offset: int, start: int, limit: int, odd: int, mask: int, old_offsets: I32
) -> int:
    """Check few lanes like `spread`, but without writing the offsets; `old_offsets` are those of
    the same lanes."""
    base = addresses[trailing_zeros(mask)]
    bad = 0
    new = 0
    remainder = mask
    while remainder:
        lane = trailing_zeros(remainder)
        reached = addresses[lane] + offset
        inside = reached - start
        if inside < 0 or inside > limit or reached & odd:
            bad = bad | (1 << lane)
        new = new | (old_offsets[lane] ^ (addresses[lane] - base))
        remainder = remainder & (remainder - 1)
    return bad | (NEW if new != 0 else 0)


def touch(
    m: Machine, place: int, access: int, position: int, mask: int, addresses: I64, offset: int,
    width: int, window: int, arena: int,
) -> int:  # fmt: skip
    """Check lanes `mask` of the warp that is number `place` of the group, and write the row of
    access number `access` of the basic block; return the lanes that may continue.

    `offset` is added to each address; `window` is subtracted from the row's. In an `arena`, which
    is a state space, a lane must be inside one allocation, elsewhere (0) below the site's limit.
    """
    # The rows of an access are contiguous for all warps of the group, although a part runs warp by
    # warp: the trace has them in the order of the interpreter.
    row = m.rows + (access - m.finished) * m.count + place
    if mask == 0:
        # No lane: finish_some removes the row.
        m.row_pattern[row] = -1
        m.dropped = 1
        return 0
    site = m.first_site[m.number] + access
    warp = m.chosen[place]
    bad = write_row(m, row, site, warp, position, mask, addresses, offset, width, window, arena, 0)
    if bad:
        note_first_fault(m, access, site, warp, bad, addresses, offset, width, arena)
    return int(mask & ~bad)


def write_row(
    m: Machine, row: int, site: int, warp: int, position: int, mask: int, addresses: I64,
    offset: int, width: int, window: int, arena: int, is_hidden: int,
) -> int:  # fmt: skip
    """Check lanes of a warp, and write a row, unless it is hidden; return the lanes at fault.

    The pattern of the row may follow later. The site has the bounds of the last allocation.
    """
    table = m.table
    questions = m.questions
    to = questions.offsets[32 * questions.count :]
    last = site * m.warps + warp
    pattern = m.site_pattern[last]
    # Most accesses repeat the last pattern of their site: compare with it before a look-up in the
    # table.
    old_offsets = table.offsets[32 * max(pattern, 0) :]
    limit = m.site_limit[site]
    low = m.site_low[site]
    other = 1
    if pattern >= 0 and table.active[pattern] == mask:
        other = 0
    if mask.bit_count() > FEW:
        outcome = spread(addresses, offset, low, limit, width - 1, mask, old_offsets, to)
    else:
        outcome = spread_few(addresses, offset, low, limit, width - 1, mask, old_offsets)
        if other or outcome >= NEW:
            spread(addresses, offset, low, limit, width - 1, mask, old_offsets, to)
    bad = mask if limit < 0 else outcome & (NEW - 1)
    if bad and arena:
        bad = search(m, site, warp, bad, addresses, offset, width, arena)
    if bad or is_hidden:
        return int(bad)
    if other or outcome >= NEW:
        pattern = 0
        enqueue(questions, table, mask, row, last)
    m.row_base[row] = addresses[trailing_zeros(mask)] + offset - window
    m.row_pattern[row] = pattern
    m.row_warp[row] = warp
    m.row_step[row] = m.step[warp] + position
    if questions.count == AT_ONCE:
        answer(questions, table, m.row_pattern, m.site_pattern)
    return 0


def search(
    m: Machine, site: int, warp: int, bad: int, addresses: I64, offset: int, width: int, arena: int
) -> int:
    """Look up the allocations of lanes `bad`; return the lanes that are in none, or misaligned.

    The site caches the last allocation found. If the launch reports instead of faults, a lane in no
    allocation but in mapped memory is counted.
    """
    for lane in range(32):
        if (bad >> lane) & 1:
            address = addresses[lane] + offset
            if address & (width - 1) == 0:
                found = allocation_of(m, address, width, arena)
                if found >= 0:
                    if is_refused(m, site, found):
                        continue
                    bad = bad & ~(1 << lane)
                    m.site_low[site] = m.starts[found]
                    m.site_limit[site] = m.ends[found] - m.starts[found] - width
                elif is_mapped(m, address, width, arena) and m.guard != REFUSE:
                    bad = bad & ~(1 << lane)
                    note_outside(m, m.site_pc[site], warp, lane, address)
    return bad


def is_refused(m: Machine, site: int, found: int) -> int:
    """Note a site's first store to an allocation; refuse it if no wave has stored there before.

    A site gets here before its first access of an allocation, since it caches only the last one.
    """
    if m.guard == 0 or m.moves[m.site_pc[site]] >= 0:
        return 0
    if m.guard == NOTE:
        m.stored[found] = 1
    return 0 if m.stored[found] else 1


def allocation_of(m: Machine, address: int, width: int, arena: int) -> int:
    """Return the number of the allocation that has these bytes, -1 if none has."""
    first, last = m.first_allocation[arena], m.first_allocation[arena + 1]
    return range_of(m.starts, m.ends, first, last, address, width)


def range_of(starts: I64, ends: I64, first: int, last: int, address: int, width: int) -> int:
    """Return which of the ranges from `first` up to `last` has these bytes, -1 if none has."""
    low = first
    high = last
    while low < high:
        middle = (low + high) // 2
        if starts[middle] <= address:
            low = middle + 1
        else:
            high = middle
    if low > first and address <= ends[low - 1] - width:
        return int(low - 1)
    return -1


def is_mapped(m: Machine, address: int, width: int, arena: int) -> int:
    """Return whether bytes are in mapped memory; 0 if the launch faults instead of reporting."""
    if arena != GLOBAL:
        return 0
    return range_of(m.mapped_starts, m.mapped_ends, 0, m.mapped, address, width) >= 0


def note_outside(m: Machine, pc: int, warp: int, lane: int, address: int) -> None:
    """Count a lane outside of every allocation, and keep the first one of the first warp."""
    m.outside_lanes[pc] = m.outside_lanes[pc] + 1
    if m.outside_lanes[pc] == 1 or warp < m.outside_warp[pc]:
        m.outside_warp[pc] = warp
        m.outside_lane[pc] = lane
        m.outside_address[pc] = address


def note_fault(
    m: Machine, access: int, site: int, warp: int, lane: int, address: int, width: int, problem: int
) -> None:
    """Record a fault, and keep the earliest access of the basic block; of that, the first warp."""
    if 0 <= m.fault_site < access or (m.fault_site == access and m.fault_warp <= warp):
        return
    m.fault_site = access
    m.fault_pc = m.site_pc[site]
    m.fault_space = m.site_space[site]
    m.fault_width = width
    m.fault_problem = problem
    m.fault_warp = warp
    m.fault_lane = lane
    m.fault_address = address


def note_first_fault(
    m: Machine, access: int, site: int, warp: int, bad: int, addresses: I64, offset: int,
    width: int, arena: int,
) -> None:  # fmt: skip
    """Record the fault of the lowest of the lanes `bad`."""
    lane = trailing_zeros(bad)
    address = addresses[lane] + offset
    problem = problem_of(m, site, address, width, arena)
    note_fault(m, access, site, warp, lane, address, width, problem)


def problem_of(m: Machine, site: int, address: int, width: int, arena: int) -> int:
    """Return what is wrong with an access that is outside, or misaligned, or both."""
    if arena:
        found = allocation_of(m, address, width, arena) >= 0
        return MISALIGNED if found or is_mapped(m, address, width, arena) else OUTSIDE
    return MISALIGNED if 0 <= address <= m.site_limit[site] else OUTSIDE


def finish_rows(m: Machine) -> None:
    """Take all rows that the basic block has written."""
    m.upto = m.site_count[m.number]
    finish_some(m)
    m.finished = 0


def finish_some(m: Machine) -> None:
    """Take the rows of the first `upto` accesses of the basic block that are not taken yet, and
    remove the rows of warps without an active lane."""
    answer(m.questions, m.table, m.row_pattern, m.site_pattern)
    row = m.rows
    to = m.rows
    for access in range(m.finished, m.upto):
        start = to
        # Compact the rows in place: `to` never passes `row`, because rows are only removed.
        if m.dropped:
            for place in range(m.count):
                if m.row_pattern[row + place] >= 0:
                    m.row_pattern[to] = m.row_pattern[row + place]
                    m.row_base[to] = m.row_base[row + place]
                    m.row_warp[to] = m.row_warp[row + place]
                    m.row_step[to] = m.row_step[row + place]
                    to += 1
        else:
            to += m.count
        row += m.count
        site = m.first_site[m.number] + access
        add_run(m, m.site_pc[site], m.site_space[site], m.site_part[site], to - start)
    m.rows = to
    m.finished = m.upto
    m.dropped = 0


def add_run(m: Machine, pc: int, space: int, part: int, rows: int) -> None:
    """Add a run of the last rows, unless it is empty."""
    if rows:
        m.run_pc[m.runs] = pc
        m.run_space[m.runs] = space
        m.run_part[m.runs] = part
        m.run_count[m.runs] = rows
        m.runs += 1


_SHARED_START, _SHARED_END = WINDOWS[Space.SHARED]
_LOCAL_START, _LOCAL_END = WINDOWS[Space.LOCAL]
_CONST_START, _CONST_END = WINDOWS[Space.CONST]
_CLUSTER_START, _CLUSTER_END = GENERIC
_CLUSTER_SPACE = START + MOST_BLOCKS * SPAN
_FAR = 1 << 31
_NEAR = (1 << 30) - 16
"""Offsets in a row are signed 32-bit: lanes farther apart than _FAR make several rows, each of the
lanes at most _NEAR from the first of them."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def space_of(address: int) -> int:
    """Return the state space of a generic address: global is everything outside the windows."""
    if address >= _SHARED_START and address < _SHARED_END:
        return SHARED
    if address >= _LOCAL_START and address < _LOCAL_END:
        return LOCAL
    if address >= _CONST_START and address < _CONST_END:
        return CONST
    if address >= _CLUSTER_START and address < _CLUSTER_END:
        return SHARED
    return GLOBAL


def start_of(space: int) -> int:
    """Return the generic address at which the window of a state space begins, 0 for global."""
    if space == SHARED:
        return _SHARED_START
    if space == LOCAL:
        return _LOCAL_START
    return _CONST_START if space == CONST else 0


def _extreme(name: str, other: int) -> str:
    """Return the assembly of the lowest or highest address of some lanes."""
    return f"""
declare i64 @llvm.vector.reduce.{name}.v32i64(<32 x i64>)
define internal i64 @{name}_address(ptr %addresses, i64 %mask) {{
  %a = load <32 x i64>, ptr %addresses, align 8
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %o0 = insertelement <32 x i64> poison, i64 {other}, i64 0
  %o = shufflevector <32 x i64> %o0, <32 x i64> poison, <32 x i32> zeroinitializer
  %s = select <32 x i1> %m, <32 x i64> %a, <32 x i64> %o
  %r = call i64 @llvm.vector.reduce.{name}.v32i64(<32 x i64> %s)
  ret i64 %r
}}
"""


@assembly(_extreme("smin", _MOST))
def smin_address(addresses: I64, mask: int) -> int:
    """Return the lowest address of lanes `mask`."""
    raise NotImplementedError


@assembly(_extreme("smax", _LEAST))
def smax_address(addresses: I64, mask: int) -> int:
    """Return the highest address of lanes `mask`."""
    raise NotImplementedError


def lanes_of_row(addresses: I64, offset: int, lanes: int, space: int, is_generic: int) -> int:
    """Return those of the lanes that share a row with the lowest of them, which is in `space`."""
    low = smin_address(addresses, lanes) + offset
    high = smax_address(addresses, lanes) + offset
    is_one_space = 1
    if is_generic:
        start = GLOBAL_BASE if space == GLOBAL else start_of(space)
        is_one_space = 1 if low >= start and space_of(high) == space else 0
        if space != GLOBAL and high >= _CONST_END:
            is_one_space = 0
    if is_one_space and high - low >= 0 and high - low < _FAR:
        return lanes
    first = addresses[trailing_zeros(lanes)] + offset
    low = first
    high = first
    same = 0
    rest = lanes
    while rest:
        lane = trailing_zeros(rest)
        address = addresses[lane] + offset
        if is_generic == 0 or space_of(address) == space:
            same = same | (1 << lane)
            low = min(low, address)
            high = max(high, address)
        rest = rest & (rest - 1)
    if high - low >= 0 and high - low < _FAR:
        return same
    low = max(first, _LEAST + _NEAR) - _NEAR
    high = min(first, _MOST - _NEAR) + _NEAR
    rest = same
    while rest:
        lane = trailing_zeros(rest)
        address = addresses[lane] + offset
        if address < low or address > high:
            same = same & ~(1 << lane)
        rest = rest & (rest - 1)
    return same


def reach(
    m: Machine, addresses: I64, stride: int, by_warp: int, offset: int, known_space: int, pc: int,
    position: int, width: int, first_part: int, is_hidden: int, access: int, site: int,
) -> int:  # fmt: skip
    """Take the lanes `reach_lanes` of the group through an access, as far as they share a row of
    their warp; return how many warps have lanes left for a further row, which the next call takes.

    The 32 addresses of a warp are `stride` words behind those of the previous one in the group, or
    in the wave (`by_warp`); `offset` is added to each. With `known_space` 0 they are generic. Each
    lane gets a pointer. A warp's rows depend on that warp only.
    """
    is_generic = 1 if known_space == 0 else 0
    left = 0
    pending = 0
    for place in range(m.count):
        lanes = m.reach_lanes[place]
        m.part_lanes[place] = 0
        if lanes:
            own = addresses[stride * (m.chosen[place] if by_warp else place) :]
            space = known_space
            if is_generic:
                space = space_of(own[trailing_zeros(lanes)] + offset)
            together = lanes_of_row(own, offset, lanes, space, is_generic)
            m.part_lanes[place] = together
            m.part_space[place] = space
            m.reach_lanes[place] = lanes & ~together
            pending += 1
            if lanes != together:
                left += 1
    # The rows of a state space are one run.
    while pending:
        space = 0
        rows = m.rows
        for place in range(m.count):
            lanes = m.part_lanes[place]
            if lanes and space == 0:
                space = m.part_space[place]
                begin_space(m, site, space, pc, width)
            if lanes and m.part_space[place] == space:
                own = addresses[stride * (m.chosen[place] if by_warp else place) :]
                shift = start_of(space) if is_generic else 0
                reach_warp(
                    m, place, lanes, own, offset - shift, position, width, is_hidden, access, site
                )
                m.part_lanes[place] = 0
                pending -= 1
        add_run(m, pc, space, first_part + m.part, m.rows - rows)
    m.part = m.part + 1 if left else 0
    answer(m.questions, m.table, m.row_pattern, m.site_pattern)
    return left


def reach_anywhere(
    m: Machine, place: int, offset: int, pc: int, position: int, width: int, access: int
) -> int:
    """Take the group through an access of machine code with generic addresses, which are at `place`
    in the frame of each warp; return as `reach` does."""
    if m.part == 0:
        m.upto = access
        finish_some(m)
    site = m.first_site[m.number] + access
    words = m.frame_words[place // 8 :]
    stride = m.frame_bytes // 8
    left = reach(m, words, stride, 1, offset, 0, pc, position, width, 0, 0, access, site)
    m.finished = access + 1
    return left


def begin_space(m: Machine, site: int, space: int, pc: int, width: int) -> None:
    """Set the bounds of a site whose accesses may be in any state space."""
    if site < m.sites and m.site_space[site] == space:
        return  # the bounds of its last access may hold again
    m.site_space[site] = space
    m.site_pc[site] = pc
    m.site_low[site] = 0
    m.site_limit[site] = -1
    if space == SHARED:
        m.site_limit[site] = max(m.shared_size - width, -1)
    elif space == LOCAL:
        m.site_limit[site] = max(m.local_size - width, -1)


def reach_warp(
    m: Machine, place: int, lanes: int, addresses: I64, offset: int, position: int, width: int,
    is_hidden: int, access: int, site: int,
) -> None:  # fmt: skip
    """Check lanes of a warp, write their row, and point each at its bytes."""
    warp = m.chosen[place]
    space = m.site_space[site]
    if space == SHARED and leaves_block(addresses, offset, lanes):
        reach_cluster(m, place, lanes, addresses, offset, width, access, site)
        return
    arena = space if space != SHARED and space != LOCAL else 0
    window = GLOBAL_BASE if space == GLOBAL else 0
    bad = write_row(
        m, m.rows, site, warp, position, lanes, addresses, offset, width, window, arena, is_hidden
    )
    if bad:
        note_first_fault(m, access, site, warp, bad, addresses, offset, width, arena)
        return
    if is_hidden == 0:
        m.rows += 1
    start = m.space_bytes[space] + offset
    step = 0
    if space == SHARED:
        start += warp // m.a_block * m.shared_size
    elif space == LOCAL:
        start += 32 * warp * m.local_size
        step = m.local_size
    point(addresses, start, step, lanes, m.pointers[32 * place :])
    if m.is_watched:
        note_written_at(m, place, lanes, space)


@assembly(f"""
define internal i64 @point(ptr %addresses, i64 %start, i64 %step, i64 %mask, ptr %to) {{
{POINTERS}
  %old = load <32 x i64>, ptr %to, align 8
  %new = select <32 x i1> %m, <32 x i64> %w, <32 x i64> %old
  store <32 x i64> %new, ptr %to, align 8
  ret i64 0
}}
""")
def point(addresses: I64, start: int, step: int, mask: int, to: I64) -> None:
    """Point lanes `mask` at `start` plus their address plus `step` bytes for each lower lane."""
    raise NotImplementedError


def note_written_at(m: Machine, place: int, lanes: int, space: int) -> None:
    """Point each lane at its bytes in the map of written bytes; 0 where there is none."""
    for lane in range(32):
        if (lanes >> lane) & 1:
            at = m.pointers[32 * place + lane] - m.space_bytes[space] + m.space_written[space]
            m.written_at[32 * place + lane] = at if m.space_written[space] else 0


def leaves_block(addresses: I64, offset: int, lanes: int) -> int:
    """Return whether a lane is in the windows of a cluster's blocks."""
    rest = lanes
    while rest:
        address = addresses[trailing_zeros(rest)] + offset
        if address >= START and address < _CLUSTER_SPACE:
            return 1
        rest = rest & (rest - 1)
    return 0


def reach_cluster(
    m: Machine, place: int, lanes: int, addresses: I64, offset: int, width: int, access: int,
    site: int,
) -> None:  # fmt: skip
    """Point lanes at shared memory of blocks of their cluster (cluster.py). Such a warp has no
    row."""
    warp = m.chosen[place]
    own = warp // m.a_block
    rest = lanes
    while rest:
        lane = trailing_zeros(rest)
        address = addresses[lane] + offset
        owner = own
        inner = address
        if address >= START:
            rank = (address - START) // SPAN
            inner = (address - START) % SPAN
            owner = own // m.cluster_blocks * m.cluster_blocks + rank
            if rank >= m.cluster_blocks or owner >= m.blocks:
                inner = -1
        problem = -1
        if inner < 0 or inner > m.shared_size - width:
            problem = OUTSIDE
        elif has_ended(m, owner):
            problem = ENDED
        elif address & (width - 1):
            problem = MISALIGNED
        if problem >= 0:
            note_fault(m, access, site, warp, lane, address, width, problem)
            return
        m.pointers[32 * place + lane] = m.space_bytes[SHARED] + owner * m.shared_size + inner
        rest = rest & (rest - 1)
    if m.is_watched:
        note_written_at(m, place, lanes, SHARED)


def has_ended(m: Machine, block: int) -> int:
    """Return whether all warps of a block have exited."""
    for warp in range(block * m.a_block, (block + 1) * m.a_block):
        if m.state[warp] != EXITED:
            return 0
    return 1
