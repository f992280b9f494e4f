"""Which GPC runs which block: the requests of the SMs of a GPC may be joined before L2 (`lrc.py`).

Measured on an H100 (tests/validate/caches/h100_places.csv), whose first GPC has SMs `apart` that
are filled first:

- a launch without clusters gives each GPC a run of consecutive blocks: as many as it has pairs of
  SMs, then as many again, and as many as it has SMs where the grid has more blocks than the chip;
- clusters go around the GPCs, one to each in turn that has room. Those of one block begin with half
  of the SMs apart, and fill the others after the first round; larger ones than two are not put
  there.

What is not: the GPC that comes first changes from launch to launch, and from the second wave on a
block goes where there is room.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..interface.model import Ints

MOST = 18
"""SMs of a whole GPC."""
PAIR = 2
"""SMs of a TPC."""


def sizes_of(sms: int, gpcs: Sequence[int]) -> tuple[int, ...]:
    """Return the SMs of each GPC: `gpcs` if they are the chip's, else equal parts.

    >>> sizes_of(36, [18, 18]), sizes_of(20, [18, 18])
    ((18, 18), (10, 10))
    """
    if sum(gpcs) == sms:
        return tuple(gpcs)
    many = -(-sms // MOST)
    return tuple(sms // many + (number < sms % many) for number in range(many))


def place_runs(sizes: Sequence[int], apart: int, blocks: int, start: int = -1) -> Ints:
    """Return the GPC of each block of a launch without clusters, (blocks,); GPC `start` is next
    to the SMs apart, the last one by default: that came first in 39 of 83 profiled launches.

    >>> "".join(map(str, place_runs([16, 16, 18], 8, 20)))
    '00000000222200001111'
    """
    rest = [sizes[0] - apart, *sizes[1:]]
    groups = [number % len(sizes) for number in range(start, start + len(sizes))]
    first = min(blocks, apart)
    if blocks < sum(sizes):
        runs = _share([rest[g] for g in groups], blocks - first)
    else:
        runs = [rest[g] for g in groups]
    once = np.repeat([0, *groups], [first, *runs])
    return np.resize(once, blocks)


def _share(sizes: Sequence[int], blocks: int) -> list[int]:
    """Return how many blocks each GPC gets: first one for each pair of SMs, then the others."""
    runs, left = [0] * len(sizes), blocks
    for size in ([s // PAIR for s in sizes], sizes):
        while left and any(run < most for run, most in zip(runs, size, strict=True)):
            for number, most in enumerate(size):
                if left and runs[number] < most:
                    runs[number] += 1
                    left -= 1
    return runs


def place_clusters(sizes: Sequence[int], apart: int, clusters: int, blocks: int) -> Ints:
    """Return the GPC of each of so many clusters of so many blocks, (clusters,).

    >>> "".join(map(str, place_clusters([16, 16, 18], 8, 12, 1)))
    '000001200000'
    >>> "".join(map(str, place_clusters([16, 16, 18], 8, 8, 2)))
    '00000120'
    """
    once = [*_turns(sizes, apart, blocks)]
    return np.resize(np.array(once or [0], np.int64), clusters)


def _turns(sizes: Sequence[int], apart: int, blocks: int) -> Iterator[int]:
    """Yield the GPCs of the clusters that run at once, in the order in which they begin."""
    early = apart // PAIR if blocks <= PAIR else 0
    late = early if blocks == 1 else 0
    room = [(sizes[0] - apart) // blocks, *(size // blocks for size in sizes[1:])]
    yield from [0] * early
    while any(room):
        for gpc, left in enumerate(room):
            if left:
                room[gpc] -= 1
                yield gpc
        yield from [0] * late
        late = 0
