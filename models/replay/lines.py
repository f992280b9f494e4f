"""The lines of a cache, and the loop that serves requests: plain integers, one after another.

All functions here take and give integers and flat sequences of them, so that `compiled.py` can
compile them as they stand, and small traces do without.

- `requests`: (address, kind, cause, unit), each (n,). Cause is the instruction of a warp: what it
  stores to one line, in requests that follow one another, is looked up together.
- `kinds`: (bytes, act, policy, parts), each (kinds,). Act is PASS, READ, WRITE or ATOMIC, policy
  what becomes of a store, HERE to BACK, and parts how many of PARTS of a sector are wanted, or are
  stored so that they can be found.
- `lines`: STATE integers for each line of a set, each of them for all its lines side by side, so
  that looking for a line reads nothing but numbers of lines: its number or EMPTY, masks of the
  sectors that are here and of those not yet written, when it was last used and last stored to (0:
  never), the first by a clock of all units, the second by its own unit's, and PART_BITS for each
  sector that say how many of PARTS of it were stored. There is room for more sets than are in use,
  with anything in it. A line's place is that of its number.
- `sets`: for each set of each unit where its lines begin, -1 if nothing has been asked of it.
- `clocks`: for each unit how many cycles it has looked up tags, of a line in each bank at a time.
- `shape`: the numbers that are the same for all requests, in the order of their names below.
- `counts`: COLUMNS sequences of an integer for each request, zeros at first.
- `passed`: HEAD integers, how many behind them are used, the time, and how many of `lines` are in
  use; then FIELDS for each thing that goes to the next stage: the request that caused it, its
  address, and FETCH, OWN (the request itself) or WRITE_BACK, which are of a sector.
"""

from typing import Any

PASS, READ, WRITE, ATOMIC = 0, 1, 2, 3
HERE, EVICT, THROUGH, BACK = 0, 1, 2, 3
FETCH, OWN, WRITE_BACK = 0, 1, 2
VALID, DIRTY, USED, STORED, FILLED, STATE = 1, 2, 3, 4, 5, 6
WAYS, LINE, SECTOR, PORTION, NEAR, FAR, SETS = 0, 1, 2, 3, 4, 5, 6
DIRTY_WAYS, DIRTY_REST, PARTIAL_WAYS, PARTIAL_REST, WAVERS = 7, 8, 9, 10, 11
READS, READ_HITS, WRITES, WRITE_HITS, FILLS, WRITE_BACKS = 0, 1, 2, 3, 4, 5
COLUMNS, FIELDS, HEAD, EMPTY = 6, 3, 3, -1
BANKS, BANK_BITS = 4, 15
PARTS, PART_BITS = 32, 6
START = 8
"""Cycles that an instruction takes before its first line is looked up."""
FIRST, SECOND, LOW = 0xE20283A7, 0xD24C5CD1, 0x7FFFFFFF
"""Factors by which rounds of sets begin far apart, found by trial: at 41 strides from 1 to 8192
lines, in eight caches of 16 to 243 sets that are half full, 84 in 100 lines are kept at least.
And a mask for what the factors take.
"""


def serve(
    requests: Any,
    kinds: Any,
    lines: Any,
    sets: Any,
    clocks: Any,
    shape: Any,
    counts: Any,
    passed: Any,
) -> None:
    """Serve requests in order."""
    ways = shape[WAYS]
    addresses, kind, cause, units = requests
    size, acts, policies, wholes = kinds
    now, line, whose, place, base, number_of_set, found = passed[1], EMPTY, -1, 0, 0, 0, False
    owner, banks, clock = 0, 0, 0
    for number in range(len(addresses)):
        act, policy = acts[kind[number]], policies[kind[number]]
        if act == PASS:
            emit(passed, number, addresses[number], OWN)
            continue
        now += 1
        unit, wanted = units[number], addresses[number] >> shape[LINE]
        together = wanted == line and cause[number] == whose
        if cause[number] != whose:
            clocks[owner] += cycles(banks)
            owner, banks = unit, 0
        whose = cause[number]
        if not together:
            bank = BANK_BITS * bank_of(wanted)
            clock = 1 + clocks[unit] + (banks >> bank & (1 << BANK_BITS) - 1)
            banks += 1 << bank
            number_of_set = find_set(shape, wanted)
            base = open_set(lines, sets, shape, passed, unit * shape[SETS] + number_of_set)
        if not together or lines[place] != wanted:
            line, place = wanted, find(lines, shape, base, wanted)
        if not together:
            found = place >= 0 and is_settled(lines, shape, place, clock)
        if place < 0 and keeps(act, policy):
            place = replace(lines, shape, counts, passed, number, base, wanted, now)
        if place >= 0:
            lines[place + USED * ways] = now
        offset = addresses[number] - (wanted << shape[LINE])
        first, last = offset >> shape[SECTOR], (offset + size[kind[number]] - 1) >> shape[SECTOR]
        mask = (2 << last) - (1 << first)
        parts = wholes[kind[number]]
        if act == READ:
            valid = lines[place + VALID * ways]
            if policy == THROUGH and first == last and parts_of(lines, ways, place, first) >= parts:
                valid |= mask
            fetch(lines, shape, counts, passed, number, place, mask, READS, shape[PORTION], valid)
        elif act == ATOMIC and policy == BACK:
            portion = shape[PORTION] if wanted & 1 else 1
            valid = lines[place + VALID * ways]
            fetch(lines, shape, counts, passed, number, place, mask, WRITES, portion, valid)
            lines[place + DIRTY * ways] |= mask
            hurry(lines, shape, counts, passed, number, base, number_of_set)
        elif act == ATOMIC:
            if place >= 0:
                lines[place + VALID * ways] &= ~mask
                lines[place + FILLED * ways] = 0
            emit(passed, number, addresses[number], OWN)
        else:
            counts[WRITES][number] += ones(mask)
            counts[WRITE_HITS][number] += ones(mask) * found
            store(lines, ways, place, mask, policy, first, last, parts, clock)
            if policy == BACK:
                lines[place + DIRTY * ways] |= mask
                hurry(lines, shape, counts, passed, number, base, number_of_set)
            else:
                emit(passed, number, addresses[number], OWN)
        if place < 0:
            line, place = EMPTY, 0
    clocks[owner] += cycles(banks)
    passed[1] = now


