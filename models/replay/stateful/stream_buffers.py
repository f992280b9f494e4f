"""Stream buffers, and the loop that asks them: plain integers, so that `native` can compile it.

- `requests`: (address, kind, cause, unit, group), each (n,), in order.
- `kinds`: (bytes, is_load), each (kinds,).
- `buffers`: (first, end, used), each an integer for each buffer of each unit, one unit's side by
  side: it holds blocks from `first` up to `end`; `used` is when it was used last, 0 for never.
- `turns`: for each unit how many reads it has made.
- `shape`: bits of a block's bytes, buffers of a unit, blocks that are fetched ahead, and bits of
  the blocks of a page, which no buffer goes beyond.
- `counts`: COLUMNS integers for each group: reads, hits, prefetches.
- `passed`: (address, kind, cause) of what goes on; a prefetch has its kind behind all others.
"""

from typing import Any

BLOCK, BUFFERS, DEPTH, PAGE = 0, 1, 2, 3
READS, HITS, PREFETCHES, COLUMNS = 0, 1, 2, 3
WORTH = 1 << 12
"""Requests from which on the compiled loop is worth its start of a tenth of a second."""


def serve(
    requests: Any, kinds: Any, buffers: Any, clocks: Any, shape: Any, counts: Any, passed: Any
) -> int:
    """Serve requests in order; return how many things go on."""
    addresses, kind, causes, units, group = requests
    sizes, is_load = kinds
    many = 0
    for number in range(len(addresses)):
        what, address, unit = kind[number], addresses[number], units[number]
        if not is_load[what] or not shape[BUFFERS]:
            counts[COLUMNS * group[number] + READS] += is_load[what]
            many = emit(passed, many, address, what, causes[number])
            continue
        first_block, last = address >> shape[BLOCK], address + sizes[what] - 1 >> shape[BLOCK]
        clocks[unit] += 1
        at = find(buffers, unit * shape[BUFFERS], (unit + 1) * shape[BUFFERS], first_block, last)
        counts[COLUMNS * group[number] + READS] += 1
        if buffers[0][at] <= first_block and last < buffers[1][at]:
            counts[COLUMNS * group[number] + HITS] += 1
            buffers[0][at] = last
        else:
            many = emit(passed, many, address, what, causes[number])
            if first_block + 1 != buffers[0][at] or not buffers[2][at]:
                buffers[0][at] = buffers[1][at] = last + 1
        buffers[2][at] = clocks[unit]
        until = min(last + 1 + shape[DEPTH], (last >> shape[PAGE]) + 1 << shape[PAGE])
        for block in range(buffers[1][at], until):
            counts[COLUMNS * group[number] + PREFETCHES] += 1
            ahead = block << shape[BLOCK]
            many = emit(passed, many, ahead, len(sizes) + what, causes[number])
        buffers[1][at] = max(until, buffers[1][at])
    return many


def find(buffers: Any, begin: int, end: int, first_block: int, last: int) -> int:
    """Return the buffer that has some blocks, or was made for the first of them; else the one that
    was unused for longest.
    """
    first, past, used = buffers
    oldest = begin
    for at in range(begin, end):
        if used[at] and first[at] <= first_block + 1 and last < past[at]:
            return at
        if used[at] < used[oldest]:
            oldest = at
    return oldest


def emit(passed: Any, many: int, address: int, kind: int, issuer: int) -> int:
    """Pass something on; return how many things have been."""
    passed[0][many], passed[1][many], passed[2][many] = address, kind, issuer
    return many + 1
