"""Turns: how many requests of warps want the same place of an atomic, one after another.

Atomics on one address take effect in turns. Each lane of a warp takes its own, as an H200 does
(models/devices/measured/sm_90.csv: 32 lanes take 32 times as long as one), unless the assembler
lets one lane work for all, or the chip counts them. Nothing else here is hardware.
"""

from dataclasses import dataclass

import numpy as np

from ...models.replay.rows.lanes import NONE, sort_distinct, unpack_masks
from ...models.replay.rows.sites import read_sites
from ...models.replay.seam import Bools, Ints
from ...traces.reader import LaunchTrace
from ...traces.schema import Space

ACCESSES = ("atomic", "reduction")
ALONE = ("serial", "compared")
"""Collisions in which each lane takes its own turn."""
SLICE = 1 << 14
"""Rows that are spread into lanes at a time."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns at the most wanted address in global memory; 0 without such atomics.

    `real` are those of atomics that add floating-point numbers, `integer` all others.
    """

    integer: int
    real: int


def count_turns(trace: LaunchTrace) -> Turns:
    """The turns of all atomics of a launch in global memory."""
    real = np.array([kind[:1] == "f" for kind in trace.instructions()["type"].to_pylist()])
    return Turns(_most_wanted(trace, ~real), _most_wanted(trace, real))


def _most_wanted(trace: LaunchTrace, of: Bools) -> int:
    """The turns at one address by those instructions that are among `of` (pcs,)."""
    if not any(of):
        return 0
    sites = read_sites(trace.instructions(), "ca")
    atomic = np.array([kind.access in ACCESSES for kind in sites.kinds], np.bool_)
    alone = np.array([kind.collision in ALONE for kind in sites.kinds], np.bool_)
    if not atomic.any():
        return 0
    places, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    store = trace.pattern_store()
    for batch in trace.access_batches():
        pc, space, base, pattern = (
            np.asarray(batch[name].to_numpy()).astype(np.int64)
            for name in ("pc", "space", "base", "pattern")
        )
        found = np.flatnonzero((space == Space.GLOBAL) & of[pc])
        found = found[atomic[sites.kind[sites.locate(pc[found], space[found])]]]
        for start in range(0, len(found), SLICE):
            rows = found[start : start + SLICE]
            masks, offsets = store.take(pattern[rows])
            addresses, active = base[rows, None] + offsets, unpack_masks(masks)
            each = alone[sites.kind[sites.locate(pc[rows], space[rows])]]
            wanted = sort_distinct(addresses[~each], active[~each])
            places, times = _merge(places, times, wanted[wanted != NONE])
            places, times = _merge(places, times, addresses[each][active[each]])
    return int(times.max(initial=0))


def _merge(places: Ints, times: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Add addresses (n,) to places that were wanted so many times before."""
    every = np.concatenate((places, wanted))
    weights = np.concatenate((times, np.ones(len(wanted), np.int64)))
    known, number = np.unique(every, return_inverse=True)
    return known, np.bincount(number, weights, len(known)).astype(np.int64)
