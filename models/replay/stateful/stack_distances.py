"""Stack distances of requests in one pass: plain integers, so that `native` can compile the loop.

The distance of a request is how many other lines were used since the last use of its own. Each turn
of a stack is a bit, one at the last use of each line, and a Fenwick tree counts the bits of words
(Olken 1981), so that a request costs the logarithm of how many lines there are. When the turns are
used up they are counted from 0 on anew, twice as many if half of them are at last uses.

A sector is in a cache of C lines where its line has stayed since the sector came: where all
distances of the line since then are below C. `worst` is the largest of them.

- `requests`: (address, kind, unit, group, share), each (n,). A share has a histogram of its own.
- `kinds`: (bytes, act), each (kinds,): LOAD; FILL, a store of whole sectors; TOUCH, a store that
  uses a line and leaves its sectors as they are; LOSE, after which they are not here.
- `table`: (line, number): a hash table for each stack; a line's number is 1 or more, 0 is none.
- `lines`: of each number (turn, worst): the turn of its last use in its stack, and for each sector
  how far away it is, NEVER if it is not here.
- `stacks`: (begin, words, turn, live, slot, slots), each (stacks,): where in `tree` it begins, how
  many words it has and turns it took, how many lines it has, and where its table lies. A unit has
  a stack for each set.
- `tree`: (counts, bits, owner): of each word how many bits it and those that it stands for have,
  its bits, and for each of its BITS turns the number of the line.
- `head`: how many lines have numbers, and how much of `tree` and of `table` is in use; there is
  room in each for all that the requests may bring.
- `state`: table, lines, stacks, tree and head. `counted`: rooms, counts and histogram.
- `shape`: bits of a line's and of a sector's bytes, sectors of a line and of those that are fetched
  together, how many sets, and the largest distance that the histogram tells from larger ones.
- `rooms`: (sizes,), rising, in lines.
- `counts`: (groups, sizes + 2), flat: requests for sectors whose distance is below `rooms[0]`, ...,
  not below any; and of sectors that were never here.
- `histogram`: (shares, most + 2), flat: sectors never here, and those of distance 0, 1, ..., most
  or more.
"""

from typing import Any

from .cache_sim import find_set, hash32

PASS, LOAD, FILL, TOUCH, EVICT = 0, 1, 2, 3, 4
LINE, SECTOR, SECTORS, PORTION, SETS, MOST = 0, 1, 2, 3, 4, 5
NUMBERED, USED, FILLED = 0, 1, 2
BEGIN, WORDS, CLOCK, LIVE, SLOT, SLOTS = 0, 1, 2, 3, 4, 5
BITS, LOG = 32, 5
"""Turns of a word."""
SMALLEST, GROWS = 16, 8
"""Slots that a stack has at first, and how many for each of its lines it may take, with the smaller
tables that it had before; turns are as many."""
NEVER = 1 << 62
WORTH = 1 << 12
"""Requests from which on the compiled loop is worth its start of a tenth of a second."""


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
    """Let the sectors of a line be as far away as it is."""
    for sector in range(begin, end):
        worst[sector] = max(worst[sector], distance)


def fetch(worst: Any, begin: int, many: int, far: int) -> None:
    """Let sectors come with one that was far away, as far as they were no farther."""
    for sector in range(begin, begin + many):
        if worst[sector] <= far:
            worst[sector] = 0


def bucket(capacities: Any, far: int) -> int:
    """Return how many of the rooms are too small for a distance; one more for NEVER."""
    low, high = 0, len(capacities)
    while low < high:
        middle = (low + high) >> 1
        if capacities[middle] <= far:
            low = middle + 1
        else:
            high = middle
    return low + (far == NEVER)


def look_up(table: Any, stacks: Any, head: Any, line: int, stack: int) -> int:
    """Return the number of a line of a stack, the next one if it is new."""
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
    """Give a stack a table of twice the slots."""
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
    """Give a line the next turn; return how many others had one since its last, or NEVER."""
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
        later = bits[begin + old] >> (earlier & BITS - 1)
        bits[begin + old] -= 1 << (earlier & BITS - 1)
        distance = stacks[LIVE][stack] - count(counts, begin, old + 1) + popcount(later) - 1
        move(counts, begin, words, old + 1, word + 1)
    else:
        move(counts, begin, words, words + 1, word + 1)
    bits[begin + word] += 1 << (now & BITS - 1)
    timestamps[number] = stacks[CLOCK][stack] = now
    owner[(begin << LOG) + now] = number
    return distance


def count(counts: Any, begin: int, place: int) -> int:
    """Return how many bits the words up to a place have, the first of which is 1."""
    total = 0
    while place > 0:
        total += counts[begin + place - 1]
        place &= place - 1
    return total


def move(counts: Any, begin: int, words: int, old: int, new: int) -> None:
    """Move a bit from one place to a later one; there is none past all words."""
    while old != new and (old <= words or new <= words):
        if old < new:
            counts[begin + old - 1] -= 1
            old += old & (0 - old)
        else:
            counts[begin + new - 1] += 1
            new += new & (0 - new)


def recount(timestamps: Any, stacks: Any, tree: Any, head: Any, stack: int) -> None:
    """Count the turns of a stack from 1 on anew, in a larger tree if half of them are in use."""
    counts, bits, owner = tree
    begin, words, to = stacks[BEGIN][stack], stacks[WORDS][stack], 0
    if 2 * stacks[LIVE][stack] >= words << LOG:
        stacks[BEGIN][stack] = head[USED]
        stacks[WORDS][stack] = max(1, 2 * words)
        head[USED] += stacks[WORDS][stack]
    fresh, words = stacks[BEGIN][stack], stacks[WORDS][stack]
    for timestamp in range(1, stacks[CLOCK][stack] + 1):
        number = owner[(begin << LOG) + timestamp]
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
    """Return how many of BITS bits are set."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    word = word + (word >> 4) & 0x0F0F0F0F
    return word * 0x01010101 >> 24 & 0x3F
