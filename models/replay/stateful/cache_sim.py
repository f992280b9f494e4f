"""Cache simulation: the state of the lines, and the loop that serves requests one by one.

A cache has sets of ways. A set's lines are allocated together on its first use: first all tags,
then all states, then two fields for partial stores. So a tag search reads tags only, and the index
of a line's tag, its `place`, is that of all its fields (`Lines`).

`jit/loop.py` compiles these functions; small traces run them as they are.
"""

from typing import NamedTuple

from ....jit.structure import I64, Column, Struct

PASS, READ, WRITE, ATOMIC = 0, 1, 2, 3
"""What a request does. PASS: it bypasses this cache."""
NO_ALLOCATE, EVICT, THROUGH, BACK = 0, 1, 2, 3
"""The write policy of a store."""
LRU, FIFO, RANDOM, RRIP = 0, 1, 2, 3
"""The replacement policies."""
EMPTY = -1
"""The tag of a way without a line; the place of a line that misses."""
NEVER = 1 << 62
"""A time that never comes."""


class Requests(NamedTuple):
    """Requests in order, each (n,).

    The cause is a warp instruction: consecutive requests of one cause to one line share a tag
    lookup. Counts are added up by group. Time is a clock over all units: it counts looked-up
    requests, this one included. `turn` packs the turn in which the SM issues the instruction, the
    warp, the bits of a warp, and whether its scheduler has other warps.
    """

    address: Column
    kind: Column
    cause: Column
    unit: Column
    group: Column
    time: Column
    turn: Column


class Kinds(NamedTuple):
    """Per kind of request, (kinds,): its bytes, its act, and the write policy of a store.

    `parts` are the PARTS of a sector that it reads, or that it stores so that a load can hit them;
    `counts` is 0 for a store that arrives with another. The last four are kinds of outgoing
    requests: a fetched sector, the request itself, a written sector, and the request merged.
    """

    size: I64
    act: I64
    policy: I64
    parts: I64
    counts: I64
    fetch: I64
    forward: I64
    write_back: I64
    merge: I64


class Lines(NamedTuple):
    """The lines: five views of one array, each beginning at a set's first field of that name.

    `state` packs the valid sectors, the dirty sectors, IS_STORED, and the age. `filled` has
    PART_BITS per sector with the number of stored PARTS, fewer than all; `stored` is the time of
    the last store, 0 for never, by the clock of the line's own unit. `queued` packs the number of
    the last store among the lines stored by the unit, its warp, and the sectors that wait with it
    to leave. These three hold anything unless IS_STORED is set.
    """

    tag: I64
    state: I64
    filled: I64
    stored: I64
    queued: I64


FIELDS = len(Lines._fields)
DIRTY, SECTORS, IS_STORED, AGE_BITS = 8, 0xFF, 1 << 16, 17
"""In a state: the first bit of the dirty sectors, the mask of sectors, and the bits below the age.
"""
FLAGS = (1 << AGE_BITS) - 1
SCHEDULERS, HEAD_BITS = 4, 6
"""Schedulers of an SM, and the first bit of the warp in a packed turn."""
STORER, QUEUED = 8, 24
"""The first bits of the warp and of the number in `queued`."""
PARTS, PART_BITS = 32, 5


class Shape(NamedTuple):
    """The geometry. `inverse` is one divided by `sets`; `portion` is the sectors per fetch.

    A store hits a line if the last store to it is `near` cycles old at most, or more than `far`.
    The most dirty lines of a set are `dirty_ways`, and `dirty_rest` more are spread over all sets;
    so are partially stored ones. A store merges with one to its sector in the same turn, with fewer
    than `merged_lines` lines stored between, 0 for none. Where a scheduler has several warps, the
    other schedulers store as many between two stores of a warp.
    """

    ways: int
    line_bits: int
    sector_bits: int
    portion: int
    near: int
    far: int
    merged_lines: int
    pseudo_lru: int
    policy: int
    masks: int
    seed: int
    sets: int
    inverse: float
    dirty_ways: int
    dirty_rest: int
    partial_ways: int
    partial_rest: int