def bank_of(line: int) -> int:
    """Return the bank of tags that a line belongs to: all bits of its number, two at a time."""
    for shift in (32, 16, 8, 4, 2):
        line ^= line >> shift
    return line & BANKS - 1


def cycles(banks: int) -> int:
    """Return how long an instruction takes: START cycles, and one for each line in the bank of tags
    that has most; none if it looks up none. `banks` holds how many are in each, BANK_BITS apart.
    """
    most, start = 0, START * (banks > 0)
    for _ in range(BANKS):
        most = max(most, banks & (1 << BANK_BITS) - 1)
        banks >>= BANK_BITS
    return most + start


def find_set(shape: Any, line: int) -> int:
    """Return the set of a line: neighbours lie side by side, and each round begins elsewhere."""
    turn = line // shape[SETS]
    return (line - turn * shape[SETS] + scatter(turn)) % shape[SETS]  # type: ignore[no-any-return]


def open_set(lines: Any, sets: Any, shape: Any, passed: Any, number: int) -> int:
    """Return where the lines of a set begin, taking the next free ones if it is new."""
    if sets[number] < 0:
        begin = sets[number] = passed[2]
        passed[2] += shape[WAYS] * STATE
        for place in range(begin, passed[2]):
            lines[place] = EMPTY if place < begin + shape[WAYS] else 0
    return sets[number]  # type: ignore[no-any-return]


def share_of(shape: Any, number: int, ways: int, rest: int) -> int:
    """Return a set's share of lines, `ways` each; `rest` more are spread evenly over all sets."""
    more = number * rest % shape[SETS] < rest
    return max(1, ways + int(more))


def keeps(act: int, policy: int) -> bool:
    """Whether a line is made room for."""
    return act == READ or policy == BACK or (policy == THROUGH and act == WRITE)


def find(lines: Any, shape: Any, base: int, line: int) -> int:
    """Return where a line's state is in the set that begins at `base`, or -1."""
    ways = shape[WAYS]
    for place in range(base, base + ways):
        if lines[place] == line:
            return place
    return -1


def is_settled(lines: Any, shape: Any, place: int, clock: int) -> bool:
    """Whether what was last stored to a line is still at hand, or has arrived behind this cache."""
    ways = shape[WAYS]
    stored = lines[place + STORED * ways]
    return bool(stored == 0 or clock - stored <= shape[NEAR] or clock - stored > shape[FAR])


def replace(
    lines: Any, shape: Any, counts: Any, passed: Any, number: int, base: int, line: int, now: int
) -> int:
    """Put a line in the place of the least recently used one of its set, and return where.

    A cache that wavers takes the next one every other time, at no regular times.
    """
    ways = shape[WAYS]
    place, second = base, EMPTY
    for way in range(base + 1, base + ways):
        if lines[way + USED * ways] < lines[place + USED * ways]:
            place, second = way, place
        elif second < 0 or lines[way + USED * ways] < lines[second + USED * ways]:
            second = way
    if shape[WAVERS] and second >= 0 and lines[place + USED * ways] and scatter(now) & 1:
        place = second
    if lines[place + DIRTY * ways]:
        clean(lines, shape, counts, passed, number, place)
    lines[place] = line
    lines[place + VALID * ways] = 0
    lines[place + STORED * ways] = 0
    lines[place + FILLED * ways] = 0
    return place


