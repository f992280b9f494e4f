"""Rows that repeat, served by a cache unit after unit: plain integers and sequences, so that
`compiled.py` can compile the loops, around those of `cache_lines.py`.

- `pool`: (first, kind, address), as `count/pool.py` has them: the requests of distinct rows.
- `stride`: for each kind by how many bytes a request moves for each byte that its row does.
- `rows`: (number, shift, unit, group, time), each (n,): which distinct row each is, by how many
  bytes it lies elsewhere, and what its requests have in common; time is that before the first.
- `pieces`: of each distinct row, where its pieces begin, none of a row that does not only read; and
  of each piece, what a row asks of one line: the line, the sectors, how many these are, each as
  often as it is wanted, and the first request.
- `near`: (line, base) of pieces, found some ahead: a processor waits for many at once; and (line,
  set) of lines that were there lately, of a number that is a power of two, no line at first.

All else is as in `cache_lines.py`.
"""

from typing import Any

from ..count.counting import SPREAD
from .cache_lines import (
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
    READ_AHEAD,
    READ_HITS,
    READS,
    SECTOR,
    SETS,
    SIZE,
    WAYS,
    bank_of,
    cycles,
    find,
    find_set,
    open_set,
    read,
    replace,
    serve,
    touch,
)

SPREAD_BITS = 24
"""Bits below those that tell lines apart: rows of a matrix begin a power of two of lines apart."""


def arrange(
    first: Any, asked: Any, rows: Any, now: int, order: Any, starts: Any
) -> tuple[int, int, int]:
    """Set the time of each row, and put the rows in order of their units, those of one as they are.

    `asked` are, of each distinct row, the requests that are looked up; `starts` (units + 1,) are
    zeros. Returns how many requests all rows have, the time behind the last, and all bits of all
    shifts.
    """
    numbers, shifts, units, _, times = rows
    requests, bits = 0, 0
    for row in range(len(numbers)):
        number = numbers[row]
        times[row] = now
        now += asked[number]
        requests += first[number + 1] - first[number]
        bits |= shifts[row]
        starts[units[row] + 1] += 1
    for unit in range(1, len(starts)):
        starts[unit] += starts[unit - 1]
    for row in range(len(numbers)):
        place = starts[units[row]]
        order[place] = row
        starts[units[row]] = place + 1
    return requests, now, bits


def cut_pieces(pool: Any, stride: Any, kinds: Any, shape: Any, pieces: Any) -> int:
    """Find what distinct rows ask of each line; return how many such pieces there are.

    Requests that move unlike each other when their row does are never of one piece.
    """
    first, kind_of, address_of = pool
    begins, lines, masks, sectors, requests = pieces
    size, acts = kinds[SIZE], kinds[ACT]
    many, moved = 0, 0
    for row in range(len(first) - 1):
        begins[row], reads, line = many, True, EMPTY
        for one in range(first[row], first[row + 1]):
            what, wanted = kind_of[one], address_of[one] >> shape[LINE]
            reads = reads and acts[what] == READ
            if wanted != line or stride[what] != moved:
                lines[many], masks[many], sectors[many], requests[many] = wanted, 0, 0, one
                line, moved = wanted, stride[what]
                many += 1
            offset = address_of[one] - (line << shape[LINE])
            begin, end = offset >> shape[SECTOR], offset + size[what] - 1 >> shape[SECTOR]
            masks[many - 1] |= (2 << end) - (1 << begin)
            sectors[many - 1] += end - begin + 1
        if not reads:
            many = begins[row]
    begins[len(first) - 1] = many
    return many


def serve_rows(
    pool: Any,
    stride: Any,
    pieces: Any,
    rows: Any,
    order: Any,
    begin: int,
    room: int,
    made: Any,
    near: Any,
    kinds: Any,
    lines: Any,
    sets: Any,
    clocks: Any,
    shape: Any,
    inverse: float,
    counts: Any,
    passed: Any,
    bases: Any,
) -> int:
    """Serve the requests of rows in the order given, from its place `begin` on; return the place
    that is left, since `passed` has room for less than `room` things, the most of any row.

    A piece that is all here is counted at once; requests of a row that does not only read are
    written down in `made` and served one by one.
    """
    first = pool[0]
    begins, _, masks, sectors, requests = pieces
    numbers, _, units, groups, times = rows
    ways, is_timed, cache = shape[WAYS], shape[NEAR] < shape[FAR], (lines, shape, counts, passed)
    place, ready, here = begin, begin, 0
    while place < len(order) and len(passed[1]) - passed[0][MANY] >= room:
        if place == ready:
            ready, here = (
                look_ahead(
                    pool,
                    stride,
                    pieces,
                    rows,
                    order,
                    place,
                    near,
                    lines,
                    sets,
                    shape,
                    inverse,
                    passed,
                ),
                0,
            )
        row = order[place]
        number, unit = numbers[row], units[row]
        last, found, banks = begins[number + 1], 0, 0
        for piece in range(begins[number], last):
            line, base = near[0][here], near[1][here]
            at = find(lines, base, ways, line)
            behind = requests[piece + 1] if piece + 1 < last else first[number + 1]
            if is_timed:
                banks += 1 << BANK_BITS * bank_of(line)
            if at >= 0 and masks[piece] & ~lines[at + ways] == 0:
                now = times[row] + behind - first[number]
                touch(lines, shape, at, now, True)
                found += sectors[piece]
            else:
                read_piece(
                    pool, stride, rows, row, requests[piece], behind, kinds, cache, at, base, line
                )
            here += 1
        counts[COLUMNS * groups[row] + READS] += found
        counts[COLUMNS * groups[row] + READ_HITS] += found
        clocks[unit] += cycles(banks)
        if begins[number] == last:
            many = write_down(pool, stride, rows, row, kinds, made)
            addresses, kind, cause, unit_of, group, time = made
            told = (
                addresses[:many],
                kind[:many],
                cause[:many],
                unit_of[:many],
                group[:many],
                time[:many],
            )
            serve(told, kinds, lines, sets, clocks, shape, inverse, counts, passed, bases)
        place += 1
    return place


