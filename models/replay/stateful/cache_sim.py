"""The lines of a cache, and the loop that serves requests: plain integers, one after another.

All functions here take and give integers and flat sequences of them, so that `compiled.py` can
compile them as they stand, and small traces do without.

- `requests`: (address, kind, cause, unit, group, time), each (n,). Cause is the instruction of a
  warp: what it asks of one line, in requests that follow one another, is looked up together. Group
  is whose counts a request is added to. Time is by a clock of all units, which counts requests that
  are looked up, this one too.
- `kinds`: (bytes, act, policy, parts, fetched, own, written), each (kinds,). Act is PASS, READ,
  WRITE or ATOMIC, policy what becomes of a store, HERE to BACK, and parts how many of PARTS of a
  sector are wanted, or are stored so that they can be found. The last three are kinds of what goes
  to the next stage: a sector that is fetched, the request itself, and a sector that is written.
- `lines`: STATE integers for each line of a set, each of them for all its lines side by side, so
  that looking for a line reads nothing but numbers of lines: its number or EMPTY; its marks; and
  where IS_STORED is one of these, PART_BITS for each sector that say how many of PARTS of it were
  stored, short of all, and when it was last stored to, 0 for never. Marks are masks of the sectors
  that are here and of those not yet written, and, MARK_BITS above, when the line was last used. The
  first time is by a clock of its own unit, the second by that of all. There is room for more sets
  than are in use, with anything in it. A line's place is that of its number.
- `sets`: for each set of each unit where its lines begin, -1 if nothing has been asked of it.
- `clocks`: for each unit how many cycles it has looked up tags, of a line in each bank at a time.
- `shape`: the numbers that are the same for all requests, in the order of their names below, and
  `inverse`, one divided by the number of sets.
- `counts`: COLUMNS integers for each group.
- `passed`: (head, address, kind, cause): the last three of each thing that goes to the next stage;
  head are how many these are, how many of `lines` are in use, and a number that means nothing.
- `cache`: lines, shape, counts and passed. `state`: lines, sets, clocks, shape, inverse, counts,
  passed and bases.
- `bases`: (n,), where the lines of each request's set begin, found some requests ahead.
- `asker`: of the request that is served, the kinds of what it fetches and of what it writes, its
  cause, and where its counts begin.
"""

from typing import Any

PASS, READ, WRITE, ATOMIC = 0, 1, 2, 3
NO_ALLOCATE, EVICT, THROUGH, BACK = 0, 1, 2, 3
ADDRESS, KIND, INSTRUCTION, UNIT = 0, 1, 2, 3
SIZE, ACT, OWN = 0, 1, 5
FILLED, STORED, STATE = 2, 3, 4
WAYS, LINE, SECTOR, PORTION, NEAR, FAR, SETS = 0, 1, 2, 3, 4, 5, 6
DIRTY_WAYS, DIRTY_REST, PARTIAL_WAYS, PARTIAL_REST, PSEUDO_LRU, POLICY, SEED = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
READS, READ_HITS, WRITES, WRITE_HITS, FILLS, WRITE_BACKS = 0, 1, 2, 3, 4, 5
MANY, OPENED, READ_AHEAD = 0, 1, 2
TO_FETCH, TO_WRITE, CAUSE_OF, COUNTS = 0, 1, 2, 3
COLUMNS, EMPTY = 6, -1
BANKS, BANK_BITS = 4, 15
SECTORS, DIRTY, IS_STORED, MARK_BITS, MARKS = 0xFF, 8, 1 << 16, 17, (1 << 17) - 1
"""The sectors of a line as a mask; where those not yet written begin; and the bits of marks."""
PARTS, PART_BITS = 32, 5
WAY_BITS, NEVER = 24, 1 << 62
"""Bits of a line's number in its set, and a time that never comes."""
AHEAD, TOGETHER = 256, 8
"""Requests whose sets are found together, and integers that a processor reads at once."""
WORTH = 1 << 13
"""Requests from which on the compiled loop is worth its start of a tenth of a second."""
START = 8
"""Cycles that an instruction takes before its first line is looked up."""


