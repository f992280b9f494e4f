"""Issue order of warps that take turns: sort keys, and a counting sort for `jit/loop.py` to
compile.

`Schedule.order` computes the same order with NumPy, for few rows. Rows that already come in order
of wave, interval and turn are sorted run by run, within the processor's cache (`order_runs`);
otherwise all rows are sorted at once (`sort`).

A sort key packs, from the highest bits down:

    | wave | interval | turn | seat | step (TURN_BITS) | SM |

- `rows`: (block, warp, interval, since), each (n,).
- `seated`: (wave, slot, sm), each (blocks,), and `ranks` (seats,): the turn of each seat.
- `wave_limit`: only blocks of waves before this one are ordered.
"""

from typing import Any

TURN_BITS, DIGIT = 2, 11
"""A turn has 1 << TURN_BITS instructions; a pass of the radix sort has DIGIT bits."""
FAR, NONE = 1 << 62, -1
SPREAD, MIXED = 0x9E3779B1, (1 << 30) - 1
CACHED_ORDERS, LONGEST = 16, 1 << 14
"""The number of cached orders, and the most rows of one."""
WORTH = 1 << 12
"""Rows from which on the compiled loops pay."""
ROW_BITS, STEP_BITS = 32, 32
"""Bits of a row's number below its sort key, and of a step."""


def measure(rows: Any, seated: Any, wave_limit: int) -> tuple[int, int, int, int, int, int, int]:
    """Return the number of rows to sort, and the minimum and maximum of their wave, interval and
    turn.
    """
    blocks, _, intervals, since = rows
    waves = seated[0]
    many, low, high, first, last, begin, end = 0, FAR, 0, FAR, 0, FAR, 0
    for row in range(len(blocks)):
        wave = waves[blocks[row]]
        if wave < wave_limit:
            many += 1
            low, high = min(low, wave), max(high, wave)
            first, last = min(first, intervals[row]), max(last, intervals[row])
            begin, end = min(begin, since[row]), max(end, since[row])
    return many, low, high, first, last, begin >> TURN_BITS, end >> TURN_BITS


def pack(
    rows: Any, seated: Any, ranks: Any, warps: int, wave_limit: int, low: Any, bits: Any, keys: Any
) -> None:
    """Set the sort key of each row, with the row's number in the low bits.

    `low` are the least wave, interval and turn; `bits` are the widths of these, then of the seat,
    of the step within the turn, of the SM and of the row's number.
    """
    blocks, of_block, intervals, since = rows
    waves, slots, sms = seated
    many = 0
    for row in range(len(blocks)):
        block = blocks[row]
        wave = waves[block]
        if wave < wave_limit:
            key = (wave - low[0]) << bits[1] | (intervals[row] - low[1])
            key = key << bits[2] | ((since[row] >> TURN_BITS) - low[2])
            key = key << bits[3] | ranks[slots[block] * warps + of_block[row]]
            key = key << bits[4] | (since[row] & (1 << TURN_BITS) - 1)
            keys[many] = (key << bits[5] | sms[block]) << bits[6] | row
            many += 1


def key_of(wave: Any, interval: Any, since: Any, rank: Any, sm: Any, widths: Any) -> Any:
    """Return the sort key of a row, or of arrays of rows.

    `widths` are the bits of the interval, of the turn, of the seat's place `rank`, and of the SM.
    """
    key = (wave << widths[0] | interval) << widths[1] | since >> TURN_BITS
    key = (key << widths[2] | rank) << TURN_BITS | since & (1 << TURN_BITS) - 1
    return key << widths[3] | sm


def parts_of(key: Any, widths: Any) -> tuple[Any, Any]:
    """Return the interval of a key or an array of keys, and the instructions since it began."""
    interval, quantum, seat, sm = widths
    prefix = key >> seat + TURN_BITS + sm
    since = (prefix & (1 << quantum) - 1) << TURN_BITS | key >> sm & (1 << TURN_BITS) - 1
    return prefix >> quantum & (1 << interval) - 1, since


