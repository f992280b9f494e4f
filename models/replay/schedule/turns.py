"""Sort keys of rows of warps that take turns, and their order; for `jit/loop.py` to compile.

Rows mostly come in runs of one wave, interval and turn: these are sorted run by run, within the
processor's cache. A sort key packs, from the highest bits down:

    | wave | interval | turn | seat | step (TURN_BITS) | SM |
"""

from typing import Any, NamedTuple

from ....jit.structure import Column

TURN_BITS = 2
"""A turn has 1 << TURN_BITS instructions."""
NONE = -1
SPREAD, MIXED = 0x9E3779B1, (1 << 30) - 1
CACHED_ORDERS, LONGEST = 16, 1 << 14
"""The number of cached orders, and the most rows of one."""
WORTH = 1 << 12
"""Rows from which on the compiled loops pay."""
MOST_BITS = 63
"""Bits of a sort key."""
ROW_BITS, STEP_BITS = 32, 32
"""Bits of a row's number below its sort key, and of a step."""


class Widths(NamedTuple):
    """The bits of a key's fields below the wave, but for the step."""

    interval: int
    turn: int
    seat: int
    sm: int


class Seating(NamedTuple):
    """The slot and the warp of each seat, (seats,), the slots of an SM, and the SMs."""

    slot: Column
    warp: Column
    resident: int
    sms: int


class Memo(NamedTuple):
    """A cache of the orders of recent turns: per slot the number of their rows, the low bits of
    these, and the places. `starts` is scratch memory of the radix sort.
    """

    size: Column
    low: Column
    place: Column
    starts: Column


def key_of(wave: Any, interval: Any, since: Any, rank: Any, sm: Any, widths: Widths) -> Any:
    """Return the sort key of a row, or of arrays of rows."""
    key = (wave << widths.interval | interval) << widths.turn | since >> TURN_BITS
    key = (key << widths.seat | rank) << TURN_BITS | since & (1 << TURN_BITS) - 1
    return key << widths.sm | sm


def wave_of(key: Any, widths: Widths) -> Any:
    """Return the wave of a key or an array of keys."""
    return key >> widths.interval + widths.turn + widths.seat + TURN_BITS + widths.sm


def place_of(key: Any, widths: Widths, seating: Seating) -> Any:
    """Return the place, among those of all waves, of the block of a key or an array of keys."""
    slot = seating.slot[key >> widths.sm + TURN_BITS & (1 << widths.seat) - 1]
    place = (wave_of(key, widths) * seating.resident + slot) * seating.sms
    return place + (key & (1 << widths.sm) - 1)


def warp_of(key: Any, widths: Widths, seating: Seating) -> Any:
    """Return the warp within its block of a key or an array of keys."""
    return seating.warp[key >> widths.sm + TURN_BITS & (1 << widths.seat) - 1]


def lengthen(key: Any, widths: Widths, more: int) -> Any:
    """Return a key or an array of keys with `more` bits for the turn."""
    low = widths.turn + widths.seat + TURN_BITS + widths.sm
    return key >> low << low + more | key & (1 << low) - 1


def find_runs(keys: Column, low: int, tops: Column, begins: Column) -> int:
    """Find the runs of rows with keys that agree from bit `low` on: these bits, and the first row.

    Returns the number of runs, or one more than there is room for.
    """
    many, last = 0, NONE
    for row in range(len(keys)):
        top = keys[row] >> low
        if top != last:
            if many == len(tops):
                return many + 1
            tops[many], begins[many], last = top, row, top
            many += 1
    return many


def order_runs(
    keys: Column,
    tops: Column,
    begins: Column,
    ends: Column,
    low: int,
    order: Column,
    spare: Any,
    memo: Memo,
) -> None:
    """Set the order of all rows of runs, (n,). Runs are in order of their `tops`; rows of runs with
    equal tops are sorted by the bits below `low`, stably.

    `spare` (3, n) is scratch memory.
    """
    rows, one, other = spare
    run, placed, half = 0, 0, low // 2
    while run < len(tops):
        first, many = run, 0
        while run < len(tops) and tops[run] == tops[first]:
            for row in range(begins[run], ends[run]):
                rows[many] = row
                one[many] = keys[row] & (1 << low) - 1
                many += 1
            run += 1
        # A regular kernel repeats the same low bits turn after turn: look the order up before
        # sorting. The slot is a hash of the first and last bits and the length; a hit is verified.
        mixed = (one[0] * 3 + one[many - 1]) * 31 + many
        slot = (mixed & MIXED) * SPREAD >> 7 & len(memo.size) - 1
        if memo.size[slot] == many and is_same(memo.low, slot, one, many):
            for place in range(many):
                order[placed + place] = rows[memo.place[slot, place]]
        else:
            # Two stable radix passes, of half the bits each. The place below the bits carries the
            # permutation.
            for place in range(many):
                other[place] = one[place] << ROW_BITS | place
            distribute(other[:many], one[:many], ROW_BITS, half, memo.starts)
            distribute(one[:many], other[:many], ROW_BITS + half, low - half, memo.starts)
            for place in range(many):
                other[place] &= (1 << ROW_BITS) - 1
                order[placed + place] = rows[other[place]]
            if many <= memo.low.shape[1]:
                memo.size[slot] = many
                for place in range(many):
                    memo.low[slot, place] = keys[rows[place]] & (1 << low) - 1
                    memo.place[slot, place] = other[place]
        placed += many


def is_same(lows: Column, slot: int, numbers: Column, many: int) -> bool:
    """Return whether the first `many` numbers are those of a slot."""
    differs = 0
    for place in range(many):
        differs |= lows[slot, place] ^ numbers[place]
    return differs == 0


def distribute(keys: Column, to: Column, low: int, bits: int, starts: Column) -> None:
    """Distribute keys by one digit, stably: one pass of the radix sort."""
    mask, place = (1 << bits) - 1, 0
    for digit in range(mask + 1):
        starts[digit] = 0
    for one in range(len(keys)):
        starts[keys[one] >> low & mask] += 1
    for digit in range(mask + 1):
        count = starts[digit]
        starts[digit] = place
        place += count
    for one in range(len(keys)):
        digit = keys[one] >> low & mask
        to[starts[digit]] = keys[one]
        starts[digit] += 1
