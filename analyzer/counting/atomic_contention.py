"""Atomic contention: count the atomics that serialize on one address.

Atomics on one address serialize; each execution is a *turn*. Every lane of a warp
takes a turn, as on an H200 (models/devices/measured/sm_90.csv: 32 lanes take 32 times as long as
one), unless the assembler elects one lane for all, or the chip counts the lanes. A sector of other
addresses also takes a turn at its L2 slice. A slice owns 512 consecutive bytes, according to the
measured rates of adds to as many words (the same file, red_u32_random and red_u32_lane).

In a spin loop the number of atomics depends on timing. There each lane counts once per address, and
the attempts of compare-and-swap and exchange are counted separately.
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
"""Collision kinds in which each lane takes its own turn."""
EXCHANGES, LANE = 2, 5
"""Kind of an atomic that exchanges in a spin loop; bits of a lane number."""
SLICE = 1 << 14
"""Rows per chunk that is expanded into lanes."""
LOOKED_AT = 1 << 18
"""Rows above which only evenly spaced chunks are counted for slices; only the estimate reads them.
"""
NEAR = 1 << 20
"""Address range below which addresses are counted by `bincount`, without a sort."""
SECTOR, TOGETHER = 5, 9
"""Address bits within a sector, and within the bytes that one L2 slice owns."""


@dataclass(frozen=True, slots=True)
class AtomicContention:
    """Turns at the most contended address in global memory; 0 without such atomics.

    `real` counts turns of floating-point adds, `integer` those of all other atomics. `sectors`
    counts the turns of all sectors, `slice` those at the busiest L2 slice. For compare-and-swap and
    exchange in spin loops, `rivals` is the number of lanes that contend for the most tried address,
    and `tries` the number of their attempts; `attempts` counts the turns of all sectors in them,
    `attempted` their lanes, and `beside` the lanes that contend for words of that address's slice.
    `compared` are those of `sectors` that compare.
    """

    integer: int
    real: int
    sectors: int = 0
    slice: int = 0
    rivals: int = 0
    tries: int = 0
    compared: int = 0
    attempts: int = 0
    attempted: int = 0
    beside: int = 0


def count_contention(trace: LaunchTrace) -> AtomicContention:
    """Count the turns of all global atomics of a launch."""
    real = np.array([kind[:1] == "f" for kind in trace.instructions()["type"].to_pylist()])
    tallies = {name: _AddressCounts() for name in ("integer", "real", "slices")}
    sites = read_sites(trace.instructions(), "ca")
    atomic = np.array([kind.access in ACCESSES for kind in sites.kinds], np.bool_)
    serial = np.array([kind.collision in SERIAL for kind in sites.kinds], np.bool_)
    wait_kinds, rivals = _spin_kinds(trace), _Rivals()
    compares = np.array(
        [each == "cas" for each in trace.instructions()["operation"].to_pylist()], np.bool_
    )
    compared = attempts = 0
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
            addresses, active = base[some, None] + offsets, unpack_masks(masks)
            rivals.add(addresses, active, who, each, exchanges)
            attempts += int(_sector_turns(addresses, active, each)[1].sum())
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
                kind = compares[pc[some]]
                compared += int(_sector_turns(addresses[kind], active[kind], each[kind])[1].sum())
            chunk += 1
    tallies["integer"].add(rivals.once())
    peaks = {name: int(each.times.max(initial=0)) for name, each in tallies.items()}
    scale = chunk / -(-chunk // every) if chunk else 1.0  # ratio of all chunks to the counted ones
    sectors, slice_ = int(tallies["slices"].times.sum()), peaks["slices"]
    in_slices = round(sectors * scale), round(slice_ * scale)
    counted = round(compared * scale), attempts, rivals.attempted
    peak, most = (peaks["integer"], peaks["real"]), rivals.most()
    return AtomicContention(*peak, *in_slices, *most, *counted, rivals.beside())


def _spin_kinds(trace: LaunchTrace) -> Ints:
    """Return per pc: 0 outside spin loops, EXCHANGES for an exchange in one, else 1."""
    rows = trace.instructions().select(["block", "operation"]).to_pylist()
    waiting = {*trace.launch.waiting}
    exchanges = [EXCHANGES if row["operation"] in ("cas", "exch") else 1 for row in rows]
    kinds = (
        is_so if row["block"] in waiting else 0 for row, is_so in zip(rows, exchanges, strict=True)
    )
    return np.fromiter(kinds, np.int64, len(rows))


def _sector_turns(addresses: Ints, active: Bools, each: Bools) -> tuple[Ints, Ints]:
    """Return the L2 slice and the turns of each sector group, from rows of addresses (n, 32).

    A sector takes one turn. In rows of `each` it takes another for each further lane at the same
    address.
    """
    ordered = order_lanes(addresses, active)
    first = mark_new(ordered).reshape(-1)
    # Sorted lanes put equal addresses side by side. `starts` is the first lane of each run; a run
    # ends at the next start or at the last active lane of its row.
    starts = np.flatnonzero(first)
    if not len(starts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    row = starts // ordered.shape[1]
    ends = row * ordered.shape[1] + active.sum(axis=1)[row]
    lanes = np.minimum(np.append(starts[1:], ordered.size), ends) - starts
    sector = ordered.reshape(-1)[starts] >> SECTOR
    # Runs of one row and sector form a group. Its turns are those of its longest run, since
    # different addresses of a sector do not serialize.
    changed = (np.diff(row, prepend=-1) != 0) | (np.diff(sector, prepend=-1) != 0)
    groups = np.flatnonzero(changed)
    rounds = np.maximum.reduceat(np.where(each[row], lanes, 1), groups)
    return sector[groups] >> (TOGETHER - SECTOR), rounds


class _Rivals:
    """Lanes that contend per address in spin loops, and the exchange attempts per address."""

    def __init__(self) -> None:
        self.pairs, self.tried, self.attempted = list[Ints](), _AddressCounts(), 0

    def add(
        self, addresses: Ints, active: Bools, who: Ints, serial: Bools, exchanges: Bools
    ) -> None:
        """Add rows of addresses (n, 32) of warps (n,); where `serial`, each lane takes its own
        turn.
        """
        row, lane = np.nonzero(active)
        self.attempted += len(row)
        lanes = np.where(serial[row], lane, 0) + (who[row] << LANE)
        pairs = np.stack((addresses[row, lane], lanes), axis=1)
        self.pairs.append(np.unique(pairs, axis=0))
        self.tried.add(addresses[exchanges][active[exchanges]])

    def _distinct(self) -> Ints:
        self.pairs = [np.unique(np.concatenate(self.pairs), axis=0)] if self.pairs else []
        return self.pairs[0] if self.pairs else np.zeros((0, 2), np.int64)

    def once(self) -> Ints:
        """Return each address once per lane that contends for it."""
        return self._distinct()[:, 0]

    def most(self) -> tuple[int, int]:
        """Return the contending lanes at the most tried address, and their attempts."""
        if not len(self.tried.places):
            return 0, 0
        most = int(self.tried.times.argmax())
        rivals = int(np.count_nonzero(self.once() == self.tried.places[most]))
        return rivals, int(self.tried.times[most])

    def beside(self) -> int:
        """Return the lanes that contend for words of the most tried address's slice."""
        if not len(self.tried.places):
            return 0
        most = self.tried.places[self.tried.times.argmax()]
        return int(np.count_nonzero(self.once() >> TOGETHER == most >> TOGETHER))


class _AddressCounts:
    """Distinct addresses or slices, and the turns at each."""

    def __init__(self) -> None:
        self.places, self.times = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, places: Ints, counts: Ints | None = None) -> None:
        """Add places (n,), with one turn each or `counts` turns."""
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