class Counts(NamedTuple):
    """The counters, each (groups,)."""

    reads: I64
    read_hits: I64
    writes: I64
    write_hits: I64
    fills: I64
    write_backs: I64


class Head(Struct):
    """The number of requests passed on, and of fields of lines in use."""

    passed: int
    allocated: int
    prefetched: int


class Passed(NamedTuple):
    """Requests to the next stage, in order; `head` has their number."""

    head: Head
    address: I64
    kind: I64
    cause: I64


class Cache(NamedTuple):
    """A cache with all its units.

    `sets` is the place of the first way per unit and set, EMPTY before the set's first request.
    `clocks` are the cycles of tag lookups per unit. `queues` has the number of stored lines per
    unit, and its last turn. `bases` (n,) is the place of the first way of
    each request's set, computed some requests ahead.
    """

    lines: Lines
    sets: I64
    clocks: I64
    queues: I64
    shape: Shape
    counts: Counts
    passed: Passed
    bases: I64


class Access(NamedTuple):
    """What the lookup of a request does on its behalf: kinds of fetches and of write-backs, the
    cause of these, the group of its counts, and the time.
    """

    fetch: int
    write_back: int
    cause: int
    group: int
    time: int


class Span(NamedTuple):
    """The sectors of a line that a request touches."""

    first: int
    last: int
    mask: int


BANKS, BANK_BITS = 4, 15
WAY_BITS = 24
"""Bits of a way's number in its set."""
AHEAD, TOGETHER = 256, 8
"""Requests whose sets are computed ahead, and integers per line of the processor's cache."""
WORTH = 1 << 13
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""
START = 8
"""Cycles from the issue of an instruction to its first tag lookup."""


def simulate(requests: Requests, kinds: Kinds, cache: Cache) -> None:
    """Serve requests in order.

    Each iteration of the outer loop looks up one tag; the inner loop serves all requests of the
    same instruction to that line.
    """
    lines, shape, clocks = cache.lines, cache.shape, cache.clocks
    is_timed, many = shape.near < shape.far, len(requests.address)
    cause, owner, banks, clock, moved = EMPTY, 0, 0, 0, 0
    ready, number = 0, skip_bypassing(requests, kinds, cache.passed, 0)
    while number < many:
        if number >= ready:
            ready = min(number + AHEAD, many)
            prepare(requests, cache, number, ready)
        unit, base, tag = (
            requests.unit[number],
            cache.bases[number],
            line_of(shape, requests, number),
        )
        if is_timed:
            # The lookups of an instruction are charged to its unit's clock when the next one
            # begins: only then the count of the fullest bank is known. A line costs a cycle of its
            # own bank of tags; the banks work in parallel.
            if requests.cause[number] != cause:
                clocks[owner] += lookup_cycles(banks)
                if moved:
                    cache.queues[2 * owner] += pushed_lines(shape.merged_lines, moved)
                owner, banks, moved = unit, 0, 0
            bank = BANK_BITS * bank_of(tag)
            clock = 1 + clocks[unit] + (banks >> bank & (1 << BANK_BITS) - 1)
            banks += 1 << bank
        cause = requests.cause[number]
        place = lookup(lines, base, shape.ways, tag)
        was_here = place >= 0
        is_hit = was_here and (not is_timed or is_store_visible(lines, shape, place, clock))
        is_same_lookup = True
        turn, stored, waiting = requests.turn[number], 0, 0
        if kinds.act[requests.kind[number]] == WRITE:
            waiting = queued_sectors(cache, turn, unit, place)
        else:
            cache.queues[2 * unit] += shape.merged_lines
        while is_same_lookup:
            kind, access = requests.kind[number], access_of(requests, kinds, number)
            act, policy = kinds.act[kind], kinds.policy[kind]
            if place < 0 and allocates(act, policy):
                place = evict(cache, access, base, tag)
            if place >= 0:
                update_age(lines, shape, place, access.time, was_here)
            span = span_of(shape, tag, requests.address[number], kinds.size[kind])
            if act == READ:
                read(cache, access, place, span, policy, kinds.parts[kind])
            elif act == WRITE:
                counted = popcount(span.mask) * kinds.counts[kind]
                write(cache, access, place, span, policy, kinds.parts[kind], clock, counted, is_hit)
            else:
                update_atomically(cache, access, place, span, policy)
            if act == WRITE and policy == THROUGH and shape.merged_lines:
                is_merged = span.mask & ~waiting == 0
                own = kinds.merge[kind] if is_merged else kinds.forward[kind]
                emit(cache.passed, requests.address[number], own, requests.cause[number])
                stored |= span.mask
            elif act != READ and policy != BACK:
                forward(requests, kinds, cache.passed, number)
            number = skip_bypassing(requests, kinds, cache.passed, number + 1)
            is_same_lookup = place >= 0 and number < many and requests.cause[number] == cause
            is_same_lookup = is_same_lookup and line_of(shape, requests, number) == tag
            # a store that evicts has emptied the line: look it up again
            if is_same_lookup and lines.tag[place] != tag:
                place = lookup(lines, base, shape.ways, tag)
        if stored:
            # where a scheduler has several warps, their lines queue up: no time is left
            moved += int(stored & ~waiting != 0 and turn & 1 == 0)
            cache.queues[2 * unit] += 1
            tail = cache.queues[2 * unit] << QUEUED | warp_in(turn) << STORER
            lines.queued[place] = tail | waiting | stored
    clocks[owner] += lookup_cycles(banks)
    if moved:
        cache.queues[2 * owner] += pushed_lines(shape.merged_lines, moved)