def simulate(requests: Any, kinds: Any, state: Any) -> None:
    """Serve requests in order; each turn looks a line up, for all that one instruction wants."""
    lines, sets, clocks, shape, inverse, counts, passed, bases = state
    addresses, kind, issuers, units, group, time = requests
    size, acts, policies, wholes, fetched, _, written = kinds
    cache = lines, shape, counts, passed
    ways, is_timed = shape[WAYS], shape[NEAR] < shape[FAR]
    issuer, owner, banks, clock = EMPTY, 0, 0, 0
    ready, number = 0, skip_bypassing(requests, kinds, passed, 0)
    while number < len(addresses):
        if number >= ready:
            ready = min(number + AHEAD, len(addresses))
            prepare(requests, cache, sets, inverse, bases, number, ready)
        unit, line, base = units[number], addresses[number] >> shape[LINE], bases[number]
        if is_timed:
            if issuers[number] != issuer:
                clocks[owner] += lookup_cycles(banks)
                owner, banks = unit, 0
            bank = BANK_BITS * bank_of(line)
            clock = 1 + clocks[unit] + (banks >> bank & (1 << BANK_BITS) - 1)
            banks += 1 << bank
        issuer = issuers[number]
        place = find(lines, base, ways, line)
        was_here = place >= 0
        is_hit = was_here and (not is_timed or is_store_visible(lines, shape, place, clock))
        is_asked = True
        while is_asked:
            what = kind[number]
            act, policy, parts = acts[what], policies[what], wholes[what]
            asker = fetched[what], written[what], issuer, COLUMNS * group[number]
            now = time[number]
            if place < 0 and allocates(act, policy):
                place = evict(cache, asker, base, line, now)
            if place >= 0:
                update_age(lines, shape, place, now, was_here)
            address = addresses[number]
            offset = address - (line << shape[LINE])
            first, last = offset >> shape[SECTOR], offset + size[what] - 1 >> shape[SECTOR]
            mask = (2 << last) - (1 << first)
            if act == READ:
                read(cache, asker, place, address, size[what], policy, parts)
            elif act == ATOMIC and policy == BACK:
                marks = lines[place + ways]
                valid, portion = marks & SECTORS, shape[PORTION] if line & 1 else 1
                counts[asker[COUNTS] + WRITES] += popcount(mask)
                counts[asker[COUNTS] + WRITE_HITS] += popcount(mask & valid)
                fetch(cache, asker, place, mask, portion, valid)
                lines[place + ways] |= mask << DIRTY
                if dirty_state(lines[place + ways]) > dirty_state(marks):
                    write_back_excess(cache, asker, base, find_set(shape[SETS], inverse, line))
            elif act == ATOMIC:
                if place >= 0:
                    lines[place + ways] &= ~mask
                    lines[place + FILLED * ways] = 0
                forward(requests, kinds, passed, number)
            else:
                counts[asker[COUNTS] + WRITES] += popcount(mask)
                counts[asker[COUNTS] + WRITE_HITS] += popcount(mask) * is_hit
                marks = EMPTY if place < 0 else lines[place + ways]
                store(lines, shape, place, first, last, policy, parts, clock)
                if policy == BACK:
                    lines[place + ways] |= mask << DIRTY
                    if dirty_state(lines[place + ways]) > dirty_state(marks):
                        write_back_excess(cache, asker, base, find_set(shape[SETS], inverse, line))
                else:
                    forward(requests, kinds, passed, number)
            number = skip_bypassing(requests, kinds, passed, number + 1)
            is_asked = place >= 0 and number < len(addresses) and issuers[number] == issuer
            is_asked = is_asked and addresses[number] >> shape[LINE] == line
            if is_asked and lines[place] != line:
                place = find(lines, base, ways, line)
    clocks[owner] += lookup_cycles(banks)


def read(
    cache: Any, asker: Any, place: int, address: int, size: int, policy: int, parts: int
) -> None:
    """Read what a request wants of a line that is here; fetch what is missing of it."""
    lines, shape, counts, passed = cache
    ways, line = shape[WAYS], lines[place]
    offset = address - (line << shape[LINE])
    first, last = offset >> shape[SECTOR], offset + size - 1 >> shape[SECTOR]
    mask = (2 << last) - (1 << first)
    valid = lines[place + ways] & SECTORS
    if policy == THROUGH and first == last and mask & ~valid:
        valid |= mask * (parts_of(lines, ways, place, first) >= parts)
    counts[asker[COUNTS] + READS] += last - first + 1
    counts[asker[COUNTS] + READ_HITS] += popcount(mask & valid)
    if mask & ~valid and first == last and shape[PORTION] == 1:
        lines[place + ways] |= mask
        counts[asker[COUNTS] + FILLS] += 1
        sector = (line << shape[LINE]) + (first << shape[SECTOR])
        emit(passed, sector, asker[TO_FETCH], asker[CAUSE_OF])
    elif mask & ~valid:
        fetch(cache, asker, place, mask, shape[PORTION], valid)


