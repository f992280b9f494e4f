"""LRU stack distances of requests in one pass, for `jit/loop.py` to compile.

The distance of a request is the number of other lines that were used since the last use of its
line. A stack has a bit per turn, which is set at the last use of each line; a Fenwick tree counts
the bits of words (Olken 1981). So a request costs the logarithm of the number of lines. When the
turns run out, they are renumbered from 0, in a tree of twice the size if half of them are last
uses.

A sector is in a cache of C lines if its line has stayed since the sector was fetched, that is, if
all distances of the line since then are below C. `worst` is the largest of these.
"""

from typing import NamedTuple

from ....jit.structure import I64, Struct
from ..histogram.hash_table import Table, find
from .cache_sim import find_set, popcount

PASS, LOAD, FILL, TOUCH, EVICT = 0, 1, 2, 3, 4
"""What a request does. FILL: store whole sectors; TOUCH: store to a line whose sectors stay as they
are; EVICT: invalidate them; PASS requests are none.
"""
BITS, LOG = 32, 5
"""Turns per word of a stack."""
SMALLEST, GROWS = 16, 8
"""The turns that stacks may take in all, outgrown ones included: per stack, and per line."""
NEVER = 1 << 62
WORTH = 1 << 12
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""


class Requests(NamedTuple):
    """Requests in order, each (n,). Each share has its own histogram."""

    address: I64
    kind: I64
    unit: I64
    group: I64
    share: I64


class Kinds(NamedTuple):
    """The bytes and the act of each kind."""

    size: I64
    act: I64


class Lines(NamedTuple):
    """The lines by number: the turn of the last use in its stack, 0 for none; and the distance per
    sector, NEVER if it is not present.
    """

    table: Table
    turn: I64
    worst: I64


class Stacks(NamedTuple):
    """Per stack, (stacks,): its first word in the tree, the number of words, of turns taken, and of
    lines. A unit has one stack per set.
    """

    begin: I64
    words: I64
    turn: I64
    lines: I64


class Head(Struct):
    """The words of the tree in use."""

    words: int


class Tree(NamedTuple):
    """Per word the Fenwick sum, its bits, and the number of the line of each of its turns."""

    head: Head
    sums: I64
    bits: I64
    owner: I64


class Shape(NamedTuple):
    """The bits of a line's and of a sector's bytes, the sectors per line and per fetch, the number
    of sets and one divided by that, and the largest distance with its own bin in the histogram.
    """

    line_bits: int
    sector_bits: int
    sectors: int
    portion: int
    sets: int
    inverse: float
    most: int


class Counted(NamedTuple):
    """`capacities` (sizes,) are in lines, rising. `counts` (groups, sizes + 2) are the requests for
    sectors by distance: below `capacities[0]`, ..., not below any; and for sectors that were never
    present. `histogram` (shares, most + 2) are the sectors never present, and those at distance 0,
    1, ..., most or more.
    """

    capacities: I64
    counts: I64
    histogram: I64


def measure(
    requests: Requests,
    kinds: Kinds,
    lines: Lines,
    stacks: Stacks,
    tree: Tree,
    shape: Shape,
    counted: Counted,
) -> None:
    """Count each request, in order. All arrays have room for what the requests may add."""
    worst, latest, unit, number, share = lines.worst, -1, -1, 0, 0
    for at in range(len(requests.address)):
        kind, address = requests.kind[at], requests.address[at]
        line = address >> shape.line_bits
        if line != latest or requests.unit[at] != unit:
            latest, unit, share = line, requests.unit[at], requests.share[at]
            stack = unit
            if shape.sets > 1:
                share = find_set(shape.sets, shape.inverse, line)
                stack = unit * shape.sets + share
            number = find(lines.table, line, stack)
            stacks.lines[stack] += lines.turn[number] == 0
            distance = access(lines.turn, stacks, tree, number, stack)
            push_down(worst, number * shape.sectors, (number + 1) * shape.sectors, distance)
        offset, begin = address - (line << shape.line_bits), number * shape.sectors
        first = begin + (offset >> shape.sector_bits)
        past = begin + (offset + kinds.size[kind] - 1 >> shape.sector_bits) + 1
        if kinds.act[kind] == LOAD:
            # count all sectors before any is marked as present: they are fetched together
            for sector in range(first, past):
                far = worst[sector]
                counted.counts[requests.group[at], bucket(counted.capacities, far)] += 1
                counted.histogram[share, 0 if far == NEVER else min(far, shape.most) + 1] += 1
        for sector in range(first, past):
            if kinds.act[kind] == LOAD and worst[sector] and shape.portion > 1:
                fetch(worst, sector - sector % shape.portion, shape.portion, worst[sector])
            if kinds.act[kind] != TOUCH:
                worst[sector] = NEVER if kinds.act[kind] == EVICT else 0


