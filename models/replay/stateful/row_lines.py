"""Repeated rows in a cache: serve equal rows from precomputed pieces, one unit after another.

The loops work on plain integers and sequences, so that `jit/loop.py` can compile them, with those
of `cache_sim.py`. A piece is all that a distinct row reads from one line: a piece whose sectors all
hit is counted in one step.

- `pool`: (first, kind, address), as `Pool` of `histogram/histogram.py` has them: the requests of
  distinct rows.
- `stride`: per kind, the bytes that a request moves for each byte that its row moves.
- `chosen`: (number, shift, group), each (n,), in order: the distinct row of each row, its distance
  from that in bytes, and the sum for its counts.
- `distinct`: pool, stride and pieces.
- `rows`: (number, shift, unit, group, time, row), each (n,): the chosen rows, sorted by unit. Time
  is that before the row's first request, and row its place in issue order.
- `pieces`: per distinct row, the index of its first piece; a row that does not only read has none.
  Per piece: the line, the sectors, their number, each as often as it is read, the first request,
  the number of the row's requests up to the last of the piece, and the stride.
- `near`: (line, base, slot) of pieces, computed ahead so that memory accesses overlap; and, per
  unit, a direct-mapped table of recent lines, (line, base, place): the line, the first way of its
  set, and its place there. The number of slots is a power of two.

All other arguments are as in `cache_sim.py`.
"""

from typing import Any

from ....jit.value import prefetch
from ..histogram.counting import SPREAD
from .cache_sim import (
    ACT,
    BANK_BITS,
    COLUMNS,
    EMPTY,
    FAR,
    LINE,
    MANY,
    NEAR,
    PASS,
    READ,
    READ_HITS,
    READS,
    SECTOR,
    SETS,
    SIZE,
    START,
    WAYS,
    allocate_set,
    bank_of,
    evict,
    find,
    find_set,
    lookup_cycles,
    read,
    simulate,
    update_age,
)

SPREAD_BITS = 24
"""Bits below those that select a slot: rows of a matrix begin a power of two of lines apart."""
NEXT = 4
"""Rows of a unit that are prefetched ahead: those of the processor's next cache line."""


def arrange(
    first: Any, lookups: Any, selection: Any, units: Any, now: int, starts: Any, rows: Any
) -> tuple[int, int, int]:
    """Sort rows by unit, stable within a unit, and give each its time.

    `lookups` is the number of looked-up requests per distinct row; `units` (n,) are those of the
    rows; `starts` (units + 1,) are zeros. Returns the number of requests of all rows, the time
    after the last, and the OR of all shifts.
    """
    numbers, shifts, groups = selection
    requests, bits = 0, 0
    for row in range(len(numbers)):
        starts[units[row] + 1] += 1
    for unit in range(1, len(starts)):
        starts[unit] += starts[unit - 1]
    for row in range(len(numbers)):
        number, shift, unit = numbers[row], shifts[row], units[row]
        place = starts[unit]
        starts[unit] = place + 1
        prefetch(rows[0][min(place + NEXT, len(rows[0]) - 1)])
        rows[0][place] = number
        rows[1][place] = shift
        rows[2][place] = unit
        rows[3][place] = groups[row]
        rows[4][place] = now
        rows[5][place] = row
        now += lookups[number]
        requests += first[number + 1] - first[number]
        bits |= shift
    return requests, now, bits


def cut_pieces(pool: Any, stride: Any, kinds: Any, shape: Any, pieces: Any) -> int:
    """Cut distinct rows into pieces, one per line; return the number of pieces.

    Requests of kinds with different strides never share a piece.
    """
    first, kind_of, address_of = pool
    begins, lines, masks, sectors, requests, ends, moves = pieces
    size, acts = kinds[SIZE], kinds[ACT]
    many, moved = 0, 0
    for row in range(len(first) - 1):
        begins[row], reads, line = many, True, EMPTY
        for one in range(first[row], first[row + 1]):
            what, request_line = kind_of[one], address_of[one] >> shape[LINE]
            reads = reads and acts[what] == READ
            if request_line != line or stride[what] != moved:
                lines[many], masks[many], sectors[many], requests[many] = request_line, 0, 0, one
                line, moved = request_line, stride[what]
                moves[many] = moved
                many += 1
            offset = address_of[one] - (line << shape[LINE])
            begin, end = offset >> shape[SECTOR], offset + size[what] - 1 >> shape[SECTOR]
            masks[many - 1] |= (2 << end) - (1 << begin)
            sectors[many - 1] += end - begin + 1
            ends[many - 1] = one + 1 - first[row]
        if not reads:
            many = begins[row]
    begins[len(first) - 1] = many
    return many