def any_crosses_line(addresses: Any, kind: Any, widths: Any, line: int) -> bool:
    """Whether any request, as wide as its kind, leaves the line (in bytes) that it begins in."""
    for number in range(len(addresses)):
        if (addresses[number] & (line - 1)) + widths[kind[number]] > line:
            return True
    return False


def prepare(
    requests: Any, cache: Any, sets: Any, inverse: float, bases: Any, number: int, end: int
) -> None:
    """Find the sets of some requests, and read them all: a processor waits for many at once."""
    lines, shape, _, passed = cache
    ways, addresses, units = shape[WAYS], requests[ADDRESS], requests[UNIT]
    line, unit, base, read = EMPTY, EMPTY, 0, 0
    for one in range(number, end):
        request_line = addresses[one] >> shape[LINE]
        if request_line != line or units[one] != unit:
            line, unit = request_line, units[one]
            place = unit * shape[SETS] + find_set(shape[SETS], inverse, line)
            base = allocate_set(lines, sets, ways, passed[0], place)
        bases[one] = base
    for one in range(number, end):
        for near in range(bases[one], bases[one] + FILLED * ways, TOGETHER):
            read ^= lines[near]
    passed[0][READ_AHEAD] = read


def skip_bypassing(requests: Any, kinds: Any, passed: Any, number: int) -> int:
    """Pass on requests that are not looked up, and return the next one that is."""
    while number < len(requests[KIND]) and kinds[ACT][requests[KIND][number]] == PASS:
        forward(requests, kinds, passed, number)
        number += 1
    return number


def forward(requests: Any, kinds: Any, passed: Any, number: int) -> None:
    """Pass a request on."""
    own = kinds[OWN][requests[KIND][number]]
    emit(passed, requests[ADDRESS][number], own, requests[INSTRUCTION][number])


def bank_of(line: int) -> int:
    """Return the bank of tags that a line belongs to: all bits of its number, two at a time."""
    for shift in (32, 16, 8, 4, 2):
        line ^= line >> shift
    return line & BANKS - 1


def lookup_cycles(banks: int) -> int:
    """Return how long an instruction takes: START cycles, and one for each line in the bank of tags
    that has most; none if it looks up none. `banks` holds how many are in each, BANK_BITS apart.
    """
    most, start = 0, START * (banks > 0)
    for _ in range(BANKS):
        most = max(most, banks & (1 << BANK_BITS) - 1)
        banks >>= BANK_BITS
    return most + start


def find_set(sets: int, inverse: float, line: int) -> int:
    """Return the set of a line: neighbours lie side by side, and each round begins elsewhere."""
    quotient = divide(line, sets, inverse)
    place = line - quotient * sets + hash32(quotient)
    return place - divide(place, sets, inverse) * sets


def divide(number: int, by: int, inverse: float) -> int:
    """Return number // by, several times as fast, with `inverse` one divided by it."""
    quotient = int(number * inverse)
    while quotient * by > number:
        quotient -= 1
    while (quotient + 1) * by <= number:
        quotient += 1
    return quotient


def allocate_set(lines: Any, sets: Any, ways: int, head: Any, number: int) -> int:
    """Return where the lines of a set begin, taking the next free ones if it is new."""
    if sets[number] < 0:
        begin = sets[number] = head[OPENED]
        head[OPENED] += ways * STATE
        for place in range(begin, head[OPENED]):
            lines[place] = EMPTY if place < begin + ways else 0
    return sets[number]  # type: ignore[no-any-return]


def ways_of_set(shape: Any, number: int, ways: int, remainder: int) -> int:
    """Return a set's share of lines, `ways` each; `remainder` more are spread evenly over all
    sets."""
    more = number * remainder % shape[SETS] < remainder
    return max(1, ways + int(more))


def allocates(act: int, policy: int) -> bool:
    """Whether a line is made room for."""
    return act == READ or policy == BACK or (policy == THROUGH and act == WRITE)


