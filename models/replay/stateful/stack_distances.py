"""LRU stack distances of requests in one pass, for `jit/loop.py` to compile.

The distance of a request is the number of other lines that were used since the last use of its
line. A stack has a bit per turn, which is set at the last use of each line; a Fenwick tree counts
the bits of words (Olken 1981). So a request costs the logarithm of the number of lines. When the
turns run out, they are renumbered from 0, in a tree of twice the size if half of them are last
uses.

A sector is in a cache of C lines if its line has stayed since the sector was fetched, that is, if
all distances of the line since then are below C. `worst` is the largest of these.

- `requests`: (address, kind, unit, group, share), each (n,). Each share has its own histogram.
- `kinds`: (bytes, act), each (kinds,): LOAD; FILL, a store of whole sectors; TOUCH, a store that
  uses a line and leaves its sectors unchanged; LOSE, which invalidates them.
- `table`: (line, number): a hash table per stack. Line numbers are 1 or more, 0 is none.
- `lines`: (turn, worst) per number: the turn of the last use in its stack, and the distance per
  sector, NEVER if it is not present.
- `stacks`: (begin, words, turn, live, slot, slots), each (stacks,): the first word in `tree`, the
  number of words, of turns taken and of lines, and the first slot and the number of slots in
  `table`. A unit has one stack per set.
- `tree`: (counts, bits, owner): per word the Fenwick count, its bits, and for each of its BITS
  turns the number of the line.
- `head`: the number of lines, and the used lengths of `tree` and of `table`. All have room for what
  the requests may add.
- `state`: table, lines, stacks, tree and head. `counted`: capacities, counts and histogram.
- `shape`: the bits of a line's and of a sector's bytes, the sectors per line and per fetch, the
  number of sets, and the largest distance with its own bin in the histogram.
- `capacities`: (sizes,), rising, in lines.
- `counts`: (groups, sizes + 2), flat: the requests for sectors by distance: below `capacities[0]`,
  ..., not below any; and for sectors that were never present.
- `histogram`: (shares, most + 2), flat: sectors never present, and those at distance 0, 1, ...,
  most or more.
"""

from typing import Any

from .cache_sim import find_set, hash32

PASS, LOAD, FILL, TOUCH, EVICT = 0, 1, 2, 3, 4
LINE, SECTOR, SECTORS, PORTION, SETS, MOST = 0, 1, 2, 3, 4, 5
NUMBERED, USED, FILLED = 0, 1, 2
BEGIN, WORDS, CLOCK, LIVE, SLOT, SLOTS = 0, 1, 2, 3, 4, 5
BITS, LOG = 32, 5
"""Turns per word."""
SMALLEST, GROWS = 16, 8
"""The initial slots of a stack, and the slots per line that its tables may take in all, outgrown
ones included; the same holds for turns.
"""
NEVER = 1 << 62
WORTH = 1 << 12
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""


def measure(
    requests: Any, kinds: Any, state: Any, shape: Any, inverse: float, counted: Any
) -> None:
    """Count each request, in order."""
    table, lines, stacks, tree, head = state
    capacities, counts, histogram = counted
    addresses, kind, units, group, shares = requests
    sizes, acts = kinds
    wide, latest, owner, number, share = shape[MOST] + 2, -1, -1, 0, 0
    for place in range(len(addresses)):
        what = kind[place]
        line, unit = addresses[place] >> shape[LINE], units[place]
        if line != latest or unit != owner:
            latest, owner, share, stack = line, unit, shares[place], unit
            if shape[SETS] > 1:
                share = find_set(shape[SETS], inverse, line)
                stack = unit * shape[SETS] + share
            number = look_up(table, stacks, head, line, stack)
            distance = access(lines[0], stacks, tree, head, number, stack)
            push_down(lines[1], number * shape[SECTORS], (number + 1) * shape[SECTORS], distance)
        offset = addresses[place] - (line << shape[LINE])
        begin = number * shape[SECTORS]
        first, last = offset >> shape[SECTOR], offset + sizes[what] - 1 >> shape[SECTOR]
        for sector in range(begin + first, begin + last + 1):
            if acts[what] == LOAD:
                far = lines[1][sector]
                counts[group[place] * (len(capacities) + 2) + bucket(capacities, far)] += 1
                at = 0 if far == NEVER else min(far, shape[MOST]) + 1
                histogram[share * wide + at] += 1
        for sector in range(begin + first, begin + last + 1):
            if acts[what] == LOAD and lines[1][sector] and shape[PORTION] > 1:
                fetch(lines[1], sector - sector % shape[PORTION], shape[PORTION], lines[1][sector])
            if acts[what] != TOUCH:
                lines[1][sector] = NEVER if acts[what] == EVICT else 0


def push_down(worst: Any, begin: int, end: int, distance: int) -> None:
    """Raise the worst distance of a line's sectors to `distance`."""
    for sector in range(begin, end):
        worst[sector] = max(worst[sector], distance)


def fetch(worst: Any, begin: int, many: int, far: int) -> None:
    """Mark sectors as present that a miss at distance `far` fetched, unless theirs is larger."""
    for sector in range(begin, begin + many):
        if worst[sector] <= far:
            worst[sector] = 0


def bucket(capacities: Any, far: int) -> int:
    """Return the number of capacities that are too small for a distance; one more for NEVER."""
    low, high = 0, len(capacities)
    while low < high:
        middle = (low + high) >> 1
        if capacities[middle] <= far:
            low = middle + 1
        else:
            high = middle
    return low + (far == NEVER)