def access_of(requests: Requests, kinds: Kinds, number: int) -> Access:
    """Return what is done on behalf of a request."""
    kind = requests.kind[number]
    fetch, write_back = kinds.fetch[kind], kinds.write_back[kind]
    cause, group, time = requests.cause[number], requests.group[number], requests.time[number]
    return Access(fetch, write_back, cause, group, time)


def read(cache: Cache, access: Access, place: int, span: Span, policy: int, parts: int) -> None:
    """Read sectors of a line that is present, and fetch the missing ones."""
    lines, shape, counts = cache.lines, cache.shape, cache.counts
    valid = lines.state[place] & SECTORS
    if policy == THROUGH and span.first == span.last and span.mask & ~valid:
        valid |= span.mask * (parts_of(lines, place, span.first) >= parts)
    counts.reads[access.group] += span.last - span.first + 1
    counts.read_hits[access.group] += popcount(span.mask & valid)
    if span.mask & ~valid and span.first == span.last and shape.portion == 1:
        lines.state[place] |= span.mask
        counts.fills[access.group] += 1
        sector = (lines.tag[place] << shape.line_bits) + (span.first << shape.sector_bits)
        emit(cache.passed, sector, access.fetch, access.cause)
    elif span.mask & ~valid:
        fetch(cache, access, place, span.mask, shape.portion, valid)


def write(
    cache: Cache,
    access: Access,
    place: int,
    span: Span,
    policy: int,
    parts: int,
    clock: int,
    counted: int,
    is_hit: bool,
) -> None:
    """Store to sectors; a write-back cache marks them dirty. `place` is EMPTY where a miss does not
    allocate. Of its sectors `counted` count.
    """
    lines, counts = cache.lines, cache.counts
    counts.writes[access.group] += counted
    counts.write_hits[access.group] += counted * is_hit
    before = EMPTY if place < 0 else lines.state[place]
    if place >= 0:
        store(lines, place, span, policy, parts, clock)
    if policy == BACK:
        mark_dirty(cache, access, place, span.mask, before)


