"""Stream buffers of a prefetcher, and the loop that serves requests, for `jit/loop.py` to compile.

- `requests`: (address, kind, cause, unit, group), each (n,), in order.
- `kinds`: (bytes, is_load), each (kinds,).
- `buffers`: (first, end, used), an integer per buffer, those of a unit contiguous. A buffer holds
  the blocks from `first` up to `end`; `used` is the time of its last use, 0 for never.
- `clocks`: the number of reads per unit.
- `shape`: the bits of a block's bytes, the buffers per unit, the blocks that are fetched ahead, and
  the bits of a page's blocks: a stream does not leave its page.
- `counts`: COLUMNS integers per group: reads, hits, prefetches.
- `passed`: (address, kind, cause) of outgoing requests; the kind of a prefetch comes after all
  others.
"""

from typing import Any

BLOCK, BUFFERS, DEPTH, PAGE = 0, 1, 2, 3
READS, HITS, PREFETCHES, COLUMNS = 0, 1, 2, 3
WORTH = 1 << 12
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""


def serve(
    requests: Any, kinds: Any, buffers: Any, clocks: Any, shape: Any, counts: Any, passed: Any
) -> int:
    """Serve requests in order; return the number of outgoing requests."""
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
    """Return the buffer that holds some of the blocks, or whose stream begins with the first; else
    the least recently used buffer.
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
    """Append an outgoing request; return their number."""
    passed[0][many], passed[1][many], passed[2][many] = address, kind, issuer
    return many + 1