def find(lines: Any, base: int, ways: int, line: int) -> int:
    """Return where a line's state is in the set that begins at `base`, or -1.

    All are compared, since a processor guesses wrong where a loop ends.
    """
    hit_way, numbers = 0, lines[base : base + ways]
    for way in range(len(numbers)):
        hit_way |= (numbers[way] == line) * (way + 1)
    return base + hit_way - 1 if hit_way else EMPTY


def is_store_visible(lines: Any, shape: Any, place: int, clock: int) -> bool:
    """Whether what was last stored to a line is still at hand, or has arrived behind this cache."""
    ways = shape[WAYS]
    stored = lines[place + STORED * ways] if lines[place + ways] & IS_STORED else 0
    return bool(stored == 0 or clock - stored <= shape[NEAR] or clock - stored > shape[FAR])


def update_age(lines: Any, shape: Any, place: int, now: int, was_here: bool) -> None:
    """Note that a line is used; `was_here`: it did not come for this use."""
    at = place + shape[WAYS]
    age = age_of(shape[POLICY], lines[at] >> MARK_BITS, now, was_here)
    lines[at] = lines[at] & MARKS | age << MARK_BITS


def evict(cache: Any, asker: Any, base: int, line: int, now: int) -> int:
    """Put a line in the place of the one of its set that goes by the policy, and return where.

    A cache that wavers takes the next one every other time, at no regular times.
    """
    lines, shape = cache[:2]
    ways = shape[WAYS]
    marks = lines[base + ways : base + 2 * ways]
    oldest = lru_way_after(marks, EMPTY)
    if shape[PSEUDO_LRU] and ways > 1 and oldest >> WAY_BITS and hash32(now) & 1:
        oldest = lru_way_after(marks, oldest)
    if shape[POLICY] == RRIP and oldest >> WAY_BITS > EVICTABLE:
        more = (oldest >> WAY_BITS) - EVICTABLE
        age_set(lines, base + ways, base + 2 * ways, more << MARK_BITS)
    place = base + (oldest & (1 << WAY_BITS) - 1)
    if shape[POLICY] == RANDOM and oldest >> WAY_BITS:
        place = base + pick_random(shape[SEED], now, ways)
    if dirty_state(lines[place + ways]):
        write_back(cache, asker, place)
    lines[place] = line
    lines[place + ways] = 0
    return place


def lru_way_after(marks: Any, after: int) -> int:
    """Return when the line was used that was unused for longest, and, WAY_BITS below, which it is;
    of those behind `after`. Lines never used come in their order.
    """
    oldest = NEVER
    for way in range(len(marks)):
        one = (marks[way] >> MARK_BITS << WAY_BITS) + way
        oldest = min(oldest, one if one > after else NEVER)
    return oldest


def fetch(cache: Any, asker: Any, place: int, mask: int, portion: int, valid: int) -> None:
    """Fetch those sectors of a line that are missing, each with its portion."""
    lines, shape, counts, _ = cache
    missing, sector = mask & ~valid, 0
    while missing >> sector:
        if missing >> sector & ((1 << portion) - 1):
            fetch_mask = ((1 << portion) - 1) << sector & ~valid
            emit_sectors(cache, asker, TO_FETCH, place, fetch_mask)
            counts[asker[COUNTS] + FILLS] += popcount(fetch_mask)
            lines[place + shape[WAYS]] |= fetch_mask
        sector += portion


def store(
    lines: Any, shape: Any, place: int, first: int, last: int, policy: int, parts: int, clock: int
) -> None:
    """Store so many parts to sectors of a line, if it is here."""
    ways = shape[WAYS]
    if place < 0:
        return
    if policy == EVICT:
        lines[place] = EMPTY
        lines[place + ways] = 0
        return
    is_new = not lines[place + ways] & IS_STORED
    if is_new:
        lines[place + FILLED * ways] = 0
        lines[place + STORED * ways] = 0
        lines[place + ways] |= IS_STORED
    if first == last:
        have = parts_of(lines, ways, place, first)
        parts += have
        lines[place + FILLED * ways] += min(PARTS - 1, parts) - have << first * PART_BITS
    if parts >= (last - first + 1) * PARTS:
        lines[place + ways] |= (2 << last) - (1 << first)
    if policy == THROUGH:
        lines[place + STORED * ways] = clock


def parts_of(lines: Any, ways: int, place: int, sector: int) -> int:
    """Return how many parts of a sector were stored; less than all."""
    filled = lines[place + FILLED * ways] if lines[place + ways] & IS_STORED else 0
    return filled >> sector * PART_BITS & (1 << PART_BITS) - 1