def scatter(number: int) -> int:
    """Return a number of 32 bits that looks like chance, and is always the same: 0 for 0."""
    mixed = (number & LOW) * FIRST
    return (((mixed ^ mixed >> 24) & LOW) * SECOND) >> 31


def fetch(
    lines: Any,
    shape: Any,
    counts: Any,
    passed: Any,
    number: int,
    place: int,
    mask: int,
    counted: int,
    portion: int,
    valid: int,
) -> None:
    """Look for sectors in a line, and fetch those that are missing, each with its portion."""
    ways = shape[WAYS]
    missing = mask & ~valid
    counts[counted][number] += ones(mask)
    counts[counted + 1][number] += ones(mask & valid)
    sector = 0
    while missing >> sector:
        if missing >> sector & ((1 << portion) - 1):
            wanted = ((1 << portion) - 1) << sector & ~valid
            emit_sectors(lines, shape, passed, number, place, wanted, FETCH)
            counts[FILLS][number] += ones(wanted)
            lines[place + VALID * ways] |= wanted
        sector += portion


def store(
    lines: Any,
    ways: int,
    place: int,
    mask: int,
    policy: int,
    first: int,
    last: int,
    parts: int,
    clock: int,
) -> None:
    """Store so many parts to sectors of a line, if it is here."""
    if place < 0:
        return
    if policy == EVICT:
        lines[place] = EMPTY
        lines[place + USED * ways] = 0
        return
    if first == last:
        have = parts_of(lines, ways, place, first)
        lines[place + FILLED * ways] += (min(PARTS, have + parts) - have) << first * PART_BITS
        parts = have + parts
    if parts >= (last - first + 1) * PARTS:
        lines[place + VALID * ways] |= mask
    if policy == THROUGH:
        lines[place + STORED * ways] = clock


def parts_of(lines: Any, ways: int, place: int, sector: int) -> int:
    """Return how many parts of a sector were stored."""
    return lines[place + FILLED * ways] >> sector * PART_BITS & (1 << PART_BITS) - 1  # type: ignore[no-any-return]


def hurry(
    lines: Any, shape: Any, counts: Any, passed: Any, number: int, base: int, number_of_set: int
) -> None:
    """Write the line of a set that was unused for longest, if too many wait or are partial."""
    ways = shape[WAYS]
    if shape[DIRTY_WAYS] >= ways and shape[PARTIAL_WAYS] >= ways:
        return
    dirty, partial, longest, oldest = 0, 0, EMPTY, EMPTY
    for way in range(base, base + ways):
        if lines[way + DIRTY * ways]:
            dirty += 1
            if longest < 0 or lines[way + USED * ways] < lines[longest + USED * ways]:
                longest = way
        if lines[way + DIRTY * ways] & ~lines[way + VALID * ways]:
            partial += 1
            if oldest < 0 or lines[way + USED * ways] < lines[oldest + USED * ways]:
                oldest = way
    if partial > share_of(shape, number_of_set, shape[PARTIAL_WAYS], shape[PARTIAL_REST]):
        clean(lines, shape, counts, passed, number, oldest)
        dirty -= 1
    if dirty > share_of(shape, number_of_set, shape[DIRTY_WAYS], shape[DIRTY_REST]):
        clean(lines, shape, counts, passed, number, longest)


def clean(lines: Any, shape: Any, counts: Any, passed: Any, number: int, place: int) -> None:
    """Write the sectors of a line that are waiting; those stored in part are fetched first."""
    ways = shape[WAYS]
    waiting = lines[place + DIRTY * ways]
    parts = waiting & ~lines[place + VALID * ways]
    emit_sectors(lines, shape, passed, number, place, parts, FETCH)
    emit_sectors(lines, shape, passed, number, place, waiting, WRITE_BACK)
    counts[FILLS][number] += ones(parts)
    counts[WRITE_BACKS][number] += ones(waiting)
    lines[place + VALID * ways] |= parts
    lines[place + DIRTY * ways] = 0


def emit_sectors(
    lines: Any, shape: Any, passed: Any, number: int, place: int, mask: int, what: int
) -> None:
    """Pass sectors of a line on."""
    sector = 0
    while mask >> sector:
        if mask >> sector & 1:
            address = (lines[place] << shape[LINE]) + (sector << shape[SECTOR])
            emit(passed, number, address, what)
        sector += 1


def emit(passed: Any, number: int, address: int, what: int) -> None:
    """Pass something on."""
    end = passed[0] + HEAD
    passed[end] = number
    passed[end + 1] = address
    passed[end + 2] = what
    passed[0] += FIELDS


def ones(mask: int) -> int:
    """Return how many bits are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
