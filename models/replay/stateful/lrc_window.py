"""L2 request coalescer: a window of recent reads per unit, for `jit/loop.py` to compile.

All loads of one cause from one line are one read.
"""

from typing import NamedTuple

from ....jit.structure import I64, Column

BUCKETS = 256
SECTOR_BITS = 5
WORTH = 1 << 13
"""Requests from which on the compiled loop repays its start-up of a tenth of a second."""
GOLDEN, LOW, SHIFT = 0x9E3779B1, 0x7FFFFFFF, 24
NONE = -1


class Requests(NamedTuple):
    """Requests in order, each (n,): the cause is a warp instruction, counts are summed by group."""

    address: Column
    kind: Column
    cause: Column
    unit: Column
    group: Column


class Passed(NamedTuple):
    """Requests that go on."""

    address: I64
    kind: I64
    cause: I64


class Read(NamedTuple):
    """The requests of one cause for one line, up to `end`; without a load, the cause is NONE."""

    end: int
    line: int
    cause: int
    unit: int
    sectors: int


class Window(NamedTuple):
    """The recent reads of all units.

    `clock` (units,) is the number of reads, never above 2 ** 62. Read number t is at t % `reads`
    in `line`, `sectors`, `link` and `shared`, of `reads` integers per unit; its link is the
    previous read in the same hash bucket, 0 for none; `shared` is the number of reads that one of
    L2 has served with it. `latest` is the last read of each of BUCKETS buckets per unit.
    """

    reads: int
    clock: I64
    latest: I64
    line: I64
    sectors: I64
    link: I64
    shared: I64


def join(
    requests: Requests, is_load: I64, window: Window, line_bits: int, most: int, counts: I64,
    passed: Passed,
) -> int:  # fmt: skip
    """Join reads with recent reads of the same unit; return the number of requests that go on.

    `is_load` (kinds,); `most` reads share one of L2, 0: any number; `counts` (groups,) are the
    joined requests.
    """
    begin, many = 0, 0
    while begin < len(requests.address):
        read = gather(requests, is_load, line_bits, begin)
        is_repeated = read.cause != NONE and look_up(window, read, most)
        for number in range(begin, read.end):
            if is_repeated and is_load[requests.kind[number]]:
                counts[requests.group[number]] += 1
            else:
                passed.address[many] = requests.address[number]
                passed.kind[many] = requests.kind[number]
                passed.cause[many] = requests.cause[number]
                many += 1
        begin = read.end
    return many


def gather(requests: Requests, is_load: I64, line_bits: int, begin: int) -> Read:
    """Gather the requests of one read, and the stores between them and behind them."""
    end, line, cause, unit, sectors = begin, NONE, NONE, 0, 0
    while end < len(requests.address):
        if is_load[requests.kind[end]]:
            tag = requests.address[end] >> line_bits
            if cause != NONE and (tag != line or requests.cause[end] != cause):
                break
            line, cause, unit = tag, requests.cause[end], requests.unit[end]
            sectors += 1 << ((requests.address[end] - (line << line_bits)) >> SECTOR_BITS)
        end += 1
    return Read(end, line, cause, unit, sectors)


def look_up(window: Window, read: Read, most: int) -> bool:
    """Return whether its unit's window holds a read, and record it as the latest."""
    unit, line, sectors = read.unit, read.line, read.sectors
    clock = window.clock[unit] + 1
    window.clock[unit] = clock
    bucket = unit * BUCKETS + bucket_of(line)
    earlier, is_repeated, shared = window.latest[bucket], False, 1
    while earlier > 0 and clock - earlier <= window.reads:
        place = unit * window.reads + earlier % window.reads
        if window.line[place] == line and window.sectors[place] == sectors:
            if most == 0 or window.shared[place] < most:
                is_repeated = True
                shared = window.shared[place] + 1
            break
        earlier = window.link[place]
    place = unit * window.reads + clock % window.reads
    window.line[place], window.sectors[place] = line, sectors
    window.shared[place] = shared
    window.link[place] = window.latest[bucket]
    window.latest[bucket] = clock
    return is_repeated


def bucket_of(line: int) -> int:
    """Return the hash bucket of a line: multiples of the golden ratio are spread far apart."""
    return ((line & LOW) * GOLDEN >> SHIFT) % BUCKETS
