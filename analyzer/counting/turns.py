"""Turns: how many requests of warps want the same place of an atomic, one after another.

Atomics on one address take effect in turns. What a warp wants of it at once counts as one turn,
since assemblers and chips may add the lanes' values up first; each further warp takes another.
Nothing here is hardware.
"""

import numpy as np

from ...models.replay.rows.lanes import NONE, sort_distinct, unpack_masks
from ...models.replay.rows.sites import read_sites
from ...models.replay.seam import Ints
from ...traces.reader import LaunchTrace
from ...traces.schema import Space

ACCESSES = ("atomic", "reduction")
SLICE = 1 << 14
"""Rows that are spread into lanes at a time."""


def count_turns(trace: LaunchTrace) -> int:
    """The requests of the most wanted address in global memory; 0 without atomics."""
    sites = read_sites(trace.instructions(), "ca")
    atomic = np.array([kind.access in ACCESSES for kind in sites.kinds], np.bool_)
    places, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    store = trace.pattern_store()
    for batch in trace.access_batches():
        pc, space, base, pattern = (
            np.asarray(batch[name].to_numpy()).astype(np.int64)
            for name in ("pc", "space", "base", "pattern")
        )
        found = np.flatnonzero(space == Space.GLOBAL)
        found = found[atomic[sites.kind[sites.locate(pc[found], space[found])]]]
        for start in range(0, len(found), SLICE):
            rows = found[start : start + SLICE]
            masks, offsets = store.take(pattern[rows])
            wanted = sort_distinct(base[rows, None] + offsets, unpack_masks(masks))
            places, times = _merge(places, times, wanted[wanted != NONE])
    return int(times.max(initial=0))


def _merge(places: Ints, times: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Add addresses (n,) to places that were wanted so many times before."""
    every = np.concatenate((places, wanted))
    weights = np.concatenate((times, np.ones(len(wanted), np.int64)))
    known, number = np.unique(every, return_inverse=True)
    return known, np.bincount(number, weights, len(known)).astype(np.int64)