def look_up(table: Any, stacks: Any, head: Any, line: int, stack: int) -> int:
    """Return the number of a line in a stack; append a new one."""
    if 2 * stacks[LIVE][stack] >= stacks[SLOTS][stack]:
        enlarge(table, stacks, head, stack)
    line_table, numbers = table
    begin, mask = stacks[SLOT][stack], stacks[SLOTS][stack] - 1
    slot = begin + (hash32(line) & mask)
    while numbers[slot] and line_table[slot] != line:
        slot = begin + (slot - begin + 1 & mask)
    if not numbers[slot]:
        head[NUMBERED] += 1
        line_table[slot], numbers[slot] = line, head[NUMBERED]
        stacks[LIVE][stack] += 1
    return numbers[slot]  # type: ignore[no-any-return]


def enlarge(table: Any, stacks: Any, head: Any, stack: int) -> None:
    """Give a stack a hash table of twice the slots."""
    line_table, numbers = table
    old, slots = stacks[SLOT][stack], stacks[SLOTS][stack]
    begin = stacks[SLOT][stack] = head[FILLED]
    stacks[SLOTS][stack] = max(SMALLEST, 2 * slots)
    head[FILLED] += stacks[SLOTS][stack]
    mask = stacks[SLOTS][stack] - 1
    for place in range(old, old + slots):
        if numbers[place]:
            slot = begin + (hash32(line_table[place]) & mask)
            while numbers[slot]:
                slot = begin + (slot - begin + 1 & mask)
            line_table[slot], numbers[slot] = line_table[place], numbers[place]


def access(timestamps: Any, stacks: Any, tree: Any, head: Any, number: int, stack: int) -> int:
    """Move a line to the top of its stack; return its stack distance, or NEVER."""
    # a line on top of its stack keeps its turn: repeated uses would only exhaust the turns
    if timestamps[number] and timestamps[number] == stacks[CLOCK][stack]:
        return 0
    if stacks[CLOCK][stack] + 1 >= stacks[WORDS][stack] << LOG:
        recount(timestamps, stacks, tree, head, stack)
    counts, bits, owner = tree
    begin, words, earlier = stacks[BEGIN][stack], stacks[WORDS][stack], timestamps[number]
    now = stacks[CLOCK][stack] + 1
    word, distance = now >> LOG, NEVER
    if earlier:
        old = earlier >> LOG
        # Other lines used since are the bits after the old turn: all lines, less the words up to
        # the old one, plus the later bits of that word, less the line's own bit.
        later = bits[begin + old] >> (earlier & BITS - 1)
        bits[begin + old] -= 1 << (earlier & BITS - 1)
        distance = stacks[LIVE][stack] - count(counts, begin, old + 1) + popcount(later) - 1
        move(counts, begin, words, old + 1, word + 1)
    else:
        # a new line has no old bit: it comes from past the end, where nothing is subtracted
        move(counts, begin, words, words + 1, word + 1)
    bits[begin + word] += 1 << (now & BITS - 1)
    timestamps[number] = stacks[CLOCK][stack] = now
    owner[(begin << LOG) + now] = number
    return distance


def count(counts: Any, begin: int, place: int) -> int:
    """Return the Fenwick prefix sum up to word `place`, counted from 1."""
    total = 0
    while place > 0:
        total += counts[begin + place - 1]
        place &= place - 1
    return total


def move(counts: Any, begin: int, words: int, old: int, new: int) -> None:
    """Move a bit to a later word, or past the end."""
    while old != new and (old <= words or new <= words):
        if old < new:
            counts[begin + old - 1] -= 1
            old += old & (0 - old)
        else:
            counts[begin + new - 1] += 1
            new += new & (0 - new)


def recount(timestamps: Any, stacks: Any, tree: Any, head: Any, stack: int) -> None:
    """Renumber the turns of a stack from 1 on, in a larger tree if half of them are in use."""
    counts, bits, owner = tree
    begin, words, to = stacks[BEGIN][stack], stacks[WORDS][stack], 0
    if 2 * stacks[LIVE][stack] >= words << LOG:
        stacks[BEGIN][stack] = head[USED]
        stacks[WORDS][stack] = max(1, 2 * words)
        head[USED] += stacks[WORDS][stack]
    fresh, words = stacks[BEGIN][stack], stacks[WORDS][stack]
    for timestamp in range(1, stacks[CLOCK][stack] + 1):
        number = owner[(begin << LOG) + timestamp]
        # only the last use of a line is kept; the order of the turns stays the same
        if timestamps[number] == timestamp:
            to += 1
            timestamps[number], owner[(fresh << LOG) + to] = to, number
    stacks[CLOCK][stack] = to
    for word in range(words):
        place, last = word + 1, (word << LOG) + BITS - 1
        width = place & (0 - place)  # a place counts so many words up to its own
        counts[fresh + word] = min(last, to) - min(max(0, last - (width << LOG)), to)
        bits[fresh + word] = (1 << max(0, min(BITS, to + 1 - (word << LOG)))) - 1 - (word == 0)


def popcount(word: int) -> int:
    """Return the number of set bits among BITS."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    word = word + (word >> 4) & 0x0F0F0F0F
    return word * 0x01010101 >> 24 & 0x3F
