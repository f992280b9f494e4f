"""Replacement: which line of a set makes room, by the cache's policy; plain integers, compiled.

A policy keeps one number for each line, `age`: where the line is chosen to go, that with the
lowest goes, the first of several. 0 is a line that was never used; it goes first under all of them.

- LRU: the time of the last use. FIFO: the time at which the line came.
- RANDOM: as LRU, but a full set gives up any line, by the time of the request and a seed.
- RRIP: static re-reference interval prediction with two bits (Jaleel, Theobald, Steely and Emer,
  ISCA 2010), hits first: 4 after a hit, 2 for a line that came, 1 for one that may go. Where no
  line may go, all get older together.
"""

from typing import Any

LRU, FIFO, RANDOM, RRIP = 0, 1, 2, 3
CAME, HIT, GOES = 2, 4, 1
FIRST, SECOND, LOW = 0xE20283A7, 0xD24C5CD1, 0x7FFFFFFF
"""Factors by which rounds of sets begin far apart, found by trial: at 41 strides from 1 to 8192
lines, in eight caches of 16 to 243 sets that are half full, 84 in 100 lines are kept at least.
And a mask for what the factors take.
"""


def age_of(policy: int, age: int, now: int, was_here: bool) -> int:
    """Return the age of a line that is used now; `was_here`: it did not come for this use."""
    if policy == FIFO and was_here:
        return age
    if policy == RRIP:
        return HIT if was_here else CAME
    return now


def pick_random(seed: int, now: int, ways: int) -> int:
    """Return the way of a full set that goes."""
    return scatter(now + scatter(seed)) % ways


def grow_old(lines: Any, begin: int, end: int, more: int) -> None:
    """Let the lines of a full set, whose marks lie from `begin` to `end`, get so much older."""
    for at in range(begin, end):
        lines[at] -= more


def scatter(number: int) -> int:
    """Return a number of 32 bits that looks like chance, and is always the same: 0 for 0."""
    mixed = (number & LOW) * FIRST
    return (((mixed ^ mixed >> 24) & LOW) * SECOND) >> 31