def read_piece(
    pool: Any,
    stride: Any,
    rows: Any,
    row: int,
    start: int,
    end: int,
    kinds: Any,
    cache: Any,
    at: int,
    base: int,
    line: int,
) -> None:
    """Read what a row asks of a line, of which something is missing; `at` is where it is, or -1."""
    first, kind_of, address_of = pool
    numbers, shifts, _, groups, times = rows
    size, _, policies, wholes, fetched, _, written = kinds
    lines, shape, _, _ = cache
    before, was_here = times[row] - first[numbers[row]], at >= 0
    for one in range(start, end):
        what, now = kind_of[one], before + one + 1
        asker = fetched[what], written[what], row, COLUMNS * groups[row]
        if at < 0:
            at = replace(cache, asker, base, line, now)
        touch(lines, shape, at, now, was_here)
        address = address_of[one] + shifts[row] * stride[what]
        read(cache, asker, at, address, size[what], policies[what], wholes[what])


def look_ahead(
    pool: Any,
    stride: Any,
    pieces: Any,
    rows: Any,
    order: Any,
    place: int,
    near: Any,
    lines: Any,
    sets: Any,
    shape: Any,
    inverse: float,
    passed: Any,
) -> int:
    """Find the lines and the sets of the pieces of some rows, and read them; return the place
    behind the last row.
    """
    begins, line_of, _, _, requests = pieces
    numbers, shifts, units, _, _ = rows
    many, read, is_room = 0, 0, True
    while place < len(order) and is_room:
        row = order[place]
        number, shift, unit = numbers[row], shifts[row], units[row]
        is_room = many + begins[number + 1] - begins[number] <= len(near[0])
        if is_room:
            for piece in range(begins[number], begins[number + 1]):
                moved = shift * stride[pool[1][requests[piece]]]
                line = line_of[piece] + (moved >> shape[LINE])
                slot = (line * SPREAD >> SPREAD_BITS) & len(near[2]) - 1
                if near[2][slot] != line:
                    near[2][slot] = line
                    near[3][slot] = find_set(shape[SETS], inverse, line)
                which = unit * shape[SETS] + near[3][slot]
                base = open_set(lines, sets, shape[WAYS], passed[0], which)
                read ^= lines[base] ^ lines[base + shape[WAYS]]
                near[0][many] = line
                near[1][many] = base
                many += 1
            place += 1
    passed[0][READ_AHEAD] = read
    return place


def write_down(pool: Any, stride: Any, rows: Any, row: int, kinds: Any, made: Any) -> int:
    """Write down the requests of a row; return how many they are."""
    first, kind_of, address_of = pool
    numbers, shifts, units, groups, times = rows
    addresses, kind, cause, unit, group, time = made
    number, now, many = numbers[row], times[row], 0
    for one in range(first[number], first[number + 1]):
        what = kind_of[one]
        now += kinds[ACT][what] != PASS
        addresses[many] = address_of[one] + shifts[row] * stride[what]
        kind[many] = what
        cause[many] = row
        unit[many] = units[row]
        group[many] = groups[row]
        time[many] = now
        many += 1
    return many


def put_back(passed: Any, rows: Any, made: Any) -> None:
    """Put what was passed on in the order of the rows that caused it; `rows` (n + 1,) are zeros."""
    head, addresses, kinds, causes = passed
    for one in range(head[MANY]):
        rows[causes[one] + 1] += 1
    for row in range(1, len(rows)):
        rows[row] += rows[row - 1]
    for one in range(head[MANY]):
        place = rows[causes[one]]
        rows[causes[one]] = place + 1
        made[0][place] = addresses[one]
        made[1][place] = kinds[one]
        made[2][place] = causes[one]