def dirty_state(marks: int) -> int:
    """Return 0 for a line that does not wait to be written, 2 for one stored in part, else 1."""
    dirty = marks >> DIRTY & SECTORS
    return int(dirty != 0) + int(dirty & ~marks != 0)


def write_back_excess(cache: Any, asker: Any, base: int, number_of_set: int) -> None:
    """Write the line of a set that was unused for longest, if too many wait or are partial."""
    lines, shape = cache[:2]
    ways = shape[WAYS]
    if shape[DIRTY_WAYS] >= ways and shape[PARTIAL_WAYS] >= ways:
        return
    dirty, partial, longest, oldest = 0, 0, EMPTY, EMPTY
    for way in range(base, base + ways):
        state = dirty_state(lines[way + ways])
        if state:
            dirty += 1
            if longest < 0 or lines[way + ways] < lines[longest + ways]:
                longest = way
        if state > 1:
            partial += 1
            if oldest < 0 or lines[way + ways] < lines[oldest + ways]:
                oldest = way
    if partial > ways_of_set(shape, number_of_set, shape[PARTIAL_WAYS], shape[PARTIAL_REST]):
        write_back(cache, asker, oldest)
        dirty -= 1
    if dirty > ways_of_set(shape, number_of_set, shape[DIRTY_WAYS], shape[DIRTY_REST]):
        write_back(cache, asker, longest)


def write_back(cache: Any, asker: Any, place: int) -> None:
    """Write the sectors of a line that are waiting; those stored in part are fetched first."""
    lines, shape, counts, _ = cache
    marks = lines[place + shape[WAYS]]
    waiting = marks >> DIRTY & SECTORS
    parts = waiting & ~marks
    emit_sectors(cache, asker, TO_FETCH, place, parts)
    emit_sectors(cache, asker, TO_WRITE, place, waiting)
    counts[asker[COUNTS] + FILLS] += popcount(parts)
    counts[asker[COUNTS] + WRITE_BACKS] += popcount(waiting)
    lines[place + shape[WAYS]] = (marks | parts) & ~(SECTORS << DIRTY)


def emit_sectors(cache: Any, asker: Any, what: int, place: int, mask: int) -> None:
    """Pass sectors of a line on."""
    lines, shape, _, passed = cache
    sector = 0
    while mask >> sector:
        if mask >> sector & 1:
            address = (lines[place] << shape[LINE]) + (sector << shape[SECTOR])
            emit(passed, address, asker[what], asker[CAUSE_OF])
        sector += 1


def emit(passed: Any, address: int, kind: int, issuer: int) -> None:
    """Pass something on."""
    head, addresses, kinds, causes = passed
    end = head[MANY]
    addresses[end] = address
    kinds[end] = kind
    causes[end] = issuer
    head[MANY] = end + 1


def popcount(mask: int) -> int:
    """Return how many bits are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


LRU, FIFO, RANDOM, RRIP = 0, 1, 2, 3
CAME, HIT, EVICTABLE = 2, 4, 1
FIRST, SECOND, LOW = 0xE20283A7, 0xD24C5CD1, 0x7FFFFFFF
"""Factors by which rounds of sets begin far apart, found by trial: at 41 strides from 1 to 8192
lines, in eight caches of 16 to 243 sets that are half full, 84 in 100 lines are kept at least.
And a mask for what the factors take.
"""


def age_of(policy: int, age: int, now: int, was_here: bool) -> int:
    """Return the age of a line that is used now; `was_here`: it did not come for this use."""
    if policy == FIFO and was_here:
        return age
    if policy == RRIP:
        return HIT if was_here else CAME
    return now


def pick_random(seed: int, now: int, ways: int) -> int:
    """Return the way of a full set that goes."""
    return hash32(now + hash32(seed)) % ways


def age_set(lines: Any, begin: int, end: int, more: int) -> None:
    """Let the lines of a full set, whose marks lie from `begin` to `end`, get so much older."""
    for at in range(begin, end):
        lines[at] -= more


def hash32(number: int) -> int:
    """Return a number of 32 bits that looks like chance, and is always the same: 0 for 0."""
    mixed = (number & LOW) * FIRST
    return (((mixed ^ mixed >> 24) & LOW) * SECOND) >> 31