def push_down(worst: I64, begin: int, end: int, distance: int) -> None:
    """Raise the worst distance of a line's sectors to `distance`."""
    for sector in range(begin, end):
        worst[sector] = max(worst[sector], distance)


def fetch(worst: I64, begin: int, many: int, far: int) -> None:
    """Mark sectors as present that a miss at distance `far` fetched, unless theirs is larger."""
    for sector in range(begin, begin + many):
        if worst[sector] <= far:
            worst[sector] = 0


def bucket(capacities: I64, far: int) -> int:
    """Return the number of capacities that are too small for a distance; one more for NEVER."""
    low, high = 0, len(capacities)
    while low < high:
        middle = (low + high) >> 1
        if capacities[middle] <= far:
            low = middle + 1
        else:
            high = middle
    return low + (far == NEVER)


def access(turns: I64, stacks: Stacks, tree: Tree, number: int, stack: int) -> int:
    """Move a line to the top of its stack; return its stack distance, or NEVER."""
    # a line on top of its stack keeps its turn: repeated uses would only exhaust the turns
    if turns[number] and turns[number] == stacks.turn[stack]:
        return 0
    if stacks.turn[stack] + 1 >= stacks.words[stack] << LOG:
        recount(turns, stacks, tree, stack)
    begin, words, earlier = stacks.begin[stack], stacks.words[stack], turns[number]
    now = stacks.turn[stack] + 1
    word, distance = now >> LOG, NEVER
    if earlier:
        old = earlier >> LOG
        # Other lines used since are the bits after the old turn: all lines, less the words up to
        # the old one, plus the later bits of that word, less the line's own bit.
        later = tree.bits[begin + old] >> (earlier & BITS - 1)
        tree.bits[begin + old] -= 1 << (earlier & BITS - 1)
        lines = stacks.lines[stack]
        distance = lines - count(tree.sums, begin, old + 1) + popcount(later) - 1
        move(tree.sums, begin, words, old + 1, word + 1)
    else:
        # a new line has no old bit: it comes from past the end, where nothing is subtracted
        move(tree.sums, begin, words, words + 1, word + 1)
    tree.bits[begin + word] += 1 << (now & BITS - 1)
    turns[number] = stacks.turn[stack] = now
    tree.owner[(begin << LOG) + now] = number
    return distance


def count(counts: I64, begin: int, place: int) -> int:
    """Return the Fenwick prefix sum up to word `place`, counted from 1."""
    total = 0
    while place > 0:
        total += counts[begin + place - 1]
        place &= place - 1
    return total


def move(counts: I64, begin: int, words: int, old: int, new: int) -> None:
    """Move a bit to a later word, or past the end."""
    while old != new and (old <= words or new <= words):
        if old < new:
            counts[begin + old - 1] -= 1
            old += old & (0 - old)
        else:
            counts[begin + new - 1] += 1
            new += new & (0 - new)


def recount(turns: I64, stacks: Stacks, tree: Tree, stack: int) -> None:
    """Renumber the turns of a stack from 1 on, in a larger tree if half of them are in use."""
    begin, words, to = stacks.begin[stack], stacks.words[stack], 0
    if 2 * stacks.lines[stack] >= words << LOG:
        stacks.begin[stack] = tree.head.words
        stacks.words[stack] = max(1, 2 * words)
        tree.head.words += stacks.words[stack]
    fresh, words = stacks.begin[stack], stacks.words[stack]
    for turn in range(1, stacks.turn[stack] + 1):
        number = tree.owner[(begin << LOG) + turn]
        # only the last use of a line is kept; the order of the turns stays the same
        if turns[number] == turn:
            to += 1
            turns[number], tree.owner[(fresh << LOG) + to] = to, number
    stacks.turn[stack] = to
    for word in range(words):
        place, last = word + 1, (word << LOG) + BITS - 1
        width = place & (0 - place)  # a place counts so many words up to its own
        tree.sums[fresh + word] = min(last, to) - min(max(0, last - (width << LOG)), to)
        ones = (1 << max(0, min(BITS, to + 1 - (word << LOG)))) - 1
        tree.bits[fresh + word] = ones - (word == 0)
