"""Repeated rows in a cache: serve equal rows from precomputed pieces, one unit after another.

A piece is all that a distinct row reads from one line: a piece whose sectors all hit is counted in
one step. `jit/loop.py` compiles the loops, with those of `cache_sim.py`.
"""

from typing import NamedTuple

from ....jit.structure import I64, Column
from ....jit.value import prefetch
from ..histogram.counting import Pooled
from ..histogram.hash_table import SPREAD
from .cache_sim import (
    BANK_BITS,
    EMPTY,
    PASS,
    READ,
    START,
    Access,
    Cache,
    Kinds,
    Passed,
    Requests,
    Shape,
    allocate_set,
    bank_of,
    evict,
    lookup,
    lookup_cycles,
    read,
    simulate,
    span_of,
    update_age,
)
from .reorder_loops import Chosen

SPREAD_BITS = 24
"""Bits below those that select a slot: rows of a matrix begin a power of two of lines apart."""
NEXT = 4
"""Rows of a unit that are prefetched ahead: those of the processor's next cache line."""


class Rows(NamedTuple):
    """The chosen rows, sorted by unit, each (n,). `time` is that before the row's first request,
    `row` its place in issue order, `turn` the turn in which it is issued.
    """

    number: Column
    shift: Column
    unit: Column
    group: Column
    time: Column
    row: Column
    turn: Column


class Pieces(NamedTuple):
    """`begin` (distinct rows + 1,) is the first piece of each distinct row; a row that does not
    only read has none. Per piece: its line, its sectors, their number, each as often as it is read,
    the first request, the number of the row's requests up to the last of the piece, and the stride.
    """

    begin: Column
    line: Column
    mask: Column
    sectors: Column
    request: Column
    end: Column
    stride: Column


class Distinct(NamedTuple):
    """The distinct rows with their requests, and their pieces."""

    pool: Pooled
    pieces: Pieces


class Near(NamedTuple):
    """The line, the first way of its set and the slot of each of the next pieces, computed ahead so
    that memory accesses overlap.
    """

    line: I64
    base: I64
    slot: I64


class Recent(NamedTuple):
    """A direct-mapped table of a unit's recent lines, each (slots,), a power of two: the line, the
    first way of its set, and its place there.
    """

    line: I64
    base: I64
    place: I64


def arrange(
    first: Column,
    lookups: I64,
    chosen: Chosen,
    units: Column,
    turns: Column,
    now: int,
    starts: I64,
    rows: Rows,
) -> tuple[int, int, int]:
    """Sort rows by unit, stable within a unit, and give each its time.

    `lookups` is the number of looked-up requests per distinct row; `units` (n,) and `turns` (n,)
    are those of the rows, without turns if none are asked for; `starts` (units + 1,) are zeros.
    Returns the number of requests of all rows, the time after the last, and the OR of all shifts.
    """
    requests, bits = 0, 0
    for row in range(len(chosen.number)):
        starts[units[row] + 1] += 1
    for unit in range(1, len(starts)):
        starts[unit] += starts[unit - 1]
    for row in range(len(chosen.number)):
        number, shift, unit = chosen.number[row], chosen.shift[row], units[row]
        place = starts[unit]
        starts[unit] = place + 1
        prefetch(rows.number[min(place + NEXT, len(rows.number) - 1)])
        rows.number[place] = number
        rows.shift[place] = shift
        rows.unit[place] = unit
        rows.group[place] = chosen.group[row]
        rows.time[place] = now
        rows.row[place] = row
        if len(turns):
            rows.turn[place] = turns[row]
        now += lookups[number]
        requests += first[number + 1] - first[number]
        bits |= shift
    return requests, now, bits


def cut_pieces(distinct: Distinct, kinds: Kinds, shape: Shape) -> int:
    """Cut distinct rows into pieces, one per line; return the number of pieces.

    Requests of kinds with different strides never share a piece.
    """
    first, pieces = distinct.pool.first, distinct.pieces
    many, stride = 0, 0
    for row in range(len(first) - 1):
        pieces.begin[row] = many
        reads, line = True, EMPTY
        for one in range(first[row], first[row + 1]):
            kind, address = distinct.pool.kind[one], distinct.pool.address[one]
            request_line, moved = address >> shape.line_bits, distinct.pool.stride[kind]
            reads = reads and kinds.act[kind] == READ
            if request_line != line or moved != stride:
                line, stride = request_line, moved
                pieces.line[many], pieces.stride[many] = line, stride
                pieces.request[many] = one
                pieces.mask[many] = pieces.sectors[many] = 0
                many += 1
            span = span_of(shape, line, address, kinds.size[kind])
            pieces.mask[many - 1] |= span.mask
            pieces.sectors[many - 1] += span.last - span.first + 1
            pieces.end[many - 1] = one + 1 - first[row]
        if not reads:
            many = pieces.begin[row]
    pieces.begin[len(first) - 1] = many
    return many


