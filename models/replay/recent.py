"""What each unit has read lately: plain integers, so that `compiled.py` can compile the loop.

- `reads`: (unit, line, sectors), each (n,), in order.
- `turns`: for each unit how many reads it has made; one unit's reads never exceed 2 ** 62.
- `ring`: (line, sectors, link), `window` integers for each unit: read number t is at t % window,
  and its link is the read before it in the same bucket, 0 for none.
- `heads`: for each of BUCKETS buckets of each unit the last read in it, 0 for none.
- `again`: (n,), zeros at first; 1 for a read that its unit made among its last `window`.
"""

from typing import Any

BUCKETS = 256
GOLDEN, LOW, SHIFT = 0x9E3779B1, 0x7FFFFFFF, 24


def mark_recent(reads: Any, turns: Any, ring: Any, heads: Any, window: int, again: Any) -> None:
    """Look up and keep reads, one after another."""
    units, lines, sectors = reads
    kept_lines, kept_sectors, links = ring
    for number in range(len(units)):
        unit, line, wanted = units[number], lines[number], sectors[number]
        turn = turns[unit] + 1
        turns[unit] = turn
        bucket = unit * BUCKETS + bucket_of(line)
        earlier = heads[bucket]
        while earlier > 0 and turn - earlier <= window:
            place = unit * window + earlier % window
            if kept_lines[place] == line and kept_sectors[place] == wanted:
                again[number] = 1
                break
            earlier = links[place]
        place = unit * window + turn % window
        kept_lines[place], kept_sectors[place], links[place] = line, wanted, heads[bucket]
        heads[bucket] = turn


def bucket_of(line: int) -> int:
    """Return a line's bucket: multiples of the golden ratio lie far apart."""
    return ((line & LOW) * GOLDEN >> SHIFT) % BUCKETS