def update_atomically(cache: Cache, access: Access, place: int, span: Span, policy: int) -> None:
    """Execute an atomic in a write-back cache, which reads the sectors, and writes them later.

    Any other cache passes it on, and invalidates its sectors.
    """
    lines, shape, counts = cache.lines, cache.shape, cache.counts
    if policy == BACK:
        before = lines.state[place]
        # an atomic fetches whole portions in odd lines only
        portion = shape.portion if lines.tag[place] & 1 else 1
        counts.writes[access.group] += popcount(span.mask)
        counts.write_hits[access.group] += popcount(span.mask & before & SECTORS)
        fetch(cache, access, place, span.mask, portion, before & SECTORS)
        mark_dirty(cache, access, place, span.mask, before)
    elif place >= 0:
        lines.state[place] &= ~span.mask
        lines.filled[place] = lines.queued[place] = 0


def mark_dirty(cache: Cache, access: Access, place: int, mask: int, before: int) -> None:
    """Mark sectors as dirty; if the line, of state `before`, was less so, other lines of its set
    may have to be written back.
    """
    lines = cache.lines
    lines.state[place] |= mask << DIRTY
    if dirtiness(lines.state[place]) > dirtiness(before):
        write_back_excess(cache, access, place)


def line_of(shape: Shape, requests: Requests, number: int) -> int:
    """Return the line of a request."""
    return int(requests.address[number]) >> shape.line_bits


def span_of(shape: Shape, tag: int, address: int, size: int) -> Span:
    """Return the sectors that a request touches in a line."""
    offset = address - (tag << shape.line_bits)
    first, last = offset >> shape.sector_bits, offset + size - 1 >> shape.sector_bits
    return Span(first, last, (2 << last) - (1 << first))


def any_crosses_line(addresses: I64, kind: Column, widths: I64, line: int) -> bool:
    """Return whether any request crosses the end of a line; `line` is in bytes."""
    for number in range(len(addresses)):
        if (addresses[number] & (line - 1)) + widths[kind[number]] > line:
            return True
    return False


def prepare(requests: Requests, cache: Cache, number: int, end: int) -> None:
    """Compute the sets of the requests from `number` to `end`, and prefetch their tags."""
    shape, bases, tags = cache.shape, cache.bases, cache.lines.tag
    tag, unit, base, read = EMPTY, EMPTY, 0, 0
    for one in range(number, end):
        if line_of(shape, requests, one) != tag or requests.unit[one] != unit:
            tag, unit = line_of(shape, requests, one), requests.unit[one]
            base = allocate_set(cache, unit, tag)
        bases[one] = base
    for one in range(number, end):
        for near in range(bases[one], bases[one] + 2 * shape.ways, TOGETHER):
            read ^= tags[near]
    # The XOR keeps the compiler from removing the reads, whose only purpose is to load tags and
    # states, which follow the tags.
    cache.passed.head.prefetched = read


def skip_bypassing(requests: Requests, kinds: Kinds, passed: Passed, number: int) -> int:
    """Pass on requests that bypass this cache; return the number of the next one that does not."""
    while number < len(requests.kind) and kinds.act[requests.kind[number]] == PASS:
        forward(requests, kinds, passed, number)
        number += 1
    return number


def forward(requests: Requests, kinds: Kinds, passed: Passed, number: int) -> None:
    """Pass on a request."""
    own = kinds.forward[requests.kind[number]]
    emit(passed, requests.address[number], own, requests.cause[number])


def bank_of(line: int) -> int:
    """Return the tag bank of a line: the XOR of all pairs of bits of its number."""
    for shift in (32, 16, 8, 4, 2):
        line ^= line >> shift
    return line & BANKS - 1


def lookup_cycles(banks: int) -> int:
    """Return the cycles of an instruction's lookups, 0 if it looks up nothing.

    These are START cycles plus the number of lines in the fullest bank of tags. `banks` packs the
    count of each bank, BANK_BITS apart.
    """
    most, start = 0, START * (banks > 0)
    for _ in range(BANKS):
        most = max(most, banks & (1 << BANK_BITS) - 1)
        banks >>= BANK_BITS
    return most + start


def find_set(sets: int, inverse: float, line: int) -> int:
    """Return the set of a line. Neighbouring lines have neighbouring sets; each round starts at
    another.
    """
    quotient = divide(line, sets, inverse)
    place = line - quotient * sets + hash32(quotient)
    return place - divide(place, sets, inverse) * sets