def wave_of(key: Any, widths: Any) -> Any:
    """Return the wave of a key or an array of keys."""
    interval, quantum, seat, sm = widths
    return key >> interval + quantum + seat + TURN_BITS + sm


def place_of(key: Any, widths: Any, seating: Any) -> Any:
    """Return the place, among those of all waves, of the block of a key or an array of keys.

    `seating` is (slots, warps, slots of an SM, SMs): the slot and the warp of each turn.
    """
    _, _, seat, sm = widths
    slots, _, resident, sms = seating
    slot = slots[key >> sm + TURN_BITS & (1 << seat) - 1]
    return (wave_of(key, widths) * resident + slot) * sms + (key & (1 << sm) - 1)


def warp_of(key: Any, widths: Any, seating: Any) -> Any:
    """Return the warp within its block of a key or an array of keys."""
    _, _, seat, sm = widths
    return seating[1][key >> sm + TURN_BITS & (1 << seat) - 1]


def lengthen(key: Any, widths: Any, more: int) -> Any:
    """Return a key or an array of keys with `more` bits for the turn."""
    _, quantum, seat, sm = widths
    low = quantum + seat + TURN_BITS + sm
    return key >> low << low + more | key & (1 << low) - 1


def find_runs(keys: Any, low: int, tops: Any, begins: Any) -> int:
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
    keys: Any, tops: Any, begins: Any, ends: Any, low: int, order: Any, spare: Any, memo: Any
) -> None:
    """Set the order of all rows of runs, (n,). Runs are in order of their `tops`; rows of runs with
    equal tops are sorted by the bits below `low`, stably.

    These bits mostly repeat from turn to turn, so `memo` caches recent orders: (sizes, lows,
    places), and `starts`, (2 << low // 2,), which like `spare` (3, n) is scratch memory.
    """
    sizes, lows, places, starts = memo
    rows, one, other = spare[0], spare[1], spare[2]
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
        slot = (mixed & MIXED) * SPREAD >> 7 & len(sizes) - 1
        if sizes[slot] == many and is_same(lows[slot], one, many):
            for place in range(many):
                order[placed + place] = rows[places[slot, place]]
        else:
            if many <= lows.shape[1]:
                cache_order(sizes, lows, slot, one, many)
            # Two stable radix passes, of half the bits each. The place below the bits carries the
            # permutation.
            for place in range(many):
                other[place] = one[place] << ROW_BITS | place
            distribute(other[:many], one[:many], ROW_BITS, half, starts)
            distribute(one[:many], other[:many], ROW_BITS + half, low - half, starts)
            number(other[:many], ROW_BITS)
            for place in range(many):
                order[placed + place] = rows[other[place]]
            if many <= lows.shape[1]:
                for place in range(many):
                    places[slot, place] = other[place]
        placed += many


def is_same(first: Any, second: Any, many: int) -> bool:
    """Return whether the first `many` numbers of two arrays are equal."""
    differs = 0
    for place in range(many):
        differs |= first[place] ^ second[place]
    return differs == 0


def cache_order(sizes: Any, lows: Any, slot: int, numbers: Any, many: int) -> None:
    """Store numbers in a slot of the cache."""
    sizes[slot] = many
    for place in range(many):
        lows[slot, place] = numbers[place]


def sort(keys: Any, spare: Any, low: int, high: int, starts: Any) -> int:
    """Sort keys by their bits from `low` to `high`; return 1 if the result is in `spare`, else 0.

    `starts` (1 << DIGIT,) is scratch memory.
    """
    parity, passes = 0, (high - low + DIGIT - 1) // DIGIT
    digit = (high - low + passes - 1) // max(1, passes)
    while low < high:
        bits = min(digit, high - low)
        if parity:
            distribute(spare, keys, low, bits, starts)
        else:
            distribute(keys, spare, low, bits, starts)
        parity = 1 - parity
        low += bits
    return parity


def distribute(keys: Any, to: Any, low: int, bits: int, starts: Any) -> None:
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


def number(keys: Any, bits: int) -> None:
    """Reduce each key to the row's number in its low bits."""
    for one in range(len(keys)):
        keys[one] &= (1 << bits) - 1