def serve_rows(
    distinct: Distinct,
    rows: Rows,
    begin: int,
    capacity: int,
    requests: Requests,
    near: Near,
    recent: Recent,
    kinds: Kinds,
    cache: Cache,
) -> int:
    """Serve the requests of rows from row `begin` on; return the first row that was not served.

    The loop stops where `passed` has room for fewer than `capacity` requests, the most that any row
    passes on. A piece that hits in full is counted at once. A row that does not only read is
    expanded to `requests`, which are served one by one.
    """
    pieces, lines, shape, passed = distinct.pieces, cache.lines, cache.shape, cache.passed
    is_timed, row, ready, here = shape.near < shape.far, begin, begin, 0
    while row < len(rows.number) and len(passed.address) - passed.head.passed >= capacity:
        if row == ready:
            ready, here = look_ahead(pieces, rows, row, near, recent, cache), 0
        first, last = pieces.begin[rows.number[row]], pieces.begin[rows.number[row] + 1]
        hits, banks = 0, 0
        for piece in range(first, last):
            line, slot = near.line[here], near.slot[here]
            # The table only guesses the way: the tag decides, since the line may have been evicted.
            place = recent.place[slot]
            if lines.tag[place] != line:
                place = lookup(lines, near.base[here], shape.ways, line)
            if is_timed and last - first > 1:
                banks += 1 << BANK_BITS * bank_of(line)
            if place >= 0 and pieces.mask[piece] & ~lines.state[place] == 0:
                update_age(lines, shape, place, rows.time[row] + pieces.end[piece], True)
                hits += pieces.sectors[piece]
            else:
                base = near.base[here]
                place = read_piece(distinct, rows, kinds, cache, row, piece, line, base, place)
            recent.place[slot] = place
            here += 1
        if shape.merged_lines and first < last:
            cache.queues[2 * rows.unit[row]] += shape.merged_lines
        if hits:
            cache.counts.reads[rows.group[row]] += hits
            cache.counts.read_hits[rows.group[row]] += hits
        if last - first == 1:
            cache.clocks[rows.unit[row]] += START + 1
        elif last > first:
            cache.clocks[rows.unit[row]] += lookup_cycles(banks)
        else:
            many = write_down(distinct, rows, row, kinds, requests)
            expanded = Requests(
                requests.address[:many],
                requests.kind[:many],
                requests.cause[:many],
                requests.unit[:many],
                requests.group[:many],
                requests.time[:many],
                requests.turn[:many],
            )
            simulate(expanded, kinds, cache)
        row += 1
    return row


def read_piece(
    distinct: Distinct,
    rows: Rows,
    kinds: Kinds,
    cache: Cache,
    row: int,
    piece: int,
    line: int,
    base: int,
    place: int,
) -> int:
    """Read a piece that misses in part; return the place of its line afterwards.

    `base` is the first way of the line's set; `place` is the line's, or EMPTY.
    """
    begin, was_here = distinct.pool.first[rows.number[row]], place >= 0
    for one in range(distinct.pieces.request[piece], begin + distinct.pieces.end[piece]):
        kind, now = distinct.pool.kind[one], rows.time[row] + one + 1 - begin
        access = Access(
            kinds.fetch[kind], kinds.write_back[kind], rows.row[row], rows.group[row], now
        )
        if place < 0:
            place = evict(cache, access, base, line)
        update_age(cache.lines, cache.shape, place, now, was_here)
        address = distinct.pool.address[one] + rows.shift[row] * distinct.pool.stride[kind]
        span = span_of(cache.shape, line, address, kinds.size[kind])
        read(cache, access, place, span, kinds.policy[kind], kinds.parts[kind])
    return place


def look_ahead(
    pieces: Pieces, rows: Rows, row: int, near: Near, recent: Recent, cache: Cache
) -> int:
    """Compute the lines and the sets of the next pieces of a unit, and prefetch them; return the
    row after the last.
    """
    shape, unit, many, is_room = cache.shape, rows.unit[row], 0, True
    if row == 0 or rows.unit[row - 1] != unit:
        for slot in range(len(recent.line)):
            recent.line[slot] = EMPTY
    while is_room and row < len(rows.number) and rows.unit[row] == unit:
        first, last = pieces.begin[rows.number[row]], pieces.begin[rows.number[row] + 1]
        is_room = many + last - first <= len(near.line)
        if is_room:
            for piece in range(first, last):
                moved = rows.shift[row] * pieces.stride[piece] >> shape.line_bits
                line = pieces.line[piece] + moved
                slot = find_slot(recent, cache, unit, line)
                near.line[many], near.base[many], near.slot[many] = line, recent.base[slot], slot
                many += 1
            row += 1
    return row


def find_slot(recent: Recent, cache: Cache, unit: int, line: int) -> int:
    """Return the slot of a line among the recent ones; a line that has none takes it over."""
    slot = (line * SPREAD >> SPREAD_BITS) & len(recent.line) - 1
    if recent.line[slot] != line:
        base = allocate_set(cache, unit, line)
        prefetch(cache.lines.tag[base])
        prefetch(cache.lines.state[base])
        recent.line[slot], recent.base[slot], recent.place[slot] = line, base, base
    return slot


def write_down(distinct: Distinct, rows: Rows, row: int, kinds: Kinds, requests: Requests) -> int:
    """Expand the requests of a row; return their number."""
    first, now, many = distinct.pool.first, rows.time[row], 0
    for one in range(first[rows.number[row]], first[rows.number[row] + 1]):
        kind = distinct.pool.kind[one]
        now += kinds.act[kind] != PASS
        requests.address[many] = (
            distinct.pool.address[one] + rows.shift[row] * distinct.pool.stride[kind]
        )
        requests.kind[many] = kind
        requests.cause[many] = rows.row[row]
        requests.unit[many] = rows.unit[row]
        requests.group[many] = rows.group[row]
        requests.time[many] = now
        requests.turn[many] = rows.turn[row]
        many += 1
    return many


def put_back(passed: Passed, starts: I64, ordered: Passed) -> None:
    """Sort the passed requests by their rows, stably; `starts` (rows + 1,) are zeros."""
    for one in range(passed.head.passed):
        starts[passed.cause[one] + 1] += 1
    for row in range(1, len(starts)):
        starts[row] += starts[row - 1]
    for one in range(passed.head.passed):
        place = starts[passed.cause[one]]
        starts[passed.cause[one]] = place + 1
        ordered.address[place] = passed.address[one]
        ordered.kind[place] = passed.kind[one]
        ordered.cause[place] = passed.cause[one]
