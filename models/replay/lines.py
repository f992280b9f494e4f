"""The lines of a cache, and the loop that serves requests: plain integers, one after another.

All functions here take and give integers and flat sequences of them, so that `compiled.py` can
compile them as they stand, and small traces do without.

- `requests`: (address, bytes, act, policy, cause, set), each (n,). Act is PASS, READ, WRITE or
  ATOMIC, and policy what becomes of a store, HERE to BACK. Cause is the instruction of a warp: what
  it stores to one line, in requests that follow one another, is looked up together. Set is where
  the lines of the request's set begin.
- `lines`: STATE integers for each line, in units and sets: its number or EMPTY, masks of the
  sectors that are here and of those not yet written, and when it was last used (0: never).
- `shape`: (ways, log2 of a line's bytes, of a sector's, sectors fetched together, most dirty ways).
- `counts`: COLUMNS integers for each request, zeros at first.
- `passed`: HEAD integers, how many behind them are used and the time; then FIELDS for each thing
  that goes to the next stage: the request that caused it, its address, and FETCH, OWN (the request
  itself) or WRITE_BACK, which are of a sector.
"""

from typing import Any

PASS, READ, WRITE, ATOMIC = 0, 1, 2, 3
HERE, EVICT, THROUGH, BACK = 0, 1, 2, 3
FETCH, OWN, WRITE_BACK = 0, 1, 2
TAG, VALID, DIRTY, USED, STATE = 0, 1, 2, 3, 4
WAYS, LINE, SECTOR, PORTION, MOST_DIRTY = 0, 1, 2, 3, 4
READS, READ_HITS, WRITES, WRITE_HITS, FILLS, WRITE_BACKS = 0, 1, 2, 3, 4, 5
COLUMNS, FIELDS, HEAD, EMPTY = 6, 3, 2, -1


def serve(requests: Any, lines: Any, shape: Any, counts: Any, passed: Any) -> None:
    """Serve requests in order."""
    address, size, act, policy, cause, of_set = requests
    now, line, place, found = passed[1], EMPTY, 0, False
    for number in range(len(address)):
        if act[number] == PASS:
            emit(passed, number, address[number], OWN)
            continue
        now += 1
        wanted = address[number] >> shape[LINE]
        base = of_set[number]
        together = number > 0 and wanted == line and cause[number] == cause[number - 1]
        if not together or lines[place + TAG] != wanted:
            line, place = wanted, find(lines, shape, base, wanted)
        found = found if together else place >= 0
        if place < 0 and keeps(act[number], policy[number]):
            place = replace(lines, shape, counts, passed, number, base, wanted)
        if place >= 0:
            lines[place + USED] = now
        first = (address[number] - (wanted << shape[LINE])) >> shape[SECTOR]
        last = (address[number] - (wanted << shape[LINE]) + size[number] - 1) >> shape[SECTOR]
        mask = (2 << last) - (1 << first)
        if act[number] == READ:
            fetch(lines, shape, counts, passed, number, place, mask, READS)
        elif act[number] == ATOMIC and policy[number] == BACK:
            fetch(lines, shape, counts, passed, number, place, mask, WRITES)
            soil(lines, shape, counts, passed, number, base, place, mask)
        elif act[number] == ATOMIC:
            if place >= 0:
                lines[place + VALID] &= ~mask
            emit(passed, number, address[number], OWN)
        else:
            whole = size[number] == (last - first + 1) << shape[SECTOR]
            counts[number * COLUMNS + WRITES] += ones(mask)
            counts[number * COLUMNS + WRITE_HITS] += ones(mask) * found
            store(lines, shape, counts, passed, number, base, place, mask, policy[number], whole)
            if policy[number] != BACK:
                emit(passed, number, address[number], OWN)
        if place < 0:
            line, place = EMPTY, 0
    passed[1] = now


def keeps(act: int, policy: int) -> bool:
    """Whether a line is made room for."""
    return act == READ or policy == BACK or (policy == THROUGH and act == WRITE)


def find(lines: Any, shape: Any, base: int, line: int) -> int:
    """Return where a line's state is in the set that begins at `base`, or -1."""
    for place in range(base, base + shape[WAYS] * STATE, STATE):
        if lines[place + TAG] == line:
            return place
    return -1


def replace(
    lines: Any, shape: Any, counts: Any, passed: Any, number: int, base: int, line: int
) -> int:
    """Put a line in the place of the least recently used one of its set, and return where."""
    place = base
    for way in range(base, base + shape[WAYS] * STATE, STATE):
        if lines[way + USED] < lines[place + USED]:
            place = way
    if lines[place + DIRTY]:
        clean(lines, shape, counts, passed, number, place)
    lines[place + TAG] = line
    lines[place + VALID] = 0
    return place


def fetch(
    lines: Any,
    shape: Any,
    counts: Any,
    passed: Any,
    number: int,
    place: int,
    mask: int,
    counted: int,
) -> None:
    """Look for sectors in a line, and fetch those that are missing, each with its portion."""
    valid = lines[place + VALID]
    missing = mask & ~valid
    counts[number * COLUMNS + counted] += ones(mask)
    counts[number * COLUMNS + counted + 1] += ones(mask & valid)
    sector = 0
    while missing >> sector:
        if missing >> sector & ((1 << shape[PORTION]) - 1):
            for one in range(sector, sector + shape[PORTION]):
                if not valid >> one & 1:
                    address = (lines[place + TAG] << shape[LINE]) + (one << shape[SECTOR])
                    emit(passed, number, address, FETCH)
                    counts[number * COLUMNS + FILLS] += 1
                    lines[place + VALID] |= 1 << one
        sector += shape[PORTION]


def store(
    lines: Any,
    shape: Any,
    counts: Any,
    passed: Any,
    number: int,
    base: int,
    place: int,
    mask: int,
    policy: int,
    whole: bool,
) -> None:
    """Store to a line, if it is here; `whole` says that the sectors are filled."""
    if place < 0:
        return
    if policy == EVICT:
        lines[place + TAG] = EMPTY
        lines[place + USED] = 0
    elif policy == BACK:
        lines[place + VALID] |= mask
        soil(lines, shape, counts, passed, number, base, place, mask)
    elif whole:
        lines[place + VALID] |= mask


def soil(
    lines: Any,
    shape: Any,
    counts: Any,
    passed: Any,
    number: int,
    base: int,
    place: int,
    mask: int,
) -> None:
    """Mark sectors as not yet written; clean another line if too many of the set are waiting."""
    lines[place + DIRTY] |= mask
    if shape[MOST_DIRTY] >= shape[WAYS]:
        return
    many, longest = 0, place
    for way in range(base, base + shape[WAYS] * STATE, STATE):
        if lines[way + DIRTY]:
            many += 1
            if lines[way + USED] < lines[longest + USED]:
                longest = way
    if many > shape[MOST_DIRTY]:
        clean(lines, shape, counts, passed, number, longest)


def clean(lines: Any, shape: Any, counts: Any, passed: Any, number: int, place: int) -> None:
    """Write the sectors of a line that are waiting."""
    waiting, sector = lines[place + DIRTY], 0
    lines[place + DIRTY] = 0
    while waiting >> sector:
        if waiting >> sector & 1:
            address = (lines[place + TAG] << shape[LINE]) + (sector << shape[SECTOR])
            emit(passed, number, address, WRITE_BACK)
            counts[number * COLUMNS + WRITE_BACKS] += 1
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