def divide(number: int, by: int, inverse: float) -> int:
    """Return number // by, several times as fast; `inverse` is one divided by `by`."""
    quotient = int(number * inverse)
    while quotient * by > number:
        quotient -= 1
    while (quotient + 1) * by <= number:
        quotient += 1
    return quotient


def allocate_set(cache: Cache, unit: int, tag: int) -> int:
    """Return the place of the first way of a line's set; allocate the set on its first use."""
    lines, shape, head = cache.lines, cache.shape, cache.passed.head
    number = unit * shape.sets + find_set(shape.sets, shape.inverse, tag)
    if cache.sets[number] < 0:
        begin = head.allocated
        cache.sets[number] = begin
        head.allocated = begin + shape.ways * FIELDS
        for way in range(begin, begin + shape.ways):
            lines.tag[way] = EMPTY
            lines.state[way] = lines.filled[way] = lines.stored[way] = lines.queued[way] = 0
    return int(cache.sets[number])


def ways_of_set(shape: Shape, number: int, ways: int, remainder: int) -> int:
    """Return a set's share of lines: `ways`, and one of the `remainder` lines that are spread
    evenly over all sets.
    """
    more = number * remainder % shape.sets < remainder
    return max(1, ways + int(more))


def allocates(act: int, policy: int) -> bool:
    """Return whether a miss allocates a line."""
    return bool(act == READ or policy == BACK or (policy == THROUGH and act == WRITE))


def lookup(lines: Lines, base: int, ways: int, tag: int) -> int:
    """Return the place of a line in the set that begins at `base`, or EMPTY.

    The loop compares all ways without an early exit, since the exit would be mispredicted.
    """
    hit_way, tags = 0, lines.tag[base : base + ways]
    for way in range(len(tags)):
        hit_way |= (tags[way] == tag) * (way + 1)
    return base + hit_way - 1 if hit_way else EMPTY


def is_store_visible(lines: Lines, shape: Shape, place: int, clock: int) -> bool:
    """Return whether the last store to a line hits: it is recent (up to `near` cycles old) or
    complete (more than `far` cycles old).
    """
    stored = lines.stored[place] if lines.state[place] & IS_STORED else 0
    return bool(stored == 0 or clock - stored <= shape.near or clock - stored > shape.far)


def queued_sectors(cache: Cache, turn: int, unit: int, place: int) -> int:
    """Return the sectors of a line that wait to leave: those of recent stores of the turn.

    A turn begins, and a load ends, so many lines later that nothing waits any more.
    """
    lines, queues, shape = cache.lines, cache.queues, cache.shape
    if shape.merged_lines == 0:
        return 0
    number = turn >> HEAD_BITS + warp_bits(turn)
    if queues[2 * unit + 1] != number:
        queues[2 * unit] += shape.merged_lines
        queues[2 * unit + 1] = number
    if place < 0 or not lines.state[place] & IS_STORED:
        return 0
    queued = lines.queued[place]
    between = queues[2 * unit] - (queued >> QUEUED)
    if turn & 1 and warp_in(turn) == queued >> STORER & (1 << QUEUED - STORER) - 1:
        between *= SCHEDULERS
    return queued & SECTORS if between < shape.merged_lines else 0


def pushed_lines(merged_lines: int, moved: int) -> int:
    """Return how many lines an instruction's stores push out more than the `moved` ones.

    Stores of a warp alone leave in time: those to one line wait for the next instruction only,
    those to a few lines for two. `moved` are the lines to which a store did not merge.
    """
    least = merged_lines // 2 + 1 if moved == 1 else merged_lines // 3 + 1
    return max(0, least - moved) if moved < merged_lines // 3 else 0


def warp_in(turn: int) -> int:
    """Return the warp of a packed turn."""
    return turn >> HEAD_BITS & (1 << warp_bits(turn)) - 1 & (1 << QUEUED - STORER) - 1


def warp_bits(turn: int) -> int:
    """Return the bits that a packed turn has for the warp."""
    return turn >> 1 & (1 << HEAD_BITS - 1) - 1


