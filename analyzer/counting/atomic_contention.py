"""Turns: how many atomics go to the same address, and so execute one after another.

Atomics on one address take effect in turns. Each lane of a warp takes its own, as an H200 does
(models/devices/measured/sm_90.csv: 32 lanes take 32 times as long as one), unless the assembler
lets one lane work for all, or the chip counts them. A sector of other addresses takes a turn, too,
at the slice of L2 that has it: 512 consecutive bytes have the same slice, by the measured rates of
adds to as many words (the same file, red_u32_random and red_u32_lane).

The number of atomics in a loop that waits for other threads depends on time: each lane counts once
for an address, and tries of compare and swap, and of exchange, are counted apart.
"""

import numpy as np

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Bools, Ints
from ...models.replay.rows.lanes import NONE, mark_new, order_lanes, sort_distinct, unpack_masks
from ...models.replay.rows.sites import read_sites
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Space
from ...traces.unique import sorted_places

ACCESSES = ("atomic", "reduction")
SERIAL = ("serial", "compared", "swapped")
"""Collisions in which each lane takes its own turn."""
EXCHANGES, LANE = 2, 5
"""What tells an atomic that exchanges in a loop that waits; bits of a lane."""
SLICE = 1 << 14
"""Rows that are spread into lanes at a time."""
LOOKED_AT = 1 << 18
"""Rows from which on slices see some of them, evenly: only the estimate asks for those."""
NEAR = 1 << 20
"""Places that lie so near each other are counted without being sorted."""
SECTOR, TOGETHER = 5, 9
"""Bits of an address within a sector, and within the bytes that one slice has."""


@dataclass(frozen=True, slots=True)
class AtomicContention:
    """The turns at the most wanted address in global memory; 0 without such atomics.

    `real` are those of atomics that add floating-point numbers, `integer` all others. `sectors` are
    the turns of sectors by all of them, `slice` those at the most wanted slice. Of compare and swap
    and of exchange in loops that wait, `rivals` are the lanes that want the most tried address, and
    `tries` how often they tried.
    """

    integer: int
    real: int
    sectors: int = 0
    slice: int = 0
    rivals: int = 0
    tries: int = 0


