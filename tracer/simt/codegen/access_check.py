"""Bounds checks and trace rows of the memory accesses of one warp.

`touch` checks the lanes' addresses and writes the row of an access, `search` looks up the
allocation of a lane, and `finish_some` takes the rows of a basic block. `look` and `decide` find
the state space of an access with generic addresses. `jit` compiles these functions.
"""

from ....jit.structure import I32, I64
from ....jit.value import assembly, trailing_zeros
from ....traces.schema import Space
from ..memory.memory import GLOBAL_BASE, WINDOWS
from ..rows.pattern import AT_ONCE, answer, enqueue
from ..warp.machine import Machine


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


@assembly("""
define internal i64 @put(ptr %addresses, i64 %mask, ptr %to) {
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
  ret i64 0
}
""")
def put(addresses: I64, mask: int, to: I32) -> None:
    """Write the offsets of lanes `mask` from their lowest lane to `to`, 0 for the other lanes."""
    raise NotImplementedError


def touch(
    m: Machine, place: int, access: int, position: int, mask: int, addresses: I64, offset: int,
    width: int, window: int, is_arena: int,
) -> int:  # fmt: skip
    """Check lanes `mask` of the warp that is number `place` of the group, and write the row of
    access number `access` of the basic block; return the lanes that may continue.

    The pattern of the row may follow later. `offset` is added to each address; `window` is
    subtracted from the row's. In global (`is_arena` 1) and constant memory (2) a lane must be
    inside one allocation, elsewhere below the site's limit.
    """
    # The rows of an access are contiguous for all warps of the group, although a part runs warp by
    # warp: the trace has them in the order of the array engine.
    row = m.rows + (access - m.finished) * m.count + place
    if mask == 0:
        # No lane: finish_some removes the row.
        m.row_pattern[row] = -1
        m.dropped = 1
        return 0
    site = m.site_as[m.first_site[m.number] + access]
    warp = m.chosen[place]
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
            put(addresses, mask, to)
    bad = mask if limit < 0 else outcome & (NEW - 1)
    if bad and is_arena:
        bad = search(m, site, warp, bad, addresses, offset, width, is_arena)
    if bad:
        note_fault(m, access, place, bad, mask, addresses, offset)
        return int(mask & ~bad)
    if other or outcome >= NEW:
        pattern = 0
        enqueue(questions, table, mask, row, last)
    m.row_base[row] = addresses[trailing_zeros(mask)] + offset - window
    m.row_pattern[row] = pattern
    m.row_warp[row] = warp
    m.row_step[row] = m.step[warp] + position
    if questions.count == AT_ONCE:
        answer(questions, table, m.row_pattern, m.site_pattern)
    return mask


def search(
    m: Machine, site: int, warp: int, bad: int, addresses: I64, offset: int, width: int, arena: int
) -> int:
    """Look up the allocations of lanes `bad`; return the lanes that are in none, or misaligned.

    The site caches the last allocation found. If the launch reports instead of faults, a lane in no
    allocation but in mapped memory is counted.
    """
    starts = m.starts if arena == 1 else m.const_starts
    ends = m.ends if arena == 1 else m.const_ends
    count = m.allocations if arena == 1 else m.const_allocations
    for lane in range(32):
        if (bad >> lane) & 1:
            address = addresses[lane] + offset
            low = 0
            high = count
            while low < high:
                middle = (low + high) // 2
                if starts[middle] <= address:
                    low = middle + 1
                else:
                    high = middle
            odd = address & (width - 1)
            if low > 0 and not odd and address <= ends[low - 1] - width:
                bad = bad & ~(1 << lane)
                m.site_low[site] = starts[low - 1]
                m.site_limit[site] = ends[low - 1] - starts[low - 1] - width
            elif arena == 1 and not odd and is_mapped(m, address, width):
                bad = bad & ~(1 << lane)
                note_outside(m, site, warp, lane, address)
    return bad


def is_mapped(m: Machine, address: int, width: int) -> int:
    """Return whether bytes are in mapped memory; 0 if the launch faults instead of reporting."""
    low = 0
    high = m.mapped
    while low < high:
        middle = (low + high) // 2
        if m.mapped_starts[middle] <= address:
            low = middle + 1
        else:
            high = middle
    if low > 0 and address <= m.mapped_ends[low - 1] - width:
        return 1
    return 0


def note_outside(m: Machine, site: int, warp: int, lane: int, address: int) -> None:
    """Count a lane outside of every allocation, and keep the first one of the first warp."""
    m.outside_lanes[site] = m.outside_lanes[site] + 1
    if m.outside_lanes[site] == 1 or warp < m.outside_warp[site]:
        m.outside_warp[site] = warp
        m.outside_lane[site] = lane
        m.outside_address[site] = address


def note_fault(
    m: Machine, access: int, place: int, bad: int, mask: int, addresses: I64, offset: int
) -> None:
    """Record a fault, and keep the earliest access of the basic block; of that, the first warp."""
    if m.fault_site >= 0 and m.fault_site <= access:
        return
    m.fault_site = access
    m.fault_warp = m.chosen[place]
    m.fault_mask = mask
    for lane in range(32):
        m.fault_addresses[lane] = addresses[lane] + offset


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
        if to > start:
            m.run_site[m.runs] = m.site_as[m.first_site[m.number] + access]
            m.run_count[m.runs] = to - start
            m.runs += 1
    m.rows = to
    m.finished = m.upto
    m.dropped = 0


REGIONS = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""State spaces of generic addresses; a region is an index of it. Global is everything outside the
other windows."""

GLOBAL, SHARED, LOCAL, CONST = range(4)
_SHARED_START, _SHARED_END = WINDOWS[Space.SHARED]
_LOCAL_START, _LOCAL_END = WINDOWS[Space.LOCAL]
_CONST_START, _CONST_END = WINDOWS[Space.CONST]
_SPAN = 1 << 31
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def look(m: Machine, addresses: I64, mask: int) -> None:
    """Extend the address range of the group by those of lanes `mask`."""
    remainder = mask
    low = m.low
    high = m.high
    while remainder:
        lane = trailing_zeros(remainder)
        low = min(low, addresses[lane])
        high = max(high, addresses[lane])
        remainder = remainder & (remainder - 1)
    m.low = low
    m.high = high


def decide(m: Machine, access: int, offset: int) -> int:
    """Select the state space of access number `access` of the basic block.

    Return 0 if the lanes are in several spaces, or too far apart: the array engine then runs the
    access.
    """
    low = m.low
    high = m.high
    # Reset the range for the next access with generic addresses.
    m.low = MOST
    m.high = LEAST
    if low > high:
        return 1
    region = region_of(low + offset)
    if region != region_of(high + offset) or high - low < 0 or high - low >= _SPAN:
        return 0
    site = m.first_site[m.number] + access
    m.site_as[site] = m.site_in[site] + region
    m.region = region
    m.window = GLOBAL_BASE if region == GLOBAL else 0
    m.arena = 1 if region == GLOBAL else 0
    m.shift = 0
    if region == SHARED:
        m.shift = _SHARED_START
    elif region == LOCAL:
        m.shift = _LOCAL_START
    elif region == CONST:
        m.shift = _CONST_START
        m.arena = 2
    return 1


def region_of(address: int) -> int:
    """Return the region that contains an address."""
    if address >= _SHARED_START and address < _SHARED_END:
        return SHARED
    if address >= _LOCAL_START and address < _LOCAL_END:
        return LOCAL
    if address >= _CONST_START and address < _CONST_END:
        return CONST
    return GLOBAL
