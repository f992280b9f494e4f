"""Stream buffers of a prefetcher: the loop that serves requests, for `jit/loop.py` to compile."""

from typing import NamedTuple

from ....jit.structure import I64
from .lrc_window import Passed, Requests

WORTH = 1 << 12
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""


class Kinds(NamedTuple):
    """Bytes per kind, and whether it is a load."""

    size: I64
    is_load: I64


class Buffers(NamedTuple):
    """The buffers, those of a unit contiguous. A buffer holds the blocks from `first` up to `end`;
    `used` is the time of its last use, 0 for never. `clock` (units,) is the number of reads.
    """

    clock: I64
    first: I64
    end: I64
    used: I64


class Shape(NamedTuple):
    """The bits of a block's bytes, the buffers per unit, the blocks that are fetched ahead, and the
    bits of a page's blocks: a stream does not leave its page.
    """

    block_bits: int
    buffers: int
    depth: int
    page_bits: int


class Counts(NamedTuple):
    """The counters, each (groups,)."""

    reads: I64
    hits: I64
    prefetches: I64


def serve(
    requests: Requests, kinds: Kinds, buffers: Buffers, shape: Shape, counts: Counts, passed: Passed
) -> int:
    """Serve requests in order; return the number of outgoing requests. The kind of a prefetch comes
    after all others.
    """
    many = 0
    for number in range(len(requests.address)):
        kind, address, cause = (
            requests.kind[number],
            requests.address[number],
            requests.cause[number],
        )
        unit, group = requests.unit[number], requests.group[number]
        counts.reads[group] += kinds.is_load[kind]
        if not kinds.is_load[kind] or not shape.buffers:
            many = emit(passed, many, address, kind, cause)
            continue
        block, last = (
            address >> shape.block_bits,
            address + kinds.size[kind] - 1 >> shape.block_bits,
        )
        buffers.clock[unit] += 1
        at = find_buffer(buffers, unit * shape.buffers, (unit + 1) * shape.buffers, block, last)
        if buffers.first[at] <= block and last < buffers.end[at]:
            counts.hits[group] += 1
            buffers.first[at] = last
        else:
            many = emit(passed, many, address, kind, cause)
            if block + 1 != buffers.first[at] or not buffers.used[at]:
                buffers.first[at] = buffers.end[at] = last + 1
        buffers.used[at] = buffers.clock[unit]
        until = min(last + 1 + shape.depth, (last >> shape.page_bits) + 1 << shape.page_bits)
        for ahead in range(buffers.end[at], until):
            counts.prefetches[group] += 1
            many = emit(passed, many, ahead << shape.block_bits, len(kinds.size) + kind, cause)
        buffers.end[at] = max(until, buffers.end[at])
    return many


def find_buffer(buffers: Buffers, begin: int, end: int, block: int, last: int) -> int:
    """Return the buffer that holds some of the blocks, or whose stream begins with the first; else
    the least recently used buffer.
    """
    oldest = begin
    for at in range(begin, end):
        if buffers.used[at] and buffers.first[at] <= block + 1 and last < buffers.end[at]:
            return at
        if buffers.used[at] < buffers.used[oldest]:
            oldest = at
    return oldest


def emit(passed: Passed, many: int, address: int, kind: int, cause: int) -> int:
    """Append an outgoing request; return their number."""
    passed.address[many], passed.kind[many], passed.cause[many] = address, kind, cause
    return many + 1