def count_contention(trace: LaunchTrace) -> AtomicContention:
    """The turns of all atomics of a launch in global memory."""
    real = np.array([kind[:1] == "f" for kind in trace.instructions()["type"].to_pylist()])
    tallies = {name: _AddressCounts() for name in ("integer", "real", "slices")}
    sites = read_sites(trace.instructions(), "ca")
    atomic = np.array([kind.access in ACCESSES for kind in sites.kinds], np.bool_)
    serial = np.array([kind.collision in SERIAL for kind in sites.kinds], np.bool_)
    wait_kinds, rivals = _spin_kinds(trace), _Rivals()
    store, chunk = trace.pattern_store(), 0
    every = 1 + trace.count("accesses") // LOOKED_AT
    for batch in trace.access_batches() if atomic.any() else ():
        columns = ("pc", "space", "base", "pattern", "block", "warp")
        pc, space, base, pattern, block, warp = integers(batch, *columns)
        rows = np.flatnonzero(space == Space.GLOBAL)
        rows = rows[atomic[sites.kind[sites.locate(pc[rows], space[rows])]]]
        timed = rows[wait_kinds[pc[rows]] > 0]
        rows = rows[wait_kinds[pc[rows]] == 0]
        for start in range(0, len(timed), SLICE):
            some = timed[start : start + SLICE]
            masks, offsets = store.take(pattern[some])
            each = serial[sites.kind[sites.locate(pc[some], space[some])]]
            who = block[some] * trace.launch.warps + warp[some]
            exchanges = wait_kinds[pc[some]] == EXCHANGES
            rivals.add(base[some, None] + offsets, unpack_masks(masks), who, each, exchanges)
        for start in range(0, len(rows), SLICE):
            some = rows[start : start + SLICE]
            masks, offsets = store.take(pattern[some])
            addresses, active = base[some, None] + offsets, unpack_masks(masks)
            each = serial[sites.kind[sites.locate(pc[some], space[some])]]
            for name, of in (("integer", ~real[pc[some]]), ("real", real[pc[some]])):
                single, shared = of & each, of & ~each
                places = sort_distinct(addresses[shared], active[shared])
                tallies[name].add(places[places != NONE])
                tallies[name].add(addresses[single][active[single]])
            if chunk % every == 0:
                tallies["slices"].add(*_sector_turns(addresses, active, each))
            chunk += 1
    tallies["integer"].add(rivals.once())
    peaks = {name: int(each.times.max(initial=0)) for name, each in tallies.items()}
    scale = chunk / -(-chunk // every) if chunk else 1.0  # of all rows to those looked at
    sectors, slice_ = int(tallies["slices"].times.sum()), peaks["slices"]
    in_slices = round(sectors * scale), round(slice_ * scale)
    return AtomicContention(peaks["integer"], peaks["real"], *in_slices, *rivals.most())


def _spin_kinds(trace: LaunchTrace) -> Ints:
    """By pc: 0 outside of loops that wait, EXCHANGES for atomics there that exchange, else 1."""
    rows = trace.instructions().select(["block", "operation"]).to_pylist()
    waiting = {*trace.launch.waiting}
    exchanges = [EXCHANGES if row["operation"] in ("cas", "exch") else 1 for row in rows]
    kinds = (
        is_so if row["block"] in waiting else 0 for row, is_so in zip(rows, exchanges, strict=True)
    )
    return np.fromiter(kinds, np.int64, len(rows))


def _sector_turns(addresses: Ints, active: Bools, each: Bools) -> tuple[Ints, Ints]:
    """The slices that rows of addresses (n, 32) want, and their turns there.

    A sector takes a turn, and one more for each further lane at the same address in rows of `each`.
    """
    ordered = order_lanes(addresses, active)
    first = mark_new(ordered).reshape(-1)
    starts = np.flatnonzero(first)
    if not len(starts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    row = starts // ordered.shape[1]
    ends = row * ordered.shape[1] + active.sum(axis=1)[row]
    lanes = np.minimum(np.append(starts[1:], ordered.size), ends) - starts
    sector = ordered.reshape(-1)[starts] >> SECTOR
    changed = (np.diff(row, prepend=-1) != 0) | (np.diff(sector, prepend=-1) != 0)
    groups = np.flatnonzero(changed)
    rounds = np.maximum.reduceat(np.where(each[row], lanes, 1), groups)
    return sector[groups] >> (TOGETHER - SECTOR), rounds


class _Rivals:
    """Who wants which address in loops that wait, and how often it was tried to exchange it."""

    def __init__(self) -> None:
        self.pairs, self.tried = list[Ints](), _AddressCounts()

    def add(
        self, addresses: Ints, active: Bools, who: Ints, serial: Bools, exchanges: Bools
    ) -> None:
        """Add rows of addresses (n, 32) of warps (n,), whose lanes take turns where `serial`."""
        row, lane = np.nonzero(active)
        lanes = np.where(serial[row], lane, 0) + (who[row] << LANE)
        pairs = np.stack((addresses[row, lane], lanes), axis=1)
        self.pairs.append(np.unique(pairs, axis=0))
        self.tried.add(addresses[exchanges][active[exchanges]])

    def _distinct(self) -> Ints:
        self.pairs = [np.unique(np.concatenate(self.pairs), axis=0)] if self.pairs else []
        return self.pairs[0] if self.pairs else np.zeros((0, 2), np.int64)

    def once(self) -> Ints:
        """Each address as often as lanes want it."""
        return self._distinct()[:, 0]

    def most(self) -> tuple[int, int]:
        """The lanes that want the most tried address, and how often they tried."""
        if not len(self.tried.places):
            return 0, 0
        most = int(self.tried.times.argmax())
        rivals = int(np.count_nonzero(self.once() == self.tried.places[most]))
        return rivals, int(self.tried.times[most])


class _AddressCounts:
    """Places, and how often each was wanted."""

    def __init__(self) -> None:
        self.places, self.times = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, places: Ints, counts: Ints | None = None) -> None:
        """Add places (n,), each with one turn or its number of turns."""
        if not len(places):
            return
        low = int(places.min())
        if int(places.max()) - low < NEAR:
            counted = np.bincount(places - low, counts).astype(np.int64)
            places = np.flatnonzero(counted)
            places, counts = places + low, counted[places]
        every = np.concatenate((self.places, places))
        more = np.ones(len(places), np.int64) if counts is None else counts
        weights = np.concatenate((self.times, more))
        self.places, _, number = sorted_places(every)
        self.times = np.bincount(number, weights, len(self.places)).astype(np.int64)