def update_age(lines: Lines, shape: Shape, place: int, now: int, was_here: bool) -> None:
    """Update the age of a line on its use; `was_here` is whether the line was a hit."""
    state = lines.state[place]
    age = age_of(shape.policy, state >> AGE_BITS, now, was_here)
    lines.state[place] = state & FLAGS | age << AGE_BITS


def evict(cache: Cache, access: Access, base: int, tag: int) -> int:
    """Evict the victim of a set, write it back if dirty, and return the place of the new line.

    A pseudo-LRU cache (`wavers`) evicts the second-oldest line for half of the misses, chosen by a
    hash of the time.
    """
    lines, shape = cache.lines, cache.shape
    states = lines.state[base : base + shape.ways]
    oldest = lru_way_after(states, EMPTY)
    if shape.pseudo_lru and shape.ways > 1 and oldest >> WAY_BITS and hash32(access.time) & 1:
        oldest = lru_way_after(states, oldest)
    if shape.policy == RRIP and oldest >> WAY_BITS > EVICTABLE:
        age_set(states, (oldest >> WAY_BITS) - EVICTABLE << AGE_BITS)
    victim = base + (oldest & (1 << WAY_BITS) - 1)
    if shape.policy == RANDOM and oldest >> WAY_BITS:
        victim = base + pick_random(shape.seed, access.time, shape.ways)
    if dirtiness(lines.state[victim]):
        write_back(cache, access, victim)
    lines.tag[victim] = tag
    lines.state[victim] = 0
    return victim


def lru_way_after(states: I64, after: int) -> int:
    """Return the oldest line that comes after `after`: its age, shifted by WAY_BITS, and its way.
    Lines that were never used come first, in order of their ways.
    """
    oldest = NEVER
    for way in range(len(states)):
        one = (states[way] >> AGE_BITS << WAY_BITS) + way
        oldest = min(oldest, one if one > after else NEVER)
    return oldest


def fetch(cache: Cache, access: Access, place: int, mask: int, portion: int, valid: int) -> None:
    """Fetch the missing sectors of a line, in portions of `portion` sectors."""
    missing, sector = mask & ~valid, 0
    while missing >> sector:
        if missing >> sector & ((1 << portion) - 1):
            fill_mask = ((1 << portion) - 1) << sector & ~valid
            emit_sectors(cache, access.fetch, access.cause, place, fill_mask)
            cache.counts.fills[access.group] += popcount(fill_mask)
            cache.lines.state[place] |= fill_mask
        sector += portion


def store(lines: Lines, place: int, span: Span, policy: int, parts: int, clock: int) -> None:
    """Store `parts` to sectors of a line that is present."""
    if policy == EVICT:
        lines.tag[place] = EMPTY
        lines.state[place] = 0
        return
    if not lines.state[place] & IS_STORED:
        lines.filled[place] = lines.stored[place] = lines.queued[place] = 0
        lines.state[place] |= IS_STORED
    if span.first == span.last:
        have = parts_of(lines, place, span.first)
        parts += have
        lines.filled[place] += min(PARTS - 1, parts) - have << span.first * PART_BITS
    if parts >= (span.last - span.first + 1) * PARTS:
        lines.state[place] |= span.mask
    if policy == THROUGH:
        lines.stored[place] = clock


def parts_of(lines: Lines, place: int, sector: int) -> int:
    """Return the number of stored parts of a sector, fewer than all."""
    filled = lines.filled[place] if lines.state[place] & IS_STORED else 0
    return int(filled) >> sector * PART_BITS & (1 << PART_BITS) - 1


def dirty_mask(state: int) -> int:
    """Return the dirty sectors of a line."""
    return state >> DIRTY & SECTORS


def dirtiness(state: int) -> int:
    """Return 0 for a clean line, 1 for a dirty one, 2 for a dirty one with partially stored
    sectors.
    """
    dirty = dirty_mask(state)
    return int(dirty != 0) + int(dirty & ~state != 0)


