"""L2 request coalescer: a window of recent reads per unit, for `jit/loop.py` to compile.

- `requests`: (address, kind, cause, unit, group), each (n,), in order. All loads of one cause from
  one line are one read.
- `is_load`: (kinds,), 1 for loads.
- `turns`: the number of reads per unit; it never exceeds 2 ** 62.
- `ring`: (line, sectors, link), `window` integers per unit. Read number t is at t % window; its
  link is the previous read in the same hash bucket, 0 for none.
- `heads`: the last read of each of BUCKETS buckets per unit, 0 for none.
- `state`: turns, ring and heads.
- `counts`: the number of joined requests per group.
- `passed`: (address, kind, cause), each (n,), of the requests that were not joined.
"""

from typing import Any

BUCKETS = 256
SECTOR_BITS = 5
WORTH = 1 << 13
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""
GOLDEN, LOW, SHIFT = 0x9E3779B1, 0x7FFFFFFF, 24
NONE = -1


def join(
    requests: Any, is_load: Any, state: Any, window: int, line_bits: int, counts: Any, passed: Any
) -> int:
    """Join reads with recent reads of the same unit; return the number of requests that go on."""
    addresses, kinds, causes, units, group = requests
    begin, many = 0, 0
    while begin < len(addresses):
        end, line, issuer, unit, sectors = begin, NONE, NONE, 0, 0
        while end < len(addresses):
            if is_load[kinds[end]]:
                request_line = addresses[end] >> line_bits
                if issuer != NONE and (request_line != line or causes[end] != issuer):
                    break
                line, issuer, unit = request_line, causes[end], units[end]
                sectors += 1 << ((addresses[end] - (line << line_bits)) >> SECTOR_BITS)
            end += 1
        again = issuer != NONE and look_up(state, window, unit, line, sectors)
        for number in range(begin, end):
            if again and is_load[kinds[number]]:
                counts[group[number]] += 1
            else:
                passed[0][many] = addresses[number]
                passed[1][many] = kinds[number]
                passed[2][many] = causes[number]
                many += 1
        begin = end
    return many


def look_up(state: Any, window: int, unit: int, line: int, sectors: int) -> bool:
    """Return whether the unit's last `window` reads hold this read, and record it as the latest."""
    clocks, (kept_lines, kept_sectors, links), heads = state
    clock = clocks[unit] + 1
    clocks[unit] = clock
    bucket = unit * BUCKETS + bucket_of(line)
    earlier, again = heads[bucket], False
    while earlier > 0 and clock - earlier <= window:
        place = unit * window + earlier % window
        if kept_lines[place] == line and kept_sectors[place] == sectors:
            again = True
            break
        earlier = links[place]
    place = unit * window + clock % window
    kept_lines[place], kept_sectors[place], links[place] = line, sectors, heads[bucket]
    heads[bucket] = clock
    return again


def bucket_of(line: int) -> int:
    """Return the hash bucket of a line: multiples of the golden ratio are spread far apart."""
    return ((line & LOW) * GOLDEN >> SHIFT) % BUCKETS