def serve_rows(
    distinct: Any,
    rows: Any,
    begin: int,
    capacity: int,
    requests: Any,
    near: Any,
    kinds: Any,
    state: Any,
) -> int:
    """Serve the requests of rows from row `begin` on; return the first row that was not served.

    The loop stops where `passed` has room for fewer than `capacity` requests, the most that any row
    passes on. A piece that hits in full is counted at once. A row that does not only read is
    expanded to `requests`, which are served one by one.
    """
    pool, stride, pieces = distinct
    lines, _, clocks, shape, _, counts, passed, _ = state
    begins, _, masks, sectors, _, ends, _ = pieces
    numbers, _, units, groups, times, _ = rows
    ways, is_timed, cache = shape[WAYS], shape[NEAR] < shape[FAR], (lines, shape, counts, passed)
    place, ready, here = begin, begin, 0
    while place < len(numbers) and len(passed[1]) - passed[0][MANY] >= capacity:
        if place == ready:
            ready = look_ahead(pieces, rows, place, near, state)
            here = 0
        number, start = numbers[place], begins[numbers[place]]
        last, hits, banks = begins[number + 1], 0, 0
        for piece in range(start, last):
            line, slot = near[0][here], near[2][here]
            # The table only guesses the way: the tag decides, since the line may have been evicted.
            at = near[5][slot]
            if lines[at] != line:
                at = find(lines, near[1][here], ways, line)
            if is_timed and last - start > 1:
                banks += 1 << BANK_BITS * bank_of(line)
            if at >= 0 and masks[piece] & ~lines[at + ways] == 0:
                update_age(lines, shape, at, times[place] + ends[piece], True)
                hits += sectors[piece]
            else:
                wanted = line, near[1][here], at
                at = read_piece(distinct, rows, kinds, cache, place, piece, wanted)
            near[5][slot] = at
            here += 1
        if hits:
            counts[COLUMNS * groups[place] + READS] += hits
            counts[COLUMNS * groups[place] + READ_HITS] += hits
        if last - start == 1:
            clocks[units[place]] += START + 1
        elif last > start:
            clocks[units[place]] += lookup_cycles(banks)
        else:
            many = write_down(pool, stride, rows, place, kinds, requests)
            addresses, kind, issuers, unit_of, group, time = requests
            batch = (
                addresses[:many],
                kind[:many],
                issuers[:many],
                unit_of[:many],
                group[:many],
                time[:many],
            )
            simulate(batch, kinds, state)
        place += 1
    return place


def read_piece(
    distinct: Any, rows: Any, kinds: Any, cache: Any, place: int, piece: int, lookup: Any
) -> int:
    """Read a piece that misses in part; return the place of its line afterwards.

    `lookup` is the line, the first way of its set, and its place, or -1.
    """
    (first, kind_of, address_of), stride, (_, _, _, _, starts, ends, _) = distinct
    line, base, at = lookup
    numbers, shifts, _, groups, times, causes = rows
    size, _, policies, wholes, fetched, _, written = kinds
    lines, shape, _, _ = cache
    begin, was_here = first[numbers[place]], at >= 0
    for one in range(starts[piece], begin + ends[piece]):
        what, now = kind_of[one], times[place] + one + 1 - begin
        asker = fetched[what], written[what], causes[place], COLUMNS * groups[place]
        if at < 0:
            at = evict(cache, asker, base, line, now)
        update_age(lines, shape, at, now, was_here)
        address = address_of[one] + shifts[place] * stride[what]
        read(cache, asker, at, address, size[what], policies[what], wholes[what])
    return at  # type: ignore[no-any-return]


def look_ahead(pieces: Any, rows: Any, place: int, near: Any, state: Any) -> int:
    """Compute the lines and the sets of the next pieces of a unit, and prefetch them; return the
    row after the last.
    """
    begins, line_of, _, _, _, _, moves = pieces
    numbers, shifts, units, _, _, _ = rows
    lines, sets, _, shape, inverse, _, passed, _ = state
    near_lines, bases, slots, latest, sets_of, places = near
    many, unit, ways = 0, units[place], shape[WAYS]
    if place == 0 or units[place - 1] != unit:
        for slot in range(len(latest)):
            latest[slot] = EMPTY
    is_room = True
    while is_room and place < len(numbers) and units[place] == unit:
        number, shift = numbers[place], shifts[place]
        is_room = many + begins[number + 1] - begins[number] <= len(near_lines)
        if is_room:
            for piece in range(begins[number], begins[number + 1]):
                line = line_of[piece] + (shift * moves[piece] >> shape[LINE])
                slot = (line * SPREAD >> SPREAD_BITS) & len(latest) - 1
                if latest[slot] != line:
                    which = unit * shape[SETS] + find_set(shape[SETS], inverse, line)
                    base = allocate_set(lines, sets, ways, passed[0], which)
                    prefetch(lines[base])
                    prefetch(lines[base + ways])
                    latest[slot], sets_of[slot], places[slot] = line, base, base
                near_lines[many], bases[many], slots[many] = line, sets_of[slot], slot
                many += 1
            place += 1
    return place


def write_down(pool: Any, stride: Any, rows: Any, row: int, kinds: Any, requests: Any) -> int:
    """Expand the requests of a row; return their number."""
    first, kind_of, address_of = pool
    numbers, shifts, units, groups, times, causes = rows
    addresses, kind, issuers, unit, group, time = requests
    number, now, many = numbers[row], times[row], 0
    for one in range(first[number], first[number + 1]):
        what = kind_of[one]
        now += kinds[ACT][what] != PASS
        addresses[many] = address_of[one] + shifts[row] * stride[what]
        kind[many] = what
        issuers[many] = causes[row]
        unit[many] = units[row]
        group[many] = groups[row]
        time[many] = now
        many += 1
    return many


def put_back(passed: Any, rows: Any, outputs: Any) -> None:
    """Sort the passed requests back into the order of their rows; `rows` (n + 1,) are zeros."""
    head, addresses, kinds, causes = passed
    for one in range(head[MANY]):
        rows[causes[one] + 1] += 1
    for row in range(1, len(rows)):
        rows[row] += rows[row - 1]
    for one in range(head[MANY]):
        place = rows[causes[one]]
        rows[causes[one]] = place + 1
        outputs[0][place] = addresses[one]
        outputs[1][place] = kinds[one]
        outputs[2][place] = causes[one]