def write_back_excess(cache: Cache, access: Access, place: int) -> None:
    """Write back the least recently used dirty line of a set if more of its lines are dirty, or
    partial, than may be. The line at `place` is one of the set.
    """
    lines, shape = cache.lines, cache.shape
    if shape.dirty_ways >= shape.ways and shape.partial_ways >= shape.ways:
        return
    number = find_set(shape.sets, shape.inverse, lines.tag[place])
    base = place - place % (shape.ways * FIELDS)
    dirty, partial, oldest_dirty, oldest_partial = 0, 0, EMPTY, EMPTY
    for way in range(base, base + shape.ways):
        degree = dirtiness(lines.state[way])
        if degree:
            dirty += 1
            if oldest_dirty < 0 or lines.state[way] < lines.state[oldest_dirty]:
                oldest_dirty = way
        if degree > 1:
            partial += 1
            if oldest_partial < 0 or lines.state[way] < lines.state[oldest_partial]:
                oldest_partial = way
    # a partial line is dirty, too: the order of the two checks decides which line goes
    if partial > ways_of_set(shape, number, shape.partial_ways, shape.partial_rest):
        write_back(cache, access, oldest_partial)
        dirty -= 1
    if dirty > ways_of_set(shape, number, shape.dirty_ways, shape.dirty_rest):
        write_back(cache, access, oldest_dirty)


def write_back(cache: Cache, access: Access, place: int) -> None:
    """Write back the dirty sectors of a line; fetch its partially stored sectors first, unless
    memory masks bytes.
    """
    state = cache.lines.state[place]
    dirty = dirty_mask(state)
    partial = 0 if cache.shape.masks else dirty & ~state
    emit_sectors(cache, access.fetch, access.cause, place, partial)
    emit_sectors(cache, access.write_back, access.cause, place, dirty)
    cache.counts.fills[access.group] += popcount(partial)
    cache.counts.write_backs[access.group] += popcount(dirty)
    cache.lines.state[place] = (state | partial) & ~(SECTORS << DIRTY)


def emit_sectors(cache: Cache, kind: int, cause: int, place: int, mask: int) -> None:
    """Pass on the sectors of a line in `mask`."""
    shape, sector = cache.shape, 0
    while mask >> sector:
        if mask >> sector & 1:
            begin = cache.lines.tag[place] << shape.line_bits
            emit(cache.passed, begin + (sector << shape.sector_bits), kind, cause)
        sector += 1


def emit(passed: Passed, address: int, kind: int, cause: int) -> None:
    """Append an outgoing request."""
    end = passed.head.passed
    passed.address[end] = address
    passed.kind[end] = kind
    passed.cause[end] = cause
    passed.head.passed = end + 1


def popcount(mask: int) -> int:
    """Return the number of set bits."""
    return mask.bit_count()


CAME, HIT, EVICTABLE = 2, 4, 1
FIRST, SECOND, LOW = 0xE20283A7, 0xD24C5CD1, 0x7FFFFFFF
"""Multipliers and a mask of the hash that places the first set of each round of lines. The
multipliers were found by trial: at 41 strides from 1 to 8192 lines, in eight caches of 16 to 243
sets that are half full, at least 84 of 100 lines are kept.
"""


def age_of(policy: int, age: int, now: int, was_here: bool) -> int:
    """Return the age of a line after its use; `was_here` is whether the line was a hit."""
    if policy == FIFO and was_here:
        return age
    if policy == RRIP:
        return HIT if was_here else CAME
    return now


def pick_random(seed: int, now: int, ways: int) -> int:
    """Return the random victim of a full set."""
    return hash32(now + hash32(seed)) % ways


def age_set(states: I64, more: int) -> None:
    """Age all lines of a full set by `more`, so that the oldest can be evicted."""
    for way in range(len(states)):
        states[way] -= more


def hash32(number: int) -> int:
    """Return a deterministic 32-bit hash; 0 for 0."""
    mixed = (number & LOW) * FIRST
    return (((mixed ^ mixed >> 24) & LOW) * SECOND) >> 31
